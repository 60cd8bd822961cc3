// Chooses a page of the site: the figures are those that the pages hold, in one file a model.
(() => {
  "use strict";
  const by = (id) => document.getElementById(id);
  const form = by("choose");
  const known = new Map();
  const wanted = new URLSearchParams(location.hash.slice(1));

  window.cardfit = (model, presets) => {
    known.set(model, presets);
    if (by("model").value === model) sizes();
  };

  const filled = (select, options, chosen) => {
    select.replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === chosen)));
  };

  const load = () => {
    const model = by("model").value;
    if (known.has(model)) return sizes();
    const script = document.createElement("script");
    script.src = `${encodeURIComponent(model)}/data.js`;
    document.head.append(script);
  };

  const sizes = () => {
    const presets = known.get(by("model").value);
    filled(by("preset"), presets.map((each) => [each.name, each.label]), wanted.get("preset") ?? by("preset").value);
    cards();
  };

  const cards = () => {
    const preset = chosen();
    const list = [["", form.dataset.any], ...preset.cards.map(([id, name]) => [id, name])];
    filled(by("card"), list, wanted.get("card") ?? by("card").value);
    show();
  };

  const chosen = () => known.get(by("model").value).find((each) => each.name === by("preset").value);

  const show = () => {
    const [preset, model, id] = [chosen(), by("model").value, by("card").value];
    const card = preset.cards.find((each) => each[0] === id);
    by("said").textContent = card ? card.slice(1).filter(Boolean).join(" · ") : preset.said;
    by("open").href = `${encodeURIComponent(model)}/${preset.name}.html${card ? `#card-${id}` : ""}`;
    const state = new URLSearchParams({ model, preset: preset.name, ...(card ? { card: id } : {}) });
    if (location.hash.slice(1) !== state.toString()) history.replaceState(null, "", `#${state}`);
    for (const name of ["model", "preset", "card"]) wanted.delete(name);
  };

  if (wanted.has("model")) by("model").value = wanted.get("model");
  if (!by("model").value) by("model").selectedIndex = 0;
  by("model").addEventListener("change", load);
  by("preset").addEventListener("change", cards);
  by("card").addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  load();
})();
