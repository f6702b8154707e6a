// The list of searches for a faster recipe, with their progress and gain.

import { get } from "./api.js";
import { stateElement } from "./columns.js";
import { h, renew, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { counted, formatDuration, timeElement } from "./format.js";
import { onChange } from "./live.js";
import { searchLink } from "./routes.js";
import { plainTable } from "./tables.js";

/** "1.25x" */
export const gainText = (gain) => `${gain.toFixed(2)}x`;

/** The part of a search's budget that is used, as a bar and in words. */
export function budgetElement({ seconds, budget_seconds: budget }) {
  return h("span", { class: "progress" },
    h("span", { class: "progress-bar", "aria-hidden": "true" }, h("span", { class: "complete", style: { width: `${Math.min(100, (100 * seconds) / budget)}%` } })),
    h("span", {}, `${formatDuration(seconds)} of ${formatDuration(budget)}`));
}

function rowOf(search) {
  const name = h("a", { href: searchLink(search.name) }, search.name);
  const state = stateElement(search.state);
  if (search.trouble) return { cells: [name, state, "", "", "", h("span", { class: "error" }, search.trouble), ""] };
  if (search.trials === undefined) return { cells: [name, state, "", "", "", "none yet", timeElement(search.changed)] };
  return { cells: [name, state, search.goal, search.state === "finished" ? gainText(search.gain) : "", budgetElement(search),
    `${counted(search.trials, "change")}, ${search.kept} kept`, timeElement(search.changed)] };
}

/** Shows all searches until the signal is aborted. */
export function showSearches(root, route, session, signal) {
  const error = errorLine();
  const panel = h("div", { class: "boxes" });
  replace(root, h("div", { class: "page-head" }, h("h1", {}, "Optimize")), error, panel);
  let shown = "";

  async function read() {
    let searches;
    try {
      ({ searches } = await get("searches", {}, signal));
    } catch (failure) {
      error.report(failure, signal);
      return;
    }
    error.show("");
    const text = JSON.stringify(searches);
    if (text === shown) return;
    shown = text;
    if (searches.length === 0) {
      renew(panel, h("div", { class: "empty" }, h("h2", {}, "No searches yet"), h("p", {}, "A search makes a recipe faster, and measures the gain of each change. To start one:"),
        h("pre", { class: "command" }, "gallop optimize RECIPE")));
      return;
    }
    searches.sort((a, b) => (b.changed ?? 0) - (a.changed ?? 0));
    renew(panel, h("section", { class: "box" }, plainTable([{ text: "search" }, { text: "state" }, { text: "goal" }, { text: "gain", isNumber: true },
      { text: "budget" }, { text: "tried" }, { text: "last change" }], searches.map(rowOf))));
  }

  onChange(signal, read, "searches");
  read();
}
