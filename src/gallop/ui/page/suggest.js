// Autocompletion of names in a formula.

import { h, replace } from "./dom.js";
import { nameInFormula } from "./filters.js";

const OFFERED = 8;
const WORDS = new Set(["and", "or", "not"]);

/** The input with a list below it; `names()` returns all candidates. */
export function withSuggestions(input, names) {
  const list = h("ul", { class: "suggestions", role: "listbox", id: `${input.id}-names`, "aria-label": "Names", hidden: true });
  let found = [];
  let at = -1;

  const wordBefore = () => /[A-Za-z_][\w./:-]*$/.exec(input.value.slice(0, input.selectionStart))?.[0] ?? "";

  function close() {
    found = [];
    at = -1;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function take(name) {
    const caret = input.selectionStart;
    const begin = caret - wordBefore().length;
    input.setRangeText(`${nameInFormula(name)} `, begin, caret, "end");
    close();
    input.dispatchEvent(new Event("input", { bubbles: true }));
    close();
    input.focus();
  }
  function draw() {
    replace(list, found.map((name, i) => h("li", { role: "option", id: `${list.id}-${i}`, "aria-selected": String(i === at),
      onpointerdown: (event) => {
        event.preventDefault();
        take(name);
      } }, name)));
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
    if (at >= 0) input.setAttribute("aria-activedescendant", `${list.id}-${at}`);
    else input.removeAttribute("aria-activedescendant");
  }
  input.addEventListener("input", () => {
    const word = wordBefore().toLowerCase();
    at = -1;
    found = [];
    const isQuoted = (input.value.slice(0, input.selectionStart).match(/["']/g) ?? []).length % 2 === 1;
    if (word && !WORDS.has(word) && !isQuoted) {
      const all = names().filter((name) => name.toLowerCase().includes(word));
      const begins = (name) => Number(name.toLowerCase().startsWith(word) || name.toLowerCase().includes(`.${word}`));
      found = all.sort((a, b) => begins(b) - begins(a)).slice(0, OFFERED);
      if (found.length === 1 && found[0] === word) found = [];
    }
    draw();
  });
  // Captures keys of the list before other listeners of the input.
  input.addEventListener("keydown", (event) => {
    if (found.length === 0) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      at = (at + (event.key === "ArrowDown" ? 1 : found.length) + (at < 0 && event.key === "ArrowUp" ? 1 : 0)) % found.length;
      draw();
    } else if ((event.key === "Enter" && at >= 0) || (event.key === "Tab" && !event.shiftKey)) {
      take(found[Math.max(at, 0)]);
    } else if (event.key === "Escape") {
      close();
    } else {
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
  });
  input.addEventListener("blur", close);
  for (const [name, value] of [["role", "combobox"], ["aria-autocomplete", "list"], ["aria-controls", list.id], ["aria-expanded", "false"]]) {
    input.setAttribute(name, value);
  }
  return h("div", { class: "suggested" }, input, list);
}
