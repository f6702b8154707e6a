// Lines that say what went wrong, where it belongs.

import { ApiError } from "./api.js";
import { h } from "./dom.js";

/** Empty and hidden while nothing is wrong. */
export function errorLine() {
  const line = h("p", { class: "error", role: "alert", hidden: true });
  line.show = (text) => {
    if (line.textContent !== text) line.textContent = text;
    line.hidden = !text;
  };
  /** Says what the server refused; that it does not answer is said elsewhere, and what is no longer awaited is not said. */
  line.tell = (error, signal) => {
    if (signal.aborted) return;
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 0) line.show(error.message);
  };
  return line;
}
