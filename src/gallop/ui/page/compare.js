// The comparison of runs: curves, parallel coordinates, scatter plot, configurations.

import { get } from "./api.js";
import { chartControls, settingsOf } from "./chart_controls.js";
import { ChartGrid } from "./chart_grid.js";
import { choose } from "./chosen.js";
import { knownColumns } from "./columns.js";
import { showConfigurations } from "./configurations.js";
import { lookElement } from "./curves.js";
import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { anyOf, filtersOf } from "./filters.js";
import { counted, formatNumber } from "./format.js";
import { onKeys } from "./keys.js";
import { onChange } from "./live.js";
import { showParallel } from "./parallel.js";
import { amend, link, one, parse } from "./routes.js";
import { nameElement } from "./run_name.js";
import { parallelRuns } from "./run_values.js";
import { showScatter } from "./scatter.js";
import { linksOf, loadBands, loadCurves } from "./series.js";
import { Tabs } from "./tabs.js";
import { looksOf, theme } from "./theme.js";

const MOST_CURVES = 50;
const VIEWS = [["", "Curves"], ["parallel", "Parallel coordinates"], ["scatter", "Scatter"], ["options", "Configurations"]];

class Compare {
  constructor(root, { query }, signal) {
    this.signal = signal;
    this.root = root;
    this.query = query;
    this.view = one(query, "view");
    this.chosenNames = query.runs ?? [];
    this.isFilter = this.chosenNames.length === 0;
    this.filter = this.isFilter ? one(query, "filter") : anyOf(this.chosenNames);
    this.filters = this.isFilter ? [this.filter] : filtersOf(this.chosenNames);
    this.group = one(query, "group");
    this.hidden = new Set();
    this.names = this.chosenNames.slice(0, MOST_CURVES);
    this.count = this.chosenNames.length;
    this.metricsOf = new Map(); // By run.
    this.error = errorLine();
    this.tabs = new Tabs(VIEWS, (view) => this.show(view));
    this.heading = h("h1", {});
    this.panel = h("div", { class: "panel", role: "tabpanel" });
    this.note = h("p", { class: "muted hint", hidden: true });
    replace(root, h("div", { class: "page-head" }, this.heading, this.tabs.element), this.note, this.error, this.panel);
    onChange(signal, (change) => this.changed(change));
    theme.addEventListener("change", () => this.redraw(), { signal });
    onKeys(signal, { "/": () => root.querySelector("input[type=search]")?.focus() });
    this.start();
  }

  async start() {
    try {
      if (this.isFilter) {
        const answer = await get("runs", { filter: this.filter, limit: MOST_CURVES }, this.signal);
        this.names = answer.runs.map((run) => run.name);
        this.count = answer.matching;
      }
    } catch (error) {
      this.error.report(error, this.signal);
    }
    if (this.signal.aborted) return;
    this.heading.textContent = counted(this.count, "run");
    if (this.count === 0) {
      replace(this.panel, h("div", { class: "empty" }, h("h2", {}, "No runs to compare"), h("p", {}, "Select some in the runs table."),
        h("a", { class: "button", href: link("") }, "Show runs")));
      return;
    }
    if (this.isFilter && this.filter) this.heading.append(h("span", { class: "muted of-filter" }, ` with ${this.filter}`));
    this.looks = looksOf(this.names);
    this.show(this.view);
  }

  show(view) {
    const signal = this.tabs.begin(this.signal);
    this.view = this.tabs.select(view);
    this.grid = null;
    this.reload = null;
    replace(this.panel);
    this.drawNote();
    const { query } = parse(location.hash);
    if (this.view === "parallel") this.reload = showParallel(this.panel, { source: parallelRuns(this.filters, signal), signal });
    else if (this.view === "scatter") this.reload = showScatter(this.panel, { filters: this.filters, query, signal });
    else if (this.view === "options") this.reload = showConfigurations(this.panel, { names: this.names, looks: this.looks, query, signal });
    else this.showCurves(query, signal);
  }

  drawNote() {
    const isCurves = this.view === "";
    const isCut = this.count > this.names.length && (isCurves || this.view === "options");
    const those = `The ${this.isFilter ? "newest" : "first"} ${formatNumber(this.names.length)} of ${counted(this.count, "run")}`;
    const text = isCurves && this.group ? `Means of all ${counted(this.count, "run")}. Dark bands: one standard deviation; light bands: least and most.`
      : isCut ? `${those}${isCurves ? "; group by a column to see means of all." : "."}` : "";
    this.note.textContent = text;
    this.note.hidden = !text;
  }

  // Curves.

  async showCurves(query, signal) {
    const settings = settingsOf(query);
    this.grid = new ChartGrid({
      settings,
      load: async (metric, what) => (this.group
        ? loadBands(metric, this.group, this.filter, settings, what)
        : (await loadCurves(metric, this.names, this.looks, settings, what)).map((one) => ({ ...one, isHidden: this.hidden.has(one.name) }))),
      lines: () => this.names.length,
      links: (metric) => (this.group && this.count > this.names.length ? []
        : linksOf(metric, this.names.filter((name) => !this.hidden.has(name)), settings)),
    }, { scroller: this.root, signal });
    this.groupSelect = h("select", { id: "group", "aria-label": "Group by", onchange: () => {
      this.group = this.groupSelect.value;
      amend({ group: this.group });
      this.drawSide();
      this.drawNote();
      this.grid.resetZoom();
      this.grid.reload();
    } }, h("option", { value: "" }, "nothing"));
    this.side = h("aside", { class: "side", "aria-label": "Runs" });
    replace(this.panel, h("div", { class: "toolbar sticky" }, chartControls(settings, (name) => this.grid.changed(name)),
      h("label", { class: "field" }, h("span", {}, "Group by"), this.groupSelect)),
    h("div", { class: "with-side" }, this.side, h("div", { class: "main" }, this.grid.children())));
    this.drawSide();
    await this.readMetrics();
  }

  async readMetrics() {
    const { grid } = this;
    const { signal } = this.tabs.end;
    try {
      const known = await knownColumns(signal);
      if (!this.isFilter) await this.readMetricsOfRuns(signal);
      if (signal.aborted) return;
      this.drawGroupable(["state", ...known.filter((column) => !column.startsWith("metrics."))]);
      grid.setMetrics(this.isFilter
        ? known.filter((column) => column.startsWith("metrics.")).map((column) => column.slice("metrics.".length))
        : [...new Set([...this.metricsOf.values()].flat())]);
    } catch (error) {
      this.error.report(error, signal);
    }
  }

  // Loads the metrics of runs whose metrics are unknown; deleted runs are omitted.
  async readMetricsOfRuns(signal) {
    const gone = [];
    await Promise.all(this.names.filter((name) => !this.metricsOf.has(name)).map(async (name) => {
      try {
        const { metrics } = await get("run", { name }, signal);
        this.metricsOf.set(name, metrics.map((metric) => metric.name));
      } catch (error) {
        if (error.status !== 404) throw error;
        gone.push(name);
      }
    }));
    if (gone.length === 0 || signal.aborted) return;
    this.names = this.names.filter((name) => !gone.includes(name));
    this.error.show(`there is no run ${gone.map((name) => `'${name}'`).join(", ")}`);
    this.drawSide();
  }

  drawGroupable(columns) {
    if (String(columns) === this.groupable && this.groupSelect.options.length > 1) return;
    this.groupable = String(columns);
    replace(this.groupSelect, h("option", { value: "" }, "nothing"), columns.map((column) =>
      h("option", { value: column, selected: column === this.group }, column.replace("params.", ""))));
  }

  drawSide() {
    const all = h("button", { type: "button", class: "link", onclick: () => {
      const isAny = this.hidden.size > 0;
      this.hidden = new Set(isAny ? [] : this.names);
      this.hide();
    } }, this.hidden.size > 0 ? "Show all" : "Hide all");
    this.side.hidden = Boolean(this.group);
    replace(this.side, h("details", { open: !matchMedia("(max-width: 800px)").matches }, h("summary", {}, "Runs", all),
      h("ul", { class: "side-runs" }, this.names.map((name) => h("li", { class: this.hidden.has(name) ? "off" : "" },
        h("button", { type: "button", class: "eye", "aria-pressed": String(!this.hidden.has(name)), "aria-label": `Show ${name}`, title: "Show or hide; a double click shows it alone",
          onclick: () => {
            if (!this.hidden.delete(name)) this.hidden.add(name);
            this.hide();
          }, ondblclick: () => {
            this.hidden = new Set(this.names.filter((other) => other !== name));
            this.hide();
          } }, lookElement(this.looks.get(name))),
        nameElement(name),
        !this.isFilter && this.names.length > 1 && h("button", { type: "button", class: "quiet drop", "aria-label": `Leave out ${name}`, title: "Leave out",
          onclick: () => this.drop(name) }, "×"))))));
  }

  hide() {
    const focused = this.side.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    this.drawSide();
    if (focused) this.side.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
    this.grid.hide((name) => this.hidden.has(name));
  }

  drop(name) {
    choose([name], false);
    const { path, query } = parse(location.hash);
    location.hash = link(path, { ...query, runs: this.chosenNames.filter((other) => other !== name) });
  }

  // Changes.

  async changed(change) {
    const isOurs = !change || this.isFilter || this.names.some((name) => change.changed.has(name) || change.removed.has(name));
    if (!isOurs) return;
    for (const name of change ? [...change.changed, ...change.removed] : this.names) this.metricsOf.delete(name);
    if (this.grid) {
      await this.readMetrics();
      this.grid?.reload();
    } else {
      this.reload?.();
    }
  }

  redraw() {
    if (!this.looks) return;
    this.looks = looksOf(this.names);
    if (this.grid) {
      this.drawSide();
      this.grid.reload();
    } else if (this.view === "options") {
      this.show(this.view);
    }
  }
}

/** Shows the comparison until the signal is aborted. */
export function showCompare(root, route, session, signal) {
  new Compare(root, route, signal);
}
