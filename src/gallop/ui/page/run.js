// One run: what it is, what became of it, what made it.

import { get, numberOf, post } from "./api.js";
import { chartControls, settingsOf } from "./chart_controls.js";
import { ChartGrid } from "./chart_grid.js";
import { choose, isChosen } from "./chosen.js";
import { stateElement } from "./columns.js";
import { debounced, dialog, h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { counted, exactNumber, formatBytes, formatDuration, formatNumber, formatTime, timeElement } from "./format.js";
import { onKeys } from "./keys.js";
import { onChange } from "./live.js";
import { notice } from "./notices.js";
import { amend, link, one, parse, runLink } from "./routes.js";
import { showLog } from "./run_log.js";
import { linksOf, loadCurves } from "./series.js";
import { looksOf, theme } from "./theme.js";

const VIEWS = [["", "Overview"], ["curves", "Curves"], ["system", "System"], ["recipe", "Recipe"], ["log", "Log"]];
const SYSTEM = "system.";
const JOULES_PER_KWH = 3.6e6;

/** What the server names in one word, as people read it. */
function infoValue(name, value) {
  if (value === null || value === undefined || value === "") return "–";
  if (/bytes$/.test(name) && typeof value === "number") return formatBytes(value);
  if (Array.isArray(value)) return value.map((part) => infoValue("", part)).join(", ");
  if (typeof value === "object") return Object.entries(value).map(([key, part]) => `${key} ${infoValue(key, part)}`).join(", ");
  return String(value);
}

// What one process of the run was made of: program, code, data.
function identityFacts({ step, program, code, data }) {
  const since = step > 0 ? ` (from step ${formatNumber(step)})` : "";
  return [
    [`program${since}`, h("code", {}, program || "–")],
    code && [`code${since}`, h("code", {}, code.commit), ` ${code.branch} ${code.remote}`, code.patch && `, with changes of ${formatBytes(code.patch_bytes)}: ${code.patch}`],
    ...data.map((one) => [`data${since}`, `${one.path}, ${counted(one.files, "file")}, ${formatBytes(one.bytes)} `, h("code", {}, one.checksum)]),
  ];
}

const pairs = (list) => h("dl", { class: "facts" }, list.filter(Boolean).map(([name, ...value]) => [h("dt", {}, name), h("dd", {}, value)]));
const card = (title, ...children) => h("section", { class: "box" }, h("h2", {}, title), children);

class RunPage {
  constructor(root, { query }, signal) {
    this.root = root;
    this.name = one(query, "name");
    this.signal = signal;
    this.view = one(query, "view");
    this.error = errorLine();
    this.head = h("div", { class: "page-head" });
    this.trouble = h("p", { class: "trouble-line", role: "status", hidden: true });
    this.tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
    this.panel = h("div", { class: "panel", role: "tabpanel" });
    replace(root, this.head, this.trouble, this.error, this.panel);
    onChange(signal, (change) => {
      if (change?.removed.has(this.name) && !this.isDeleting) this.missing();
      else if (!change || change.changed.has(this.name)) this.read(true);
    });
    theme.addEventListener("change", () => this.grid?.reload(), { signal });
    onKeys(signal, { "/": () => root.querySelector("input[type=search]")?.focus() });
    this.read(false);
  }

  async read(isAgain) {
    try {
      this.run = await get("run", { name: this.name }, this.signal);
    } catch (error) {
      if (error.status === 404) this.missing();
      else this.error.tell(error, this.signal);
      return;
    }
    this.error.show("");
    this.drawHead();
    if (!isAgain || !this.tabs.hasChildNodes()) this.show(this.view);
    else this.update?.();
  }

  missing() {
    replace(this.head);
    replace(this.panel, h("div", { class: "empty" }, h("h2", {}, "There is no such run"), h("p", {}, this.name), h("a", { class: "button", href: link("") }, "To the runs")));
  }

  drawHead() {
    const { run } = this;
    const compare = isChosen(run.name);
    if (!this.head.hasChildNodes()) {
      this.state = h("span", {});
      this.chooseButton = h("button", { type: "button", onclick: () => {
        choose([run.name], !isChosen(run.name));
        this.drawHead();
      } });
      replace(this.head, h("h1", {}, run.name), this.state, this.tabs, h("span", { class: "spacer" }), this.chooseButton,
        h("button", { type: "button", class: "danger", id: "delete", onclick: () => this.askToDelete() }, "Delete"));
    }
    replace(this.state, stateElement(run.state));
    this.chooseButton.textContent = compare ? "Chosen ✓" : "Choose";
    this.chooseButton.setAttribute("aria-pressed", String(compare));
    this.trouble.hidden = !run.trouble;
    this.trouble.textContent = run.trouble ?? "";
  }

  show(view) {
    this.panelAbort?.abort();
    this.panelAbort = new AbortController();
    this.signal.addEventListener("abort", () => this.panelAbort.abort(), { signal: this.panelAbort.signal });
    this.view = VIEWS.some(([name]) => name === view) ? view : "";
    amend({ view: this.view });
    this.grid = null;
    replace(this.tabs, VIEWS.map(([name, text]) => h("button", { type: "button", role: "tab", "data-view": name, "aria-selected": String(name === this.view),
      tabindex: name === this.view ? 0 : -1, onclick: () => this.show(name), onkeydown: (event) => this.tabKey(event) }, text)));
    replace(this.panel);
    const { signal } = this.panelAbort;
    switch (this.view) {
      case "curves": this.showCurves((metric) => !metric.startsWith(SYSTEM), signal); break;
      case "system": this.showCurves((metric) => metric.startsWith(SYSTEM), signal); break;
      case "recipe": this.showRecipe(signal); break;
      case "log": this.update = showLog(this.panel, { name: this.name, kinds: this.run.kinds, signal }); break;
      default: this.showOverview();
    }
  }

  tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = VIEWS.findIndex(([name]) => name === this.view);
    this.show(VIEWS[(at + step + VIEWS.length) % VIEWS.length][0]);
    this.tabs.querySelector("[aria-selected=true]").focus();
  }

  // Overview.

  showOverview() {
    this.facts = h("div", {});
    this.metrics = h("div", {});
    this.made = h("div", {});
    this.checkpoints = h("div", {});
    this.tagList = h("ul", { class: "tags" });
    this.labelError = errorLine();
    const key = h("input", { type: "text", id: "tag", placeholder: "key=value", "aria-label": "New tag", autocomplete: "off" });
    const add = h("form", { class: "add-tag", onsubmit: (event) => {
      event.preventDefault();
      const [name, value = ""] = key.value.trim().split(/=(.*)/s);
      if (!name) return;
      this.setTag(name, value).then((done) => {
        if (done) key.value = "";
      });
    } }, key, h("button", { type: "submit" }, "Add tag"));
    this.note = h("textarea", { id: "note", rows: 3, placeholder: "A note about this run", "aria-label": "Note", value: this.run.note });
    this.savedNote = this.run.note;
    const told = h("span", { class: "muted", role: "status" });
    const save = debounced(600, async () => {
      if (this.note.value === this.savedNote) return;
      const text = this.note.value;
      if (await this.change("note", { run: this.name, text })) {
        this.savedNote = text;
        told.textContent = "saved";
      }
    });
    this.note.addEventListener("input", () => {
      told.textContent = "";
      save();
    });
    replace(this.panel, h("div", { class: "boxes overview" },
      h("div", { class: "stack" },
        card("Run", this.facts),
        card("Tags and note", this.tagList, add, this.note, told, this.labelError),
        card("Made by", this.made),
        card("Checkpoints", this.checkpoints)),
      card("Metrics", this.metrics)));
    this.update = () => this.drawOverview();
    this.drawOverview();
  }

  drawOverview() {
    const { run } = this;
    const { energy } = run;
    const end = run.ends.at(-1);
    replace(this.facts, pairs([
      ["Created", timeElement(run.created), h("span", { class: "muted" }, ` ${formatTime(run.created)}`)],
      ["Duration", formatDuration(run.seconds)],
      ["Steps", formatNumber(run.steps)],
      ...run.ends.map((one) => [one === end ? "Ended" : "Paused", timeElement(one.time), ` at step ${formatNumber(one.step)}: ${one.reason}`]),
      energy && energy.joules > 0 && ["Energy", h("span", { title: `${formatNumber(energy.joules)} J` }, `${formatNumber(Number((energy.joules / JOULES_PER_KWH).toPrecision(3)))} kWh`),
        h("span", { class: "muted" }, ` ${formatNumber(Math.round(energy.joules / Math.max(energy.seconds, 1)))} W on average; ${energy.method}`)],
    ]));
    replace(this.made, pairs([
      ...Object.entries(run.info).map(([name, value]) => [name.replace(/_bytes$/, "").replaceAll("_", " "), h(name === "command" ? "code" : "span", {}, infoValue(name, value))]),
      ...run.identity.flatMap(identityFacts),
    ]));
    replace(this.checkpoints, run.checkpoints.length > 0
      ? h("div", { class: "scroll" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["checkpoint", "step", "size", "time"].map((text, i) => h("th", { scope: "col", class: i === 1 || i === 2 ? "value" : "" }, text)))),
        h("tbody", {}, run.checkpoints.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name, (one.marks ?? []).map((mark) => h("span", { class: "kind" }, mark))), h("td", { class: "value" }, formatNumber(one.step)),
          h("td", { class: "value" }, formatBytes(one.bytes)), h("td", {}, timeElement(one.time)))))))
      : h("p", { class: "muted" }, "none"));
    replace(this.metrics, run.metrics.length > 0
      ? h("div", { class: "scroll-x" }, h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["metric", "last", "min", "max", "points"].map((text, i) => h("th", { scope: "col", class: i > 0 ? "value" : "" }, text)))),
        h("tbody", {}, run.metrics.map((metric) => h("tr", {}, h("th", { scope: "row" }, metric.name),
          [["last", "last_step"], ["least", "least_step"], ["most", "most_step"]].map(([value, step]) => h("td", { class: "value", title: exactNumber(metric[value]) },
            Number.isNaN(numberOf(metric[value])) ? h("b", { class: "nan" }, "NaN") : formatNumber(metric[value]), h("small", {}, formatNumber(metric[step])))),
          h("td", { class: "value" }, formatNumber(metric.count)))))))
      : h("p", { class: "muted" }, "none yet"));
    this.drawTags();
    if (document.activeElement !== this.note && this.note.value === this.savedNote) {
      this.note.value = run.note;
      this.savedNote = run.note;
    }
  }

  drawTags() {
    replace(this.tagList, Object.entries(this.run.tags).map(([key, value]) => h("li", {}, h("span", { class: "ellipsis", title: value ? `${key}=${value}` : key }, key, value && [h("span", { class: "muted" }, "="), value]),
      h("button", { type: "button", class: "quiet", "aria-label": `Remove the tag ${key}`, onclick: () => this.setTag(key, null) }, "×"))));
  }

  async setTag(key, value) {
    if (!await this.change("tag", { run: this.name, key, value })) return false;
    if (value === null) delete this.run.tags[key];
    else this.run.tags[key] = value;
    this.drawTags();
    return true;
  }

  async change(what, body) {
    try {
      await post(what, body);
      this.labelError.show("");
      return true;
    } catch (error) {
      this.labelError.show(error.message);
      return false;
    }
  }

  // Curves.

  showCurves(matches, signal) {
    const { query } = parse(location.hash);
    const settings = settingsOf(query);
    const looks = () => looksOf([this.name]);
    const grid = new ChartGrid({
      settings,
      load: (metric, what) => loadCurves(metric, [this.name], looks(), settings, what),
      links: (metric) => linksOf(metric, [this.name], settings),
    }, { scroller: this.root, signal, closed: [] });
    this.grid = grid;
    const setMetrics = () => {
      const metrics = this.run.metrics.map((metric) => metric.name).filter(matches);
      nothing.hidden = metrics.length > 0;
      grid.setMetrics(metrics);
    };
    const nothing = h("p", { class: "muted nothing" }, "None yet.");
    replace(this.panel, h("div", { class: "toolbar sticky" }, chartControls(settings, (name) => {
      if (name === "search") grid.setPattern(settings.search);
      else if (name === "logX" || name === "logY") grid.redraw();
      else {
        if (name === "axis") grid.resetZoom();
        grid.reload();
      }
    })), nothing, h("div", { class: "main" }, grid.children()));
    setMetrics();
    grid.setPattern(settings.search);
    this.update = () => {
      setMetrics();
      grid.reload();
    };
  }

  // Recipe.

  async showRecipe(signal) {
    const error = errorLine();
    const search = h("input", { type: "search", placeholder: "Search options", "aria-label": "Search options", oninput: () => draw() });
    const text = h("pre", { class: "command recipe" });
    const table = h("div", { class: "scroll-x" });
    const copy = h("button", { type: "button", onclick: async () => {
      await navigator.clipboard.writeText(text.textContent);
      notice("Copied.");
    } }, "Copy");
    const draw = () => {
      const wanted = search.value.toLowerCase();
      const shown = this.run.params.filter((param) => `${param.name} ${param.origin ?? ""}`.toLowerCase().includes(wanted));
      replace(table, shown.length === 0 ? h("p", { class: "muted nothing" }, "No option has that name.")
        : h("table", { class: "plain" }, h("thead", {}, h("tr", {}, ["option", "value", "comes from"].map((title) => h("th", { scope: "col" }, title)))),
          h("tbody", {}, shown.map((param) => h("tr", {}, h("th", { scope: "row" }, param.name), h("td", {}, String(param.value ?? "")), h("td", { class: "muted" }, param.origin || "–"))))));
    };
    replace(this.panel, h("div", { class: "toolbar" }, search), error, h("div", { class: "boxes two" }, h("section", { class: "box" }, table),
      h("section", { class: "box" }, h("div", { class: "box-head" }, h("h2", {}, "recipe.yaml"), navigator.clipboard && copy), text)));
    this.update = draw;
    draw();
    try {
      text.textContent = (await get("run/recipe", { name: this.name }, signal)).recipe;
    } catch (failure) {
      error.tell(failure, signal);
    }
  }

  // Delete.

  askToDelete() {
    const error = errorLine();
    const button = h("button", { type: "button", class: "primary", onclick: async () => {
      button.disabled = true;
      this.isDeleting = true;
      try {
        await post("delete", { run: this.name });
      } catch (failure) {
        this.isDeleting = false;
        button.disabled = false;
        error.show(failure.message);
        return;
      }
      element.close();
      choose([this.name], false);
      const { name } = this;
      location.hash = link("");
      notice(`Deleted ${name}.`, { label: "Undo", call: async () => {
        try {
          await post("restore", { run: name });
          location.hash = runLink(name);
        } catch (failure) {
          notice(failure.message);
        }
      } });
    } }, "Delete");
    const element = dialog("Delete this run?", h("p", {}, h("b", {}, this.name), " goes to the trash of its folder, with its checkpoints. It can be brought back from there."), error,
      h("div", { class: "actions" }, h("button", { type: "button", onclick: () => element.close() }, "Keep it"), button));
    button.focus();
  }
}

/** Shows one run until the signal is aborted. */
export function showRun(root, route, session, signal) {
  new RunPage(root, route, signal);
}
