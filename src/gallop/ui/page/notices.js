// Toasts: short messages that disappear by themselves.

import { h } from "./dom.js";

const SHOWN_MS = 10000;

/** Shows a message with an optional action: {label, call}. */
export function notice(text, action) {
  const element = h("div", { class: "notice" }, h("span", {}, text));
  const close = () => element.remove();
  if (action) {
    element.append(h("button", { type: "button", class: "link", onclick: () => {
      close();
      action.call();
    } }, action.label));
  }
  element.append(h("button", { type: "button", class: "quiet", "aria-label": "Close", onclick: close }, "×"));
  document.getElementById("notices").append(element);
  let timer = setTimeout(close, SHOWN_MS);
  element.addEventListener("pointerenter", () => clearTimeout(timer));
  element.addEventListener("pointerleave", () => {
    timer = setTimeout(close, SHOWN_MS / 2);
  });
}
