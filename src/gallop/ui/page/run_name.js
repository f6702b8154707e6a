// Names of runs. They often differ at their ends alone: where room is short, it is the middle that is left out.

import { h } from "./dom.js";
import { runLink } from "./routes.js";

const END_LETTERS = 5;

/** A name in one line: control characters as their pictures, and what would turn its letters round as no letter. */
export const inOneLine = (name) => name.replace(/[\u0000-\u001f\u007f]/g, (letter) => (letter === "\u007f" ? "\u2421" : String.fromCharCode(0x2400 + letter.charCodeAt(0))))
  .replace(/[\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** A name; `href`: where it leads, null for nowhere. Other attributes are those of the element. */
export function nameElement(name, href = runLink(name), attributes = {}) {
  const letters = [...inOneLine(name)];
  const end = letters.length > 2 * END_LETTERS ? letters.splice(-END_LETTERS).join("") : "";
  return h(href ? "a" : "span", { ...attributes, class: "name-parts", href, title: name }, h("span", {}, letters.join("")), end && h("span", {}, end));
}
