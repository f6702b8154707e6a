// Keyboard shortcuts, and the list of them that "?" shows.

import { dialog, h } from "./dom.js";

const LISTED = [
  ["Runs", [
    [["/"], "focus the filter"],
    [["↑", "↓", "Page Up", "Page Down", "Home", "End"], "move to another run"],
    [["Enter"], "open the run, or the group"],
    [["Space"], "select the run; with Shift, all up to it"],
    [["c"], "compare the selected runs, or all"],
    [["Escape"], "leave the filter; in the table, clear the selection"],
  ]],
  ["Charts", [
    [["/"], "focus the search"],
    [["←", "→"], "move the cursor in a chart"],
    [["+", "−"], "zoom in and out around it"],
    [["0"], "reset the zoom, like a double click"],
  ]],
  ["Timeline of a profile", [
    [["←", "→", "↑", "↓"], "move to another span"],
    [["Shift ←", "Shift →"], "pan"],
    [["+", "−"], "zoom in and out"],
    [["0"], "show all"],
  ]],
  ["Everywhere", [
    [["g"], "show the runs"],
    [["s"], "show the sweeps"],
    [["p"], "open the files of a profile"],
    [["o"], "show the searches for faster recipes"],
    [["t"], "toggle the theme"],
    [["?"], "show this list"],
  ]],
];

/** Shows all shortcuts. */
export function openKeys() {
  if (document.querySelector("dialog[open]")) return;
  dialog("Keys", h("div", { class: "keys" }, LISTED.map(([title, keys]) => h("section", {},
    h("h3", {}, title),
    h("dl", {}, keys.map(([names, text]) => [h("dt", {}, names.map((name) => h("kbd", {}, name))), h("dd", {}, text)]))))));
}

const isTyped = (element) => element.closest("input:not([type=checkbox]):not([type=range]), textarea, select, [contenteditable], dialog");

/** Registers functions ({key: function}) for keys pressed outside of fields, without Ctrl, Alt or Meta. */
export function onKeys(signal, keys) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || isTyped(event.target)) return;
    const call = keys[event.key];
    if (!call) return;
    event.preventDefault();
    call(event);
  }, { signal });
}
