// On the host's page: each frame as high as what it shows; a choice becomes the event "cardfit:choice" of its frame.
(() => {
  "use strict";
  addEventListener("message", (event) => {
    for (const frame of document.querySelectorAll("iframe[data-cardfit]")) {
      if (frame.contentWindow !== event.source || new URL(frame.src).origin !== event.origin) continue;
      const { type, height, ...choice } = event.data ?? {};
      if (type === "cardfit:height" && height > 0) frame.style.height = `${Math.min(height, 20000)}px`;
      if (type === "cardfit:choice") frame.dispatchEvent(new CustomEvent(type, { detail: choice, bubbles: true }));
    }
  });
})();
