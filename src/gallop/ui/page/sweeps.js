// The list of sweeps with their progress and best results.

import { get } from "./api.js";
import { stateElement } from "./columns.js";
import { h, renew, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { counted, exactNumber, formatNumber, timeElement } from "./format.js";
import { onChange } from "./live.js";
import { sweepLink } from "./routes.js";
import { plainTable } from "./tables.js";

/** The progress of a sweep, as a bar and in words. */
export function progressElement(sweep) {
  const { wanted, complete, pruned, failed, running } = sweep;
  const done = complete + pruned + failed;
  const parts = [["complete", complete], ["pruned", pruned], ["failed", failed], ["running", running]].filter(([, count]) => count > 0);
  return h("span", { class: "progress" },
    h("span", { class: "progress-bar", "aria-hidden": "true" }, parts.map(([kind, count]) =>
      h("span", { class: kind, style: { width: `${(100 * count) / Math.max(wanted, done + running, 1)}%` } }))),
    h("span", {}, `${formatNumber(done)} of ${formatNumber(wanted)}`),
    h("span", { class: "muted" }, parts.filter(([kind]) => kind !== "complete").map(([kind, count]) => `, ${formatNumber(count)} ${kind}`).join("")));
}

// "accuracy 0.91", or the size of the Pareto front.
function bestElement({ best, objectives }) {
  if (best.length === 0) return h("span", { class: "muted" }, "none yet");
  if (objectives.length > 1) return counted(best.length, "trial");
  return h("span", { title: exactNumber(best[0].values[0]) }, formatNumber(best[0].values[0]));
}

function rowOf(sweep) {
  const name = h("a", { href: sweepLink(sweep.name) }, sweep.name);
  if (sweep.trouble) return { cells: [name, stateElement(sweep.state), h("span", { class: "error" }, sweep.trouble), "", "", "", "", ""] };
  return { cells: [name, stateElement(sweep.state), progressElement(sweep),
    sweep.objectives.map(({ metric, maximize }) => `${metric} ${maximize ? "↑" : "↓"}`).join(", "), bestElement(sweep),
    sweep.sampler, sweep.pruner, sweep.created > 0 ? timeElement(sweep.created) : ""] };
}

/** Shows all sweeps until the signal is aborted. */
export function showSweeps(root, route, session, signal) {
  const error = errorLine();
  const panel = h("div", { class: "boxes" });
  replace(root, h("div", { class: "page-head" }, h("h1", {}, "Sweeps")), error, panel);
  let shown = "";

  async function read() {
    let sweeps;
    try {
      ({ sweeps } = await get("sweeps", {}, signal));
    } catch (failure) {
      error.report(failure, signal);
      return;
    }
    error.show("");
    const text = JSON.stringify(sweeps);
    if (text === shown) return;
    shown = text;
    if (sweeps.length === 0) {
      renew(panel, h("div", { class: "empty" }, h("h2", {}, "No sweeps yet"), h("p", {}, "A sweep searches for the best values of options. To start one:"),
        h("pre", { class: "command" }, "gallop tune SWEEP")));
      return;
    }
    sweeps.sort((a, b) => (b.created ?? 0) - (a.created ?? 0));
    renew(panel, h("section", { class: "box" }, plainTable([{ text: "sweep" }, { text: "state" }, { text: "trials" }, { text: "metric" },
      { text: "best", isNumber: true }, { text: "sampler" }, { text: "pruner" }, { text: "began" }], sweeps.map(rowOf))));
  }

  onChange(signal, read, "sweeps");
  read();
}
