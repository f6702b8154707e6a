// Runs beside each other: curves, parallel coordinates, scatter, configurations.

import { get } from "./api.js";
import { chartControls, settingsOf } from "./chart_controls.js";
import { ChartGrid } from "./chart_grid.js";
import { choose } from "./chosen.js";
import { knownColumns } from "./columns.js";
import { showConfigurations } from "./configurations.js";
import { lookElement } from "./curves.js";
import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { anyOf } from "./filters.js";
import { counted, formatNumber } from "./format.js";
import { onKeys } from "./keys.js";
import { onChange } from "./live.js";
import { showParallel } from "./parallel.js";
import { amend, link, one, parse, runLink } from "./routes.js";
import { showScatter } from "./scatter.js";
import { linksOf, loadBands, loadCurves } from "./series.js";
import { looksOf, theme } from "./theme.js";

const MOST_CURVES = 50;
const VIEWS = [["", "Curves"], ["parallel", "Parallel coordinates"], ["scatter", "Scatter"], ["options", "Configurations"]];

// The metrics that some of these runs have.
async function metricsOf(names, signal) {
  const found = new Set();
  const answers = await Promise.allSettled(names.map((name) => get("run", { name }, signal)));
  for (const { value } of answers) for (const metric of value?.metrics ?? []) found.add(metric.name);
  const failed = answers.find((answer) => answer.status === "rejected");
  if (failed && found.size === 0) throw failed.reason;
  return [...found];
}

class Compare {
  constructor(root, { query }, signal) {
    this.signal = signal;
    this.root = root;
    this.query = query;
    this.view = one(query, "view");
    this.chosenNames = query.runs ?? [];
    this.isFilter = this.chosenNames.length === 0;
    this.filter = this.isFilter ? one(query, "filter") : anyOf(this.chosenNames);
    this.group = one(query, "group");
    this.hidden = new Set();
    this.names = this.chosenNames.slice(0, MOST_CURVES);
    this.count = this.chosenNames.length;
    this.error = errorLine();
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
    this.heading = h("h1", {});
    this.panel = h("div", { class: "panel", role: "tabpanel" });
    this.note = h("p", { class: "muted hint", hidden: true });
    replace(root, h("div", { class: "page-head" }, this.heading, this.tabs), this.note, this.error, this.panel);
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
      this.error.tell(error, this.signal);
    }
    if (this.signal.aborted) return;
    this.heading.textContent = counted(this.count, "run");
    if (this.count === 0) {
      replace(this.panel, h("div", { class: "empty" }, h("h2", {}, "No runs to compare"), h("p", {}, "Choose some in the table of runs."),
        h("a", { class: "button", href: link("") }, "To the runs")));
      return;
    }
    if (this.isFilter && this.filter) this.heading.append(h("span", { class: "muted of-filter" }, ` with ${this.filter}`));
    this.looks = looksOf(this.names);
    this.show(this.view);
  }

  show(view) {
    this.panelAbort?.abort();
    this.panelAbort = new AbortController();
    this.signal.addEventListener("abort", () => this.panelAbort.abort(), { signal: this.panelAbort.signal });
    this.view = VIEWS.some(([name]) => name === view) ? view : "";
    amend({ view: this.view });
    replace(this.tabs, VIEWS.map(([name, text]) => h("button", { type: "button", role: "tab", "data-view": name, "aria-selected": String(name === this.view),
      tabindex: name === this.view ? 0 : -1, onclick: () => this.show(name), onkeydown: (event) => this.tabKey(event) }, text)));
    this.grid = null;
    this.reload = null;
    replace(this.panel);
    this.drawNote();
    const { signal } = this.panelAbort;
    const { query } = parse(location.hash);
    if (this.view === "parallel") this.reload = showParallel(this.panel, { filter: this.filter, signal });
    else if (this.view === "scatter") this.reload = showScatter(this.panel, { filter: this.filter, query, signal });
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

  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = VIEWS.findIndex(([name]) => name === this.view);
    this.show(VIEWS[(at + step + VIEWS.length) % VIEWS.length][0]);
    this.tabs.querySelector("[aria-selected=true]").focus();
  }

  // Curves.

  async showCurves(query, signal) {
    const settings = settingsOf(query);
    this.grid = new ChartGrid({
      settings,
      load: async (metric, what) => (this.group
        ? loadBands(metric, this.group, this.filter, settings, what)
        : (await loadCurves(metric, this.names, this.looks, settings, what)).map((one) => ({ ...one, isHidden: this.hidden.has(one.name) }))),
      links: (metric) => linksOf(metric, this.names.filter((name) => !this.hidden.has(name)), settings),
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
    replace(this.panel, h("div", { class: "toolbar sticky" }, chartControls(settings, (name) => this.setting(name)),
      h("label", { class: "field" }, h("span", {}, "Group by"), this.groupSelect)),
    h("div", { class: "with-side" }, this.side, h("div", { class: "main" }, this.grid.children())));
    this.drawSide();
    this.grid.setPattern(settings.search);
    await this.readMetrics();
  }

  async readMetrics() {
    const { grid } = this;
    const { signal } = this.panelAbort;
    try {
      const known = await knownColumns(signal);
      const metrics = this.isFilter
        ? known.filter((column) => column.startsWith("metrics.")).map((column) => column.slice("metrics.".length))
        : await metricsOf(this.names, signal);
      if (signal.aborted) return;
      const groupable = ["state", ...known.filter((column) => !column.startsWith("metrics."))];
      replace(this.groupSelect, h("option", { value: "" }, "nothing"), groupable.map((column) =>
        h("option", { value: column, selected: column === this.group }, column.replace("params.", ""))));
      this.error.show("");
      grid.setMetrics(metrics);
    } catch (error) {
      this.error.tell(error, signal);
    }
  }

  setting(name) {
    if (name === "search") this.grid.setPattern(this.grid.settings.search);
    else if (name === "logX" || name === "logY") this.grid.redraw();
    else {
      if (name === "axis") this.grid.resetZoom();
      this.grid.reload();
    }
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
        h("a", { href: runLink(name), class: "ellipsis", title: name }, name),
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

  // What changes.

  async changed(change) {
    const isOurs = !change || this.isFilter || this.names.some((name) => change.changed.has(name) || change.removed.has(name));
    if (!isOurs) return;
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

/** Compares runs until the signal is aborted. */
export function showCompare(root, route, session, signal) {
  new Compare(root, route, signal);
}
