// The page of one sweep: progress, best trials, importances, and all trials.

import { address, get, numberOf } from "./api.js";
import { stateElement } from "./columns.js";
import { h, options, renew, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { counted, exactNumber, formatDuration, formatNumber, timeElement } from "./format.js";
import { onChange } from "./live.js";
import { showParallel } from "./parallel.js";
import { amend, link, one, parse, runLink } from "./routes.js";
import { differing } from "./run_values.js";
import { progressElement } from "./sweeps.js";
import { box, facts, plainTable } from "./tables.js";
import { Tabs } from "./tabs.js";

const VIEWS = [["", "Overview"], ["parallel", "Parallel coordinates"], ["trials", "Trials"], ["plots", "Plots"]];
const OVERVIEW_PLOTS = ["history", "pareto", "importance"];
const LISTED = 500; // Maximum number of listed trials.
const FIRST_AXES = 7;
const SHOWN_BEST = 20;

const quoted = (text) => `"${text.replace(/["\\]/g, "\\$&")}"`;

// A trial's name, with a link to its run if it has one.
const trialElement = (trial) => h(trial.run ? "a" : "span", { href: trial.run ? runLink(trial.run) : null }, `trial ${trial.trial}`);

const numberElement = (value) => h("span", { title: exactNumber(value) }, formatNumber(value));

class SweepPage {
  constructor(root, { query }, signal) {
    this.name = one(query, "name");
    this.view = one(query, "view");
    this.signal = signal;
    this.version = 0; // Cache-busting version of plots.
    this.error = errorLine();
    this.tabs = new Tabs(VIEWS, (view) => this.show(view));
    this.state = h("span", {});
    this.links = h("span", { class: "links" });
    this.head = h("div", { class: "page-head", hidden: true }, h("h1", {}, this.name), this.state, this.tabs.element, h("span", { class: "spacer" }), this.links);
    this.panel = h("div", { class: "panel", role: "tabpanel" });
    replace(root, this.head, this.error, this.panel);
    const isOurs = (change) => !change || change.changed.has(this.name);
    onChange(signal, (change) => isOurs(change) && this.read(), "sweeps");
    this.read();
  }

  async read() {
    let sweep;
    try {
      sweep = await get("sweep", { name: this.name }, this.signal);
    } catch (error) {
      if (error.status === 404) this.missing(error.message);
      else this.error.report(error, this.signal);
      return;
    }
    this.error.show("");
    const text = JSON.stringify(sweep);
    if (text === this.shown) return;
    const isFirst = !this.shown;
    this.shown = text;
    this.sweep = sweep;
    this.version += 1;
    this.head.hidden = false;
    renew(this.state, stateElement(sweep.state));
    const filter = `tags.sweep = ${quoted(this.name)}`;
    renew(this.links, sweep.runs > 0 && [h("a", { class: "button", href: link("", { filter }) }, counted(sweep.runs, "run")),
      h("a", { class: "button", href: link("compare", { filter }) }, "Compare")]);
    if (isFirst) this.show(this.view);
    else this.update();
  }

  missing(message) {
    this.head.hidden = true;
    this.shown = "";
    this.tabs.end?.abort();
    replace(this.panel, h("div", { class: "empty" }, h("h2", {}, "Sweep not found"), h("p", {}, message),
      h("a", { class: "button", href: link("sweeps") }, "Show sweeps")));
  }

  show(view) {
    const signal = this.tabs.begin(this.signal);
    this.view = this.tabs.select(view);
    switch (this.view) {
      case "parallel": this.update = showParallel(this.panel, { source: this.parallelTrials(), signal }); break;
      case "trials": this.update = this.showTrials(); break;
      case "plots": this.update = this.showPlots(); break;
      default: this.update = this.showOverview();
    }
  }

  plot(kind) {
    const { summary } = this.sweep.plots.find((plot) => plot.kind === kind);
    const src = address("sweep/plot.svg", { name: this.name, kind, v: this.version });
    return h("div", { class: "scrolled" }, h("img", { class: "picture", alt: summary, src }));
  }

  showOverview() {
    const place = h("div", { class: "boxes overview" });
    const draw = () => {
      const { sweep } = this;
      const plots = OVERVIEW_PLOTS.filter((kind) => sweep.plots.some((plot) => plot.kind === kind));
      renew(place,
        h("div", { class: "stack" }, box("Sweep", facts([
          ["Trials", progressElement(sweep)],
          sweep.created > 0 && ["Began", timeElement(sweep.created)],
          ["Searches", sweep.objectives.map(({ metric, maximize }) => `${maximize ? "high" : "low"} ${metric}`).join(", ")],
          ["Sampler", sweep.sampler],
          ["Pruner", sweep.pruner],
          ["Seed", h("code", {}, String(sweep.seed))],
          ["State", sweep.progress],
        ])), box(sweep.objectives.length > 1 ? "Best trials" : "Best trial", this.bestElement())),
        h("div", { class: "stack" }, plots.length > 0 ? plots.map((kind) => box(titleOfPlot(kind), this.plot(kind)))
          : box("Results", h("p", { class: "muted" }, "No trial is complete yet."))));
    };
    replace(this.panel, place);
    draw();
    return draw;
  }

  bestElement() {
    const { sweep } = this;
    if (sweep.best.length === 0) return h("p", { class: "muted" }, "none yet");
    if (sweep.best.length > 1) {
      return plainTable([{ text: "trial" }, ...sweep.objectives.map(({ metric }) => ({ text: metric, isNumber: true }))],
        sweep.best.slice(0, SHOWN_BEST).map(({ trial }) => {
          const known = sweep.trials[trial];
          return { cells: [trialElement(known), ...known.values.map(numberElement)] };
        }));
    }
    const [{ trial, command }] = sweep.best;
    const known = sweep.trials[trial];
    return [facts([["Trial", trialElement(known)],
      ...sweep.objectives.map(({ metric }, i) => [metric, numberElement(known.values[i])]),
      ...Object.entries(known.parameters).map(([name, value]) => [name, typeof value === "number" ? numberElement(value) : String(value)])]),
    h("p", { class: "muted again" }, "To reproduce it:"), h("pre", { class: "command wrapped" }, command)];
  }

  parallelTrials() {
    const rows = () => this.sweep.trials.filter(({ state }) => state === "complete").map((trial) => ({
      name: `trial ${trial.trial}`,
      trial,
      values: { state: trial.state, seconds: trial.seconds,
        ...Object.fromEntries(Object.entries(trial.parameters).map(([name, value]) => [`params.${name}`, value])),
        ...Object.fromEntries(this.sweep.objectives.map(({ metric }, i) => [`metrics.${metric}`, trial.values[i] ?? null])) },
    }));
    const parameters = () => this.sweep.parameters.map((name) => `params.${name}`);
    const metrics = () => this.sweep.objectives.map(({ metric }) => `metrics.${metric}`);
    return {
      word: "trial",
      known: async () => [...parameters(), ...metrics()],
      first: async () => [...differing(rows(), parameters()).slice(0, FIRST_AXES - metrics().length), ...metrics()],
      rows: async () => rows(),
      nameElement: ({ trial }) => trialElement(trial),
    };
  }

  showTrials() {
    const { query } = parse(location.hash);
    const sorting = { by: one(query, "sort", "trial"), isDown: one(query, "down") === "1" };
    const table = h("div", { onclick: ({ target }) => {
      const key = target.closest("[data-key]")?.dataset.key;
      if (key === undefined) return;
      Object.assign(sorting, { by: key, isDown: sorting.by === key && !sorting.isDown });
      amend({ sort: key, down: sorting.isDown ? "1" : "" });
      draw();
    } });
    const draw = () => {
      const { sweep } = this;
      const columns = [
        { key: "trial", text: "trial", of: (trial) => trial.trial, show: trialElement },
        { key: "state", text: "state", of: (trial) => trial.state, show: (trial) => h("span", { title: trial.message }, stateElement(trial.state)) },
        ...sweep.objectives.map(({ metric }, i) => ({ key: `metrics.${metric}`, text: metric, isNumber: true, of: (trial) => numberOf(trial.values[i]),
          show: (trial) => (trial.values[i] === undefined ? "" : numberElement(trial.values[i])) })),
        { key: "reports", text: "reports", isNumber: true, of: (trial) => trial.reports, show: (trial) => formatNumber(trial.reports) },
        { key: "seconds", text: "time", isNumber: true, of: (trial) => trial.seconds, show: (trial) => formatDuration(trial.seconds) },
        ...sweep.parameters.map((name) => ({ key: `params.${name}`, text: name, isNumber: true, of: (trial) => trial.parameters[name] ?? null,
          show: ({ parameters: { [name]: value } }) => (value === undefined ? "" : typeof value === "number" ? numberElement(value) : String(value)) })),
      ];
      const { of } = columns.find(({ key }) => key === sorting.by) ?? columns[0];
      const isMissing = (value) => value === null || Number.isNaN(value);
      const sorted = [...sweep.trials].sort((first, second) => {
        const [a, b] = [of(first), of(second)];
        if (isMissing(a) || isMissing(b)) return Number(isMissing(a)) - Number(isMissing(b));
        return (a < b ? -1 : a > b ? 1 : 0) * (sorting.isDown ? -1 : 1);
      });
      const heads = columns.map(({ key, text, isNumber }) => ({ isNumber, text: h("button", { type: "button", class: "sort", "data-key": key }, text,
        sorting.by === key && h("span", { class: "arrow" }, sorting.isDown ? " ↓" : " ↑")) }));
      renew(table, plainTable(heads, sorted.slice(0, LISTED).map((trial) => ({ cells: columns.map(({ show }) => show(trial)) }))),
        sorted.length > LISTED && h("p", { class: "muted" }, `and ${formatNumber(sorted.length - LISTED)} more`));
    };
    replace(this.panel, h("div", { class: "boxes" }, h("section", { class: "box" }, table)));
    draw();
    return draw;
  }

  showPlots() {
    const { query } = parse(location.hash);
    let kind = one(query, "plot");
    const select = h("select", { id: "plot", onchange: () => {
      kind = select.value;
      amend({ plot: kind });
      draw();
    } });
    const place = h("div", { class: "boxes" });
    const draw = () => {
      const kinds = this.sweep.plots.map((plot) => plot.kind);
      if (!kinds.includes(kind)) kind = kinds[0] ?? "";
      replace(select, options(kinds.map((name) => [name, titleOfPlot(name)]), kind));
      replace(place, kind ? h("section", { class: "box" }, this.plot(kind)) : h("p", { class: "muted nothing" }, "Nothing to plot yet."));
    };
    replace(this.panel, h("div", { class: "toolbar" }, h("label", { class: "field" }, h("span", {}, "Plot"), select)), place);
    draw();
    return draw;
  }
}

const titleOfPlot = (kind) => kind[0].toUpperCase() + kind.slice(1);

/** Shows a sweep until the signal is aborted. */
export function showSweep(root, route, session, signal) {
  new SweepPage(root, route, signal);
}
