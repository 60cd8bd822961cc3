// In the frame: tells the page around it how high it is and what was chosen; nobody else is told.
(() => {
  "use strict";
  document.documentElement.classList.add("js");
  const allowed = document.body.dataset.origins.split(" ");
  const around = location.ancestorOrigins ? allowed.filter((each) => each === location.ancestorOrigins[0]) : allowed;
  const tell = (message) => {
    if (window.parent === window) return;
    for (const origin of around) window.parent.postMessage(message, origin);
  };
  const height = () => tell({ type: "cardfit:height", height: Math.ceil(document.body.getBoundingClientRect().height) });
  new ResizeObserver(height).observe(document.body);
  height();

  document.addEventListener("change", (event) => {
    if (event.target.id === "model") document.getElementById("size").disabled = true; // that of another model
    event.target.form.submit();
  });
  document.addEventListener("click", (event) => {
    const chosen = event.target instanceof Element && event.target.closest("[data-choice]");
    if (chosen) tell({ type: "cardfit:choice", ...JSON.parse(chosen.dataset.choice) });
  });
})();
