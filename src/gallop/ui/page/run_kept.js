// What a file of a run says, in a place of its tab: as it is, as it becomes, or what there is to know where there is none.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";

/**
 * Shows it until the signal is aborted; gives what shows it as it has become. `content(kept)` is what stands there, made again
 * where it has changed; `nothing` a heading and the elements below it, for a run that has none; `kept(value, isSame)`, where
 * given, learns of each answer.
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
        error.tell(failure, signal);
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
