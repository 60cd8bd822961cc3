// What plain HTML cannot do: a slider that moves with its number, a file that is dropped, a button that copies.
(() => {
  "use strict";
  document.documentElement.classList.add("js");
  // On a narrow screen the answer should not stand below every knob; in view of it the way there is not needed.
  if (matchMedia("(max-width: 62rem)").matches) {
    document.querySelectorAll(".ask > details").forEach((each) => each.removeAttribute("open"));
  }
  const of = (event, kind) => (event.target instanceof Element ? event.target.closest(kind) : null);

  document.addEventListener("input", (event) => {
    const slider = of(event, "input[data-for]");
    const number = of(event, "input[type=number]");
    if (slider) {
      document.getElementById(slider.dataset.for).value = slider.value;
      slider.dispatchEvent(new CustomEvent("slide", { bubbles: true }));
    } else if (number) {
      const partner = document.querySelector(`input[data-for="${number.id}"]`);
      if (partner) partner.value = number.value;
    }
  });

  // A file that is chosen or dropped anywhere is sent at once, unless the server would not take it.
  const sent = (input) => {
    const file = input.files[0];
    if (!file) return;
    const large = file.size > Number(input.dataset.most);
    const said = document.getElementById("beside-file");
    said.textContent = large ? input.dataset.tooLarge : "";
    said.classList.toggle("error", large);
    if (!large) input.form.requestSubmit();
  };
  const picker = () => document.querySelector("[data-drop] input[type=file]");
  document.addEventListener("change", (event) => {
    const input = of(event, "[data-drop] input[type=file]");
    if (!input) return;
    event.stopPropagation(); // it is no change of the question
    sent(input);
  }, true);
  for (const kind of ["dragover", "drop"]) {
    document.addEventListener(kind, (event) => {
      const input = picker();
      if (!input || !event.dataTransfer || !event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      if (kind === "drop") {
        input.files = event.dataTransfer.files;
        sent(input);
      }
    });
  }

  document.addEventListener("click", async (event) => {
    const button = of(event, "button[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    const before = button.textContent;
    button.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = before; }, 1500);
  });
})();
