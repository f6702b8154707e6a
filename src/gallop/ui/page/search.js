// The page of one search: its result, all changes that were tried, and its experiments.

import { address, get } from "./api.js";
import { stateElement } from "./columns.js";
import { h, renew, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { formatDuration } from "./format.js";
import { onChange } from "./live.js";
import { link, one } from "./routes.js";
import { budgetElement } from "./searches.js";
import { box, facts, plainTable } from "./tables.js";
import { Tabs } from "./tabs.js";

const VIEWS = [["", "Result"], ["changes", "Changes"], ["journal", "Journal"]];
const OF_CHANGES = ["Changes", "Predictions"]; // The tables of the second view.

const VERDICTS = { kept: "complete", reverted: "stopped", failed: "failed" }; // With the dots of these states.

const verdictElement = (text) => h("span", { class: `state ${VERDICTS[text.split(":", 1)[0]] ?? ""}` }, text);

// A table of the report, the first row of which names its columns.
function reportTable({ title, rows, note }) {
  const [heads, ...lines] = rows;
  const verdict = heads.indexOf("verdict");
  return box(title, plainTable(heads.map((text) => ({ text })), lines.map((cells) => ({ cells: cells.map((cell, i) => (i === verdict ? verdictElement(cell) : cell)) })), "report"),
    note && h("p", { class: "muted again" }, note));
}

class SearchPage {
  constructor(root, { query }, signal) {
    this.name = one(query, "name");
    this.view = one(query, "view");
    this.signal = signal;
    this.version = 0; // Cache-busting version of the plot.
    this.error = errorLine();
    this.tabs = new Tabs(VIEWS, (view) => this.show(view));
    this.state = h("span", {});
    this.head = h("div", { class: "page-head", hidden: true }, h("h1", {}, this.name), this.state, this.tabs.element);
    this.panel = h("div", { class: "panel", role: "tabpanel" });
    replace(root, this.head, this.error, this.panel);
    const isOurs = (change) => !change || change.changed.has(this.name);
    onChange(signal, (change) => isOurs(change) && this.read(), "searches");
    this.read();
  }

  async read() {
    let search;
    try {
      search = await get("search", { name: this.name }, this.signal);
    } catch (error) {
      if (error.status === 404) this.missing(error.message);
      else this.error.report(error, this.signal);
      return;
    }
    this.error.show("");
    const text = JSON.stringify(search);
    if (text === this.shown) return;
    const isFirst = !this.shown;
    this.shown = text;
    this.search = search;
    this.version += 1;
    this.head.hidden = false;
    renew(this.state, stateElement(search.state));
    if (isFirst) this.show(this.view);
    else this.draw();
  }

  missing(message) {
    this.head.hidden = true;
    this.shown = "";
    this.tabs.end?.abort();
    replace(this.panel, h("div", { class: "empty" }, h("h2", {}, "Search not found"), h("p", {}, message),
      h("a", { class: "button", href: link("searches") }, "Show searches")));
  }

  show(view) {
    this.tabs.begin(this.signal);
    this.view = this.tabs.select(view);
    this.place = h("div", { class: "boxes" });
    replace(this.panel, this.place);
    this.draw();
  }

  draw() {
    switch (this.view) {
      case "changes": renew(this.place, this.changes()); break;
      case "journal": renew(this.place, this.journal()); break;
      default: renew(this.place, this.result());
    }
  }

  tables(isShown) {
    return (this.search.report?.tables ?? []).filter(({ title }) => isShown(title)).map(reportTable);
  }

  result() {
    const { report, state, experiments, has_plot: hasPlot } = this.search;
    const isFinished = state === "finished";
    const summary = report && facts([
      ["Recipe", h("code", {}, report.recipe)],
      ["Goal", report.goal],
      ["Budget", budgetElement(report)],
      ["Tried", `${report.trials.length} changes, of which ${this.search.kept} are kept`],
      ["Experiments", String(experiments.length)],
    ]);
    const rerun = { running: "The report is written when the search ends.", stopped: "The search was stopped. The same command continues it." }[state];
    return [
      box(isFinished ? report.headline : "Search", summary, rerun && h("p", { class: "muted" }, rerun),
        isFinished && h("p", { class: "muted again" }, "The best recipe:"), isFinished && h("pre", { class: "command wrapped" }, report.command)),
      hasPlot && box("From the original recipe to the best one", h("div", { class: "scrolled" },
        h("img", { class: "picture", alt: "waterfall of the gains", src: address("search/plot.svg", { name: this.name, v: this.version }) }))),
      this.tables((title) => !OF_CHANGES.includes(title)),
    ];
  }

  changes() {
    const tables = this.tables((title) => OF_CHANGES.includes(title));
    return tables.length > 0 ? tables : h("p", { class: "muted nothing" }, "No change has been tried yet.");
  }

  // The newest first.
  journal() {
    const { experiments } = this.search;
    if (experiments.length === 0) return h("p", { class: "muted nothing" }, "No experiment has ended yet.");
    return box("Experiments", plainTable([{ text: "experiment" }, { text: "took", isNumber: true }, { text: "outcome" }],
      experiments.map(({ experiment, seconds, outcome }) => ({ cells: [h("code", {}, experiment), formatDuration(seconds), outcome] })).reverse(), "report"));
  }
}

/** Shows a search until the signal is aborted. */
export function showSearch(root, route, session, signal) {
  new SearchPage(root, route, signal);
}
