// Names of runs. They often differ only at their ends: if space is short, the middle is omitted.

import { h } from "./dom.js";
import { runLink } from "./routes.js";

const END_LETTERS = 5;

/** A name in one line: control characters are replaced by symbols, and bidirectional overrides are removed. */
export const inOneLine = (name) => name.replace(/[\u0000-\u001f\u007f]/g, (letter) => (letter === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + letter.charCodeAt(0))))
  .replace(/[\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** A name; `href` is its link, null for none. Other attributes are passed to the element. */
export function nameElement(name, href = runLink(name), attributes = {}) {
  const letters = [...inOneLine(name)];
  const end = letters.length > 2 * END_LETTERS ? letters.splice(-END_LETTERS).join("") : "";
  return h(href ? "a" : "span", { ...attributes, class: "name-parts", href, title: name }, h("span", {}, letters.join("")), end && h("span", {}, end));
}
