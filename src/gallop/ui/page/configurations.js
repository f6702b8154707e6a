// Options and environments of runs side by side.

import { get } from "./api.js";
import { debounced, h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { lookElement } from "./curves.js";
import { amend, one } from "./routes.js";
import { nameElement } from "./run_name.js";

/** Shows a table of the runs, of names() and looks(), until the signal is aborted; returns a function that reloads it. */
export function showConfigurations(root, { names, looks, query, signal }) {
  let onlyDiffering = one(query, "same") !== "1";
  let answer = null;
  const error = errorLine();
  const box = h("input", { type: "checkbox", id: "only-differing", checked: onlyDiffering, onchange: () => {
    onlyDiffering = box.checked;
    amend({ same: onlyDiffering ? "" : "1" });
    draw();
  } });
  const search = h("input", { type: "search", placeholder: "Search options", "aria-label": "Search options", oninput: debounced(100, () => draw()) });
  const table = h("div", { class: "scroll-x sides" });
  replace(root, h("div", { class: "toolbar" }, h("label", { class: "check" }, box, h("span", {}, "Only differences")), search), error, table);

  function draw() {
    if (!answer) return;
    const { runs } = answer;
    const wanted = search.value.toLowerCase();
    const section = (title, rows) => {
      const shown = rows.filter((row) => (row.differs || !onlyDiffering) && row.name.toLowerCase().includes(wanted));
      return shown.length > 0 && h("tbody", {},
        h("tr", { class: "section-row" }, h("th", { scope: "rowgroup", colspan: runs.length + 1 }, title)),
        shown.map((row) => h("tr", { class: row.differs ? "differs" : "" }, h("th", { scope: "row", title: row.name }, row.name),
          row.values.map((value) => h("td", { title: value ?? "" }, value === null || value === undefined ? h("span", { class: "muted" }, "–") : String(value))))));
    };
    const sections = [section("Options", answer.params), section("Circumstances", answer.info ?? [])].filter(Boolean);
    replace(table, sections.length === 0
      ? h("p", { class: "muted nothing" }, wanted ? "No matching option." : "These runs do not differ.")
      : h("table", { class: "plain" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, ""),
        runs.map((name) => h("th", { scope: "col" }, h("span", { class: "run-name" }, lookElement(looks().get(name) ?? {}),
          nameElement(name)))))), sections));
  }

  async function load() {
    try {
      answer = await get("compare", { runs: names().join(",") }, signal);
      error.show("");
      draw();
    } catch (failure) {
      error.report(failure, signal);
    }
  }
  load();
  return load;
}
