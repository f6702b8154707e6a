// A tab that shows a file of a run, its updates, or a hint if it does not exist.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";

/**
 * Shows the file until the signal is aborted; returns a function that reloads it. `content(kept)` is its rendering,
 * called again after changes; `nothing` is a heading and elements for a run without it; the optional `kept(value,
 * isSame)` is called with each response.
 */
export function showKept(root, { path, name, signal, nothing, content, kept }) {
  const error = errorLine();
  const place = h("div", {});
  replace(root, error, place);
  let shown = "";
  async function read() {
    let value;
    try {
      value = await get(path, { name }, signal);
    } catch (failure) {
      if (failure.status !== 404) {
        error.report(failure, signal);
        return;
      }
      shown = "";
      const [heading, ...rest] = nothing;
      replace(place, h("div", { class: "empty" }, h("h2", {}, heading), rest));
      return;
    }
    if (signal.aborted) return;
    error.show("");
    const text = JSON.stringify(value);
    const isSame = text === shown;
    shown = text;
    if (!isSame) replace(place, content(value));
    kept?.(value, isSame);
  }
  read();
  return read;
}
