// Small tables that are rendered completely.

import { h } from "./dom.js";

/**
 * `heads`: {text, title, isNumber} for each column. `rows`: {cells, ...attributes} for each row; a cell is its content,
 * or {content, title}. The first cell is the row's header.
 */
export function plainTable(heads, rows, kind = "") {
  const align = (i) => (heads[i].isNumber ? "value" : null);
  const filled = (cell, i) => {
    const { content, title } = cell?.content !== undefined ? cell : { content: cell };
    return h(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : null, class: align(i), title }, content);
  };
  return h("div", { class: "scroll-x" }, h("table", { class: `plain ${kind}` },
    h("thead", {}, h("tr", {}, heads.map(({ text, title }, i) => h("th", { scope: "col", class: align(i), title }, text)))),
    h("tbody", {}, rows.map(({ cells, ...attributes }) => h("tr", attributes, cells.map(filled))))));
}

/** Definitions: a list of [name, ...children]; items that are not lists are omitted. */
export function facts(list) {
  return h("dl", { class: "facts" }, list.filter(Boolean).map(([name, ...children]) => [h("dt", {}, name), h("dd", {}, children)]));
}

/** A section of a page with a heading. */
export const box = (title, ...children) => h("section", { class: "box" }, h("h2", {}, title), children);
