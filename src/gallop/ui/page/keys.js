// Keys that do something, and the list of them that "?" shows.

import { dialog, h } from "./dom.js";

const LISTED = [
  ["Runs", [
    [["/"], "to the filter"],
    [["↑", "↓", "Page Up", "Page Down", "Home", "End"], "to another run"],
    [["Enter"], "open the run, or the group"],
    [["Space"], "choose the run; with Shift, all up to it"],
    [["c"], "compare the chosen runs, or all"],
    [["Escape"], "from the filter to the table; there, choose none"],
  ]],
  ["Charts", [
    [["/"], "to the search"],
    [["←", "→"], "move the pointer in a chart"],
    [["+", "−"], "zoom in and out around it"],
    [["0"], "show all again, as a double click does"],
  ]],
  ["Everywhere", [
    [["g"], "to the runs"],
    [["s"], "to the sweeps"],
    [["t"], "light or dark"],
    [["?"], "this list"],
  ]],
];

/** Shows all keys. */
export function openKeys() {
  if (document.querySelector("dialog[open]")) return;
  dialog("Keys", h("div", { class: "keys" }, LISTED.map(([title, keys]) => h("section", {},
    h("h3", {}, title),
    h("dl", {}, keys.map(([names, text]) => [h("dt", {}, names.map((name) => h("kbd", {}, name))), h("dd", {}, text)]))))));
}

const isTyped = (element) => element.closest("input:not([type=checkbox]):not([type=range]), textarea, select, [contenteditable], dialog");

/** Calls the function of a key ({key: function}) that is pressed outside of fields, without Ctrl, Alt or Meta. */
export function onKeys(signal, keys) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || isTyped(event.target)) return;
    const call = keys[event.key];
    if (!call) return;
    event.preventDefault();
    call(event);
  }, { signal });
}
