// The columns of the runs table: available ones, visible ones, and their cells.

import { get } from "./api.js";
import { dialog, h, replace } from "./dom.js";
import { exactNumber, formatDuration, formatNumber, timeElement } from "./format.js";

const KEY = "gallop.columns";
const WIDTHS_KEY = "gallop.widths";
const LISTED = 200; // Maximum number of listed search results.

/** Columns of every run. */
export const OWN_COLUMNS = ["name", "state", "created", "seconds", "steps"];
const OWN_TITLES = { name: "Run", state: "State", created: "Created", seconds: "Duration", steps: "Steps" };
const WIDTHS = { name: 250, state: 104, created: 104, seconds: 110, steps: 84, metrics: 108, params: 124, tags: 124 };

/** All prefixed column names of the runs. */
export async function knownColumns(signal) {
  const { metrics, params, tags } = await get("columns", {}, signal);
  const named = (prefix, names) => names.map((name) => `${prefix}.${name}`);
  return [...named("metrics", metrics), ...named("params", params), ...named("tags", tags)];
}

export const kindOf = (column) => (OWN_TITLES[column] ? column : column.slice(0, column.indexOf(".")));
export const titleOf = (column) => OWN_TITLES[column] ?? column.slice(column.indexOf(".") + 1);
export const isText = (column) => ["name", "state", "created", "params", "tags"].includes(kindOf(column));

/** The visible columns besides the fixed ones, of those available. */
export function shownColumns(known) {
  const stored = JSON.parse(localStorage.getItem(KEY) ?? "null");
  if (stored) return stored.filter((column) => known.includes(column));
  const usual = ["metrics.accuracy", "metrics.loss", "params.model.name", "params.optimizer.name", "params.optimizer.lr"];
  const found = usual.filter((column) => known.includes(column));
  return found.length > 0 ? found : known.slice(0, 4);
}

export function keepColumns(columns) {
  localStorage.setItem(KEY, JSON.stringify(columns));
}

let widths = JSON.parse(localStorage.getItem(WIDTHS_KEY) ?? "{}");
export const widthOf = (column) => widths[column] ?? WIDTHS[kindOf(column)];
export function setWidth(column, width) {
  widths = { ...widths, [column]: Math.round(Math.min(Math.max(width, 56), 900)) };
  localStorage.setItem(WIDTHS_KEY, JSON.stringify(widths));
}

/** The content of a cell: children of an element. */
export function cellContent(column, run, value) {
  switch (kindOf(column)) {
    case "state": return stateElement(run.state);
    case "created": return timeElement(run.created);
    case "seconds": return formatDuration(run.seconds);
    case "steps": return formatNumber(run.steps);
    case "metrics": return h("span", { title: exactNumber(value) }, formatNumber(value));
    default: return h("span", { title: exactNumber(value) }, value === null || value === undefined ? "" : String(value));
  }
}

export function stateElement(state) {
  return h("span", { class: `state ${/^\w+$/.test(state) ? state : ""}` }, state);
}

/** A dialog that chooses and orders columns; `changed(columns)` is called after each change. */
export function openColumnChooser(title, known, shown, changed) {
  let columns = shown;
  const list = h("div", { class: "chooser-list" });
  const search = h("input", { type: "search", placeholder: "Search metrics, options and tags", "aria-label": "Search columns",
    oninput: () => draw() });
  const set = (next) => {
    columns = next;
    changed(columns);
  };
  function entry(column) {
    const box = h("input", { type: "checkbox", checked: columns.includes(column), onchange: () => {
      set(box.checked ? [...columns, column] : columns.filter((other) => other !== column));
      drawOrder();
    } });
    return h("label", { class: "check" }, box, h("span", {}, titleOf(column)));
  }
  const order = h("ol", { class: "chooser-order", "aria-label": "Shown columns" });
  function drawOrder() {
    const move = (from, to) => {
      const next = [...columns];
      next.splice(to, 0, ...next.splice(from, 1));
      set(next);
      drawOrder();
      order.children[to].querySelector(from < to ? ".down" : ".up").focus();
    };
    replace(order, columns.map((column, i) => h("li", {},
      h("span", { class: "ellipsis", title: column }, titleOf(column)),
      h("button", { type: "button", class: "quiet up", disabled: i === 0, "aria-label": `Move ${titleOf(column)} left`,
        onclick: () => move(i, i - 1) }, "↑"),
      h("button", { type: "button", class: "quiet down", disabled: i + 1 === columns.length,
        "aria-label": `Move ${titleOf(column)} right`, onclick: () => move(i, i + 1) }, "↓"),
      h("button", { type: "button", class: "quiet", "aria-label": `Hide ${titleOf(column)}`, onclick: () => {
        set(columns.filter((other) => other !== column));
        drawOrder();
        draw();
      } }, "×"))),
    columns.length === 0 && h("li", { class: "muted" }, "none"));
  }
  function draw() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = known.filter((column) => words.every((word) => column.toLowerCase().includes(word)));
    const sections = [["metrics", "Metrics"], ["params", "Options"], ["tags", "Tags"]].map(([prefix, title]) => {
      const names = found.slice(0, LISTED).filter((column) => column.startsWith(`${prefix}.`));
      return names.length > 0 && h("fieldset", {}, h("legend", {}, title), names.map(entry));
    });
    replace(list, sections, found.length === 0 && h("p", { class: "muted" }, "No matching column."),
      found.length > LISTED && h("p", { class: "muted" }, `${formatNumber(found.length - LISTED)} more; refine the search.`));
  }
  draw();
  drawOrder();
  const element = dialog(title,
    search,
    h("div", { class: "chooser" }, list, h("div", {}, h("h3", {}, "Shown, in this order"), order)),
    h("div", { class: "actions" }, h("button", { type: "button", class: "primary", onclick: () => element.close() }, "Done")));
  search.focus();
}
