// The recipe of a run: each option with its origin, and the file.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { notice } from "./notices.js";
import { plainTable } from "./tables.js";

/** Shows the recipe until the signal is aborted; returns a function that updates it. */
export function showRecipe(root, { run, signal }) {
  let { params } = run;
  const error = errorLine();
  const file = h("pre", { class: "command recipe" });
  const table = h("div", {});
  const search = h("input", { type: "search", placeholder: "Search options", "aria-label": "Search options", oninput: () => draw() });
  // Browsers allow copying only on localhost and over HTTPS.
  const copy = navigator.clipboard && h("button", { type: "button", onclick: async () => {
    await navigator.clipboard.writeText(file.textContent);
    notice("Copied.");
  } }, "Copy");
  replace(root, h("div", { class: "toolbar" }, search), error, h("div", { class: "boxes two" },
    h("section", { class: "box" }, table),
    h("section", { class: "box" }, h("div", { class: "box-head" }, h("h2", {}, "recipe.yaml"), copy), file)));

  function draw() {
    const wanted = search.value.toLowerCase();
    const found = params.filter(({ name, origin }) => `${name} ${origin}`.toLowerCase().includes(wanted));
    replace(table, found.length === 0
      ? h("p", { class: "muted nothing" }, "No matching option.")
      : plainTable([{ text: "option" }, { text: "value" }, { text: "origin" }], found.map(({ name, value, origin }) => ({
        cells: [name, String(value), h("span", { class: "muted" }, origin || "–")],
      }))));
  }
  draw();
  async function read() {
    try {
      const { recipe } = await get("run/recipe", { name: run.name }, signal);
      error.show("");
      if (file.textContent !== recipe) file.textContent = recipe;
    } catch (failure) {
      error.report(failure, signal);
    }
  }
  read();
  return (now) => {
    params = now.params;
    draw();
    read();
  };
}
