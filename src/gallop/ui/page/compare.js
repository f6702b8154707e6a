// The comparison of runs: curves, parallel coordinates, scatter plot, configurations.

import { get, newestRequest } from "./api.js";
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
// The server reads 8 KiB per value, and 16 KiB of headers: the encoded filter, and about 2 KiB of others.
const MOST_BYTES = { plain: 8 << 10, encoded: 14 << 10 };
const VIEWS = [["", "Curves"], ["parallel", "Parallel coordinates"], ["scatter", "Scatter"], ["options", "Configurations"]];

const fits = (filter) => new TextEncoder().encode(filter).length <= MOST_BYTES.plain && encodeURIComponent(filter).length <= MOST_BYTES.encoded;

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
    this.canGroup = fits(this.filter);
    this.group = this.canGroup ? one(query, "group") : "";
    this.hidden = new Set();
    this.names = [];
    this.count = 0;
    this.looks = new Map();
    this.beginRead = newestRequest(); // The request for the runs of the filter.
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
      if (!this.isFilter) this.setNames(this.chosenNames.slice(0, MOST_CURVES), this.chosenNames.length);
      else if (!await this.readNames()) return;
    } catch (error) {
      this.error.report(error, this.signal);
      return;
    }
    this.show(this.view);
  }

  // Loads the newest runs that match the filter. Resolves to false if a later request replaces this one.
  async readNames() {
    const isNewest = this.beginRead();
    const { runs, matching } = await get("runs", { filter: this.filter, limit: MOST_CURVES }, this.signal);
    if (!isNewest()) return false;
    this.error.show("");
    this.setNames(runs.map((run) => run.name), matching);
    return true;
  }

  setNames(names, count) {
    const text = JSON.stringify([names, count]);
    if (text === this.shown) return;
    this.shown = text;
    Object.assign(this, { names, count, hidden: new Set(names.filter((name) => this.hidden.has(name))) });
    // Runs that are already shown keep their looks.
    this.looks = looksOf([...names.filter((name) => this.looks.has(name)), ...names.filter((name) => !this.looks.has(name))]);
    replace(this.heading, counted(count, "run"), this.isFilter && this.filter && h("span", { class: "muted of-filter" }, ` with ${this.filter}`));
    this.drawNote();
    if (this.grid) this.drawSide();
  }

  show(view) {
    const signal = this.tabs.begin(this.signal);
    this.view = this.tabs.select(view);
    this.grid = null;
    this.reload = null;
    replace(this.panel);
    this.drawNote();
    const { query } = parse(location.hash);
    if (this.names.length === 0) {
      replace(this.panel, h("div", { class: "empty" }, h("h2", {}, "No runs to compare"), h("p", {}, "Select some in the runs table."),
        h("a", { class: "button", href: link("") }, "Show runs")));
      return;
    }
    switch (this.view) {
      case "parallel": this.reload = showParallel(this.panel, { source: parallelRuns(this.filters, signal), signal }); break;
      case "scatter": this.reload = showScatter(this.panel, { filters: this.filters, query, signal }); break;
      case "options": this.reload = showConfigurations(this.panel, { names: () => this.names, looks: () => this.looks, query, signal }); break;
      default: this.showCurves(query, signal);
    }
  }

  drawNote() {
    const isCurves = this.view === "";
    const isCut = this.count > this.names.length && (isCurves || this.view === "options");
    const those = `The ${this.isFilter ? "newest" : "first"} ${formatNumber(this.names.length)} of ${counted(this.count, "run")}`;
    const hint = isCurves && this.canGroup ? "; group by a column to see means of all." : ".";
    const text = isCurves && this.group ? `Means of ${counted(this.count, "run")}. Dark bands: one standard deviation; light bands: minimum and maximum.`
      : isCut ? `${those}${hint}` : "";
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
    const whyNot = this.canGroup ? null : "Too many selected runs to group; use a filter";
    this.groupSelect = h("select", { id: "group", "aria-label": "Group by", disabled: !this.canGroup, title: whyNot, onchange: () => {
      this.group = this.groupSelect.value;
      amend({ group: this.group });
      this.drawSide();
      this.drawNote();
      this.grid.resetZoom();
      this.grid.reload();
      this.readMetrics();
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
    const isOfAll = () => this.isFilter && Boolean(this.group);
    try {
      const known = await knownColumns(this.signal);
      if (!isOfAll()) await this.readMetricsOfRuns();
      if (grid !== this.grid) return;
      if (this.names.length === 0) {
        this.show(this.view);
        return;
      }
      this.drawGroupable(["state", ...known.filter((column) => !column.startsWith("metrics."))]);
      grid.setMetrics(isOfAll()
        ? known.filter((column) => column.startsWith("metrics.")).map((column) => column.slice("metrics.".length))
        : [...new Set(this.names.flatMap((name) => this.metricsOf.get(name) ?? []))]);
    } catch (error) {
      this.error.report(error, this.signal);
    }
  }

  // Loads the metrics of runs whose metrics are unknown; deleted runs are omitted.
  async readMetricsOfRuns() {
    const gone = [];
    await Promise.all(this.names.filter((name) => !this.metricsOf.has(name)).map(async (name) => {
      try {
        const { metrics } = await get("run", { name }, this.signal);
        this.metricsOf.set(name, metrics.map((metric) => metric.name));
      } catch (error) {
        if (error.status !== 404) throw error;
        gone.push(name);
      }
    }));
    const left = this.names.filter((name) => !gone.includes(name));
    if (left.length === this.names.length) return;
    if (!this.isFilter) this.error.show(`there is no run ${gone.map((name) => `'${name}'`).join(", ")}`);
    this.setNames(left, this.count - (this.names.length - left.length));
  }

  drawGroupable(columns) {
    if (String(columns) === this.groupable && this.groupSelect.options.length > 1) return;
    this.groupable = String(columns);
    replace(this.groupSelect, h("option", { value: "" }, "nothing"), columns.map((column) =>
      h("option", { value: column, selected: column === this.group }, column.replace("params.", ""))));
  }

  drawSide() {
    const focused = this.side.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    const isOpen = this.side.querySelector("details")?.open ?? !matchMedia("(max-width: 800px)").matches;
    const all = h("button", { type: "button", class: "link", onclick: () => {
      const isAny = this.hidden.size > 0;
      this.hidden = new Set(isAny ? [] : this.names);
      this.hide();
    } }, this.hidden.size > 0 ? "Show all" : "Hide all");
    this.side.hidden = Boolean(this.group);
    replace(this.side, h("details", { open: isOpen }, h("summary", {}, "Runs", all),
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
    if (focused) this.side.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }

  hide() {
    this.drawSide();
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
    if (this.names.length === 0) {
      this.start();
      return;
    }
    try {
      if (!this.isFilter) await this.readMetricsOfRuns();
      else if (!await this.readNames()) return;
    } catch (error) {
      this.error.report(error, this.signal);
      return;
    }
    if (this.names.length === 0) {
      this.show(this.view);
    } else if (this.grid) {
      await this.readMetrics();
      this.grid?.reload();
    } else {
      this.reload?.();
    }
  }

  redraw() {
    this.looks = looksOf(this.names);
    if (this.grid) {
      this.drawSide();
      this.grid.reload();
    } else if (this.view === "options") {
      this.reload?.();
    }
  }
}

/** Shows the comparison until the signal is aborted. */
export function showCompare(root, route, session, signal) {
  new Compare(root, route, signal);
}
