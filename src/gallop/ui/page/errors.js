// Inline error messages.

import { ApiError } from "./api.js";
import { h } from "./dom.js";

/** Hidden while there is no error. */
export function errorLine() {
  const line = h("p", { class: "error", role: "alert", hidden: true });
  line.show = (text) => {
    if (line.textContent !== text) line.textContent = text;
    line.hidden = !text;
  };
  /** Shows the server's error message. A lost connection is reported elsewhere, and aborted requests are ignored. */
  line.report = (error, signal) => {
    if (signal.aborted) return;
    if (!(error instanceof ApiError)) throw error;
    if (error.status !== 0) line.show(error.message);
  };
  return line;
}
