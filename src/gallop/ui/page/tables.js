// Tables that are short enough to be there as a whole.

import { h } from "./dom.js";

/**
 * `heads`: {text, title, isNumber} of each column. `rows`: {cells, ...attributes} of each row; a cell is what it shows, or
 * {content, title}. The first cell names its row.
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

/** Names and what is said of them: lists of [name, ...children]; what is no list is left out. */
export function facts(list) {
  return h("dl", { class: "facts" }, list.filter(Boolean).map(([name, ...children]) => [h("dt", {}, name), h("dd", {}, children)]));
}

/** A part of a page with a heading. */
export const box = (title, ...children) => h("section", { class: "box" }, h("h2", {}, title), children);
