// The page of one run.

import { get, post } from "./api.js";
import { chartControls, settingsOf } from "./chart_controls.js";
import { ChartGrid } from "./chart_grid.js";
import { choose, chosen, isChosen } from "./chosen.js";
import { stateElement } from "./columns.js";
import { dialog, h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { onKeys } from "./keys.js";
import { onChange } from "./live.js";
import { notice } from "./notices.js";
import { link, one, parse, runLink } from "./routes.js";
import { showLog } from "./run_log.js";
import { inOneLine } from "./run_name.js";
import { showOverview } from "./run_overview.js";
import { showProfiles } from "./run_profile.js";
import { showRecipe } from "./run_recipe.js";
import { showReport } from "./run_report.js";
import { showSamples } from "./run_samples.js";
import { showSchedule } from "./run_schedule.js";
import { linksOf, loadCurves } from "./series.js";
import { Tabs } from "./tabs.js";
import { looksOf, theme } from "./theme.js";

const VIEWS = [["", "Overview"], ["curves", "Curves"], ["system", "System"], ["schedule", "Schedule"], ["data", "Data"],
  ["profile", "Profile"], ["recipe", "Recipe"], ["report", "Report"], ["log", "Log"]];
const SYSTEM = "system.";

class RunPage {
  constructor(root, { query }, signal) {
    this.root = root;
    this.name = one(query, "name");
    this.signal = signal;
    this.view = one(query, "view");
    this.error = errorLine();
    this.head = h("div", { class: "page-head", hidden: true });
    this.trouble = h("p", { class: "trouble-line", role: "status", hidden: true });
    this.panel = h("div", { class: "panel", role: "tabpanel" });
    this.tabs = new Tabs(VIEWS, (view) => this.show(view));
    this.buildHead();
    replace(root, this.head, this.trouble, this.error, this.panel);
    onChange(signal, (change) => {
      if (change?.removed.has(this.name) && !this.isDeleting) this.missing();
      else if (!change || change.changed.has(this.name)) this.read();
    });
    theme.addEventListener("change", () => this.grid?.reload(), { signal });
    chosen.addEventListener("change", () => this.drawChosen(), { signal });
    onKeys(signal, { "/": () => root.querySelector("input[type=search]")?.focus() });
    this.read();
  }

  buildHead() {
    this.state = h("span", {});
    this.chooseButton = h("button", { type: "button", onclick: () => choose([this.name], !isChosen(this.name)) });
    replace(this.head, h("h1", {}, inOneLine(this.name)), this.state, this.tabs.element, h("span", { class: "spacer" }), this.chooseButton,
      h("button", { type: "button", class: "danger", id: "delete", onclick: () => this.askToDelete() }, "Delete"));
    this.drawChosen();
  }

  drawChosen() {
    this.chooseButton.textContent = isChosen(this.name) ? "Chosen" : "Choose";
    this.chooseButton.setAttribute("aria-pressed", String(isChosen(this.name)));
  }

  async read() {
    let run;
    try {
      run = await get("run", { name: this.name }, this.signal);
    } catch (error) {
      if (error.status === 404) this.missing();
      else this.error.report(error, this.signal);
      return;
    }
    this.error.show("");
    const isFirst = !this.run;
    this.run = run;
    this.drawHead(run);
    // Views may show files that this does not include, such as the report.
    if (isFirst) this.show(this.view);
    else this.update(run);
  }

  drawHead(run) {
    const text = JSON.stringify(run);
    if (text === this.shown) return;
    this.shown = text;
    this.head.hidden = false;
    replace(this.state, stateElement(run.state));
    this.trouble.hidden = !run.trouble;
    this.trouble.textContent = run.trouble;
  }

  missing() {
    this.head.hidden = true;
    this.run = null;
    this.shown = "";
    this.tabs.end?.abort();
    replace(this.panel, h("div", { class: "empty" }, h("h2", {}, "Run not found"), h("p", {}, this.name),
      h("a", { class: "button", href: link("") }, "Show runs")));
  }

  show(view) {
    const signal = this.tabs.begin(this.signal);
    this.view = this.tabs.select(view);
    this.grid = null;
    const { run, panel } = this;
    switch (this.view) {
      case "curves": this.update = this.showCurves((metric) => !metric.startsWith(SYSTEM), signal); break;
      case "system": this.update = this.showCurves((metric) => metric.startsWith(SYSTEM), signal); break;
      case "schedule": this.update = showSchedule(panel, { run, signal }); break;
      case "data": this.update = showSamples(panel, { name: run.name, signal }); break;
      case "profile": this.update = showProfiles(panel, { name: run.name, signal }); break;
      case "recipe": this.update = showRecipe(panel, { run, signal }); break;
      case "report": this.update = showReport(panel, { name: run.name, signal }); break;
      case "log": this.update = showLog(panel, { name: run.name, kinds: run.kinds, signal }); break;
      default: this.update = showOverview(panel, run);
    }
  }

  showCurves(matches, signal) {
    const settings = settingsOf(parse(location.hash).query);
    const grid = new ChartGrid({
      settings,
      load: (metric, what) => loadCurves(metric, [this.name], looksOf([this.name]), settings, what),
      lines: () => 1,
      links: (metric) => linksOf(metric, [this.name], settings),
    }, { scroller: this.root, signal, closed: [] });
    const nothing = h("p", { class: "muted nothing" }, "None yet.");
    replace(this.panel, h("div", { class: "toolbar sticky" }, chartControls(settings, (name) => grid.changed(name))), nothing,
      h("div", { class: "main" }, grid.children()));
    this.grid = grid;
    const setMetrics = ({ metrics }) => {
      const names = metrics.map((metric) => metric.name).filter(matches);
      nothing.hidden = names.length > 0;
      grid.setMetrics(names);
    };
    setMetrics(this.run);
    return (run) => {
      setMetrics(run);
      grid.reload();
    };
  }

  askToDelete() {
    const { name } = this;
    const error = errorLine();
    const button = h("button", { type: "button", class: "primary", onclick: async () => {
      button.disabled = this.isDeleting = true;
      try {
        await post("delete", { run: name });
      } catch (failure) {
        button.disabled = this.isDeleting = false;
        error.show(failure.message);
        return;
      }
      element.close();
      choose([name], false);
      location.hash = link("");
      notice(`Deleted ${name}.`, { label: "Undo", call: () => restore(name) });
    } }, "Delete");
    const element = dialog("Delete this run?",
      h("p", {}, h("b", {}, name), " is moved to the trash of its folder, with its checkpoints. It can be restored from there."), error,
      h("div", { class: "actions" }, h("button", { type: "button", onclick: () => element.close() }, "Cancel"), button));
    button.focus();
  }
}

async function restore(name) {
  try {
    await post("restore", { run: name });
    location.hash = runLink(name);
  } catch (failure) {
    notice(failure.message);
  }
}

/** Shows a run until the signal is aborted. */
export function showRun(root, route, session, signal) {
  new RunPage(root, route, signal);
}
