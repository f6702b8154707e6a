// Names of runs. They often differ at their ends alone: where room is short, it is the middle that is left out.

import { h } from "./dom.js";
import { runLink } from "./routes.js";

const END_LETTERS = 5;

/** A name; `href`: where it leads, null for nowhere. Other attributes are those of the element. */
export function nameElement(name, href = runLink(name), attributes = {}) {
  const letters = [...name];
  const end = letters.length > 2 * END_LETTERS ? letters.splice(-END_LETTERS).join("") : "";
  return h(href ? "a" : "span", { ...attributes, class: "name-parts", href, title: name }, h("span", {}, letters.join("")), end && h("span", {}, end));
}
