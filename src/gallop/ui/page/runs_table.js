// The table of all runs.

import { get } from "./api.js";
import { choose, chooseNone, chosen, chosenNames, isChosen } from "./chosen.js";
import { OWN_COLUMNS, cellContent, isText, keepColumns, kindOf, knownColumns, openColumnChooser, setWidth, shownColumns, titleOf,
  widthOf } from "./columns.js";
import { debounced, h, renew, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { both, equalTo } from "./filters.js";
import { counted, formatNumber } from "./format.js";
import { onKeys } from "./keys.js";
import { onChange } from "./live.js";
import { amend, link, one, runLink } from "./routes.js";
import { nameElement } from "./run_name.js";
import { GroupedSource, PagedSource } from "./sources.js";
import { withSuggestions } from "./suggest.js";
import { looksOf, theme } from "./theme.js";
import { VirtualList } from "./virtual_list.js";

const ROW_PX = 32;
const FIRST_RUNS = 50; // Number of runs that the checkbox in the header selects.

// The scroll position and state for when the user returns.
const kept = { address: "", top: 0, left: 0, active: 0, open: [] };

class RunsTable {
  constructor(root, { query }, session, signal) {
    this.signal = signal;
    this.session = session;
    this.filter = one(query, "filter");
    this.sort = one(query, "sort", "created");
    this.descending = one(query, "descending", this.sort === "created" ? "1" : "") === "1";
    this.group = one(query, "group");
    this.known = [];
    this.columns = [];
    this.active = 0;
    this.activeName = null;
    this.lastChosen = null; // {key, index} of the row from which Shift selects.
    this.anchor = null;
    this.looks = looksOf(chosenNames());
    this.build(root);
    this.listen();
    this.start();
  }

  build(root) {
    this.input = h("input", { id: "filter", type: "search", value: this.filter, spellcheck: "false", autocomplete: "off",
      "aria-label": "Filter", "aria-describedby": "filter-error",
      placeholder: "Filter: metrics.accuracy > 0.9 and params.optimizer.lr < 0.1" });
    this.error = errorLine();
    this.error.id = "filter-error";
    this.groupSelect = h("select", { "aria-label": "Group by", onchange: () => this.regroup(this.groupSelect.value) }, h("option", { value: "" }, "nothing"));
    this.count = h("span", { class: "count muted", role: "status" });
    this.compareLink = h("a", { class: "button primary", id: "compare" });
    this.noneButton = h("button", { type: "button", id: "choose-none", onclick: () => chooseNone() }, "Clear");
    this.head = h("div", { class: "grid-head", role: "row", "aria-rowindex": 1 });
    this.body = h("div", { class: "grid-body", role: "rowgroup" });
    this.empty = h("div", { class: "empty", hidden: true });
    this.grid = h("div", { class: "grid", id: "runs", role: "grid", tabindex: 0, "aria-label": "Runs",
      "aria-multiselectable": "true" }, this.head, this.body);
    root.classList.add("fixed");
    replace(root,
      h("div", { class: "toolbar" },
        withSuggestions(this.input, () => [...OWN_COLUMNS, ...this.known]),
        h("label", { class: "field" }, h("span", {}, "Group by"), this.groupSelect),
        h("button", { type: "button", id: "columns",
          onclick: () => openColumnChooser("Columns", this.known, this.columns, (columns) => this.setColumns(columns)) }, "Columns"),
        h("span", { class: "spacer" }), this.count, this.noneButton, this.compareLink),
      this.error, this.grid, this.empty);
  }

  listen() {
    const { signal, grid } = this;
    this.input.addEventListener("input", debounced(350, () => this.refilter()));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.refilter();
      else if (event.key === "Escape" || event.key === "ArrowDown") grid.focus();
      else return;
      event.preventDefault();
    });
    grid.addEventListener("keydown", (event) => this.key(event));
    grid.addEventListener("click", (event) => this.click(event));
    grid.addEventListener("dblclick", (event) => {
      if (!event.target.closest("input, a, button") && event.target.closest(".grid-body")) this.open();
    });
    grid.addEventListener("focus", () => this.markActive());
    onKeys(signal, { "/": () => {
      this.input.focus();
      this.input.select();
    }, c: () => this.compareLink.click() });
    chosen.addEventListener("change", () => this.drawChosen(), { signal });
    theme.addEventListener("change", () => this.drawChosen(), { signal });
    onChange(signal, () => this.refresh());
    signal.addEventListener("abort", () => this.close());
  }

  async start() {
    try {
      await this.readColumns();
    } catch (error) {
      this.error.report(error, this.signal);
    }
    if (this.signal.aborted) return;
    this.list = new VirtualList({ scroller: this.grid, body: this.body, rowHeight: ROW_PX, headHeight: ROW_PX,
      source: this.makeSource(), keyOf: (item) => (item.group ? `group ${item.group.value ?? ""}` : `run ${item.name}`),
      render: (element, item, index) => this.renderRow(element, item, index) });
    this.drawHead();
    this.drawChosen();
    if (kept.address === link("", this.query)) {
      this.active = kept.active;
      this.returnTo = kept;
    }
    this.list.drawNow();
  }

  // Resolves to whether the visible columns changed.
  async readColumns() {
    const known = await knownColumns(this.signal);
    if (known.length === this.known.length && known.every((name, i) => name === this.known[i])) return false;
    const before = String(this.columns);
    this.known = known;
    this.columns = shownColumns(known);
    const groupable = ["state", ...known.filter((column) => !column.startsWith("metrics."))];
    if (this.group && !groupable.includes(this.group)) groupable.push(this.group);
    replace(this.groupSelect, h("option", { value: "" }, "nothing"),
      groupable.map((column) => h("option", { value: column, selected: column === this.group }, column.replace("params.", ""))));
    return String(this.columns) !== before;
  }

  // The state in the URL.
  get query() {
    const isUsual = this.sort === "created" && this.descending;
    return { filter: this.filter, sort: isUsual ? "" : this.sort, descending: isUsual ? "" : this.descending ? "1" : "0", group: this.group };
  }

  get shown() {
    return [...OWN_COLUMNS, ...this.columns];
  }

  // The source of the rows.

  makeSource() {
    const runsOf = (filter) => new PagedSource(async (offset, limit, signal) => {
      const { columns, sort, descending } = this;
      const { total, matching, runs } = await get("runs", { filter, sort, descending, columns: columns.join(","), offset, limit }, signal);
      const items = runs.map(({ values, ...run }) => ({ ...run, cells: Object.fromEntries(columns.map((column, i) => [column, values[i]])) }));
      return { total: matching, all: total, items };
    });
    const source = this.group
      ? new GroupedSource(async (signal) => (await get("groups", { by: this.group, filter: this.filter }, signal)).groups,
        (group) => runsOf(both(this.filter, equalTo(this.group, group.value))))
      : runsOf(this.filter);
    source.addEventListener("change", () => this.arrived(source));
    source.addEventListener("error", ({ detail }) => this.failed(detail));
    return source;
  }

  /** Reloads from the top. The current rows stay until the response arrives, even if that is an error. */
  restart() {
    this.next?.close();
    this.next = this.makeSource();
    this.next.need(0, this.list.seenRows);
    amend(this.query);
    this.drawCompare();
  }

  /** Reloads the visible rows without scrolling. */
  async refresh() {
    if (!this.list) return;
    const first = this.list.firstSeen();
    const item = this.list.source.at(first);
    this.anchor = this.grid.scrollTop > 0 && item?.name !== undefined ? { name: item.name, index: first } : null;
    try {
      if (await this.readColumns()) this.drawHead();
    } catch (error) {
      this.error.report(error, this.signal);
    }
    if (this.signal.aborted) return;
    this.list.source.refresh();
    if (this.lastChosen) this.list.source.need(this.lastChosen.index, this.lastChosen.index);
    this.list.draw();
    this.next?.refresh();
    this.next?.need(0, this.list.seenRows);
  }

  arrived(source) {
    // While another source is loaded, or after it failed, its error stays.
    if (!this.next || source === this.next) this.error.show("");
    if (source === this.next) {
      this.next = null;
      this.list.source.close();
      this.list.source = source;
      this.active = 0;
      this.activeName = null;
      this.lastChosen = null;
      this.anchor = null;
      this.grid.scrollTop = 0;
      this.list.invalidate();
    }
    if (this.anchor) {
      const index = source.indexOf((run) => run.name === this.anchor.name);
      if (index >= 0 && index !== this.anchor.index) this.grid.scrollTop += (index - this.anchor.index) * ROW_PX;
      if (index >= 0) this.anchor = null;
    }
    if (this.activeName !== null && source.at(this.active)?.name !== this.activeName) {
      const index = source.indexOf((run) => run.name === this.activeName);
      if (index >= 0) this.active = index;
    }
    if (this.lastChosen && source === this.list.source) {
      const index = source.indexOf((item) => this.list.keyOf(item) === this.lastChosen.key);
      if (index >= 0) this.lastChosen.index = index;
    }
    this.drawCount();
    this.list.drawNow();
    if (this.returnTo) {
      const { top, left, open } = this.returnTo;
      this.returnTo = null;
      if (this.group) {
        for (const group of source.groups) if (open.includes(group.value)) source.toggle(group);
      }
      this.grid.scrollTo(left, top);
      this.list.drawNow();
      this.grid.focus({ preventScroll: true });
    }
    this.markActive();
  }

  failed(error) {
    this.error.report(error, this.signal);
  }

  refilter() {
    if (this.signal.aborted || this.input.value === this.filter) return;
    this.filter = this.input.value;
    this.restart();
  }

  regroup(column) {
    this.group = column;
    this.restart();
  }

  resort(column) {
    if (this.sort === column) this.descending = !this.descending;
    else {
      this.sort = column;
      this.descending = kindOf(column) === "metrics" || column === "created";
    }
    this.drawHead();
    this.restart();
  }

  setColumns(columns) {
    keepColumns(columns);
    this.columns = columns;
    this.drawHead();
    this.list.source.refresh();
    this.list.invalidate();
  }

  // Rendering.

  drawHead() {
    this.drawWidths();
    this.grid.setAttribute("aria-colcount", this.shown.length);
    this.headBox = h("input", { type: "checkbox", tabindex: -1, onclick: (event) => {
      event.preventDefault();
      this.chooseFirst();
    } });
    const focused = this.head.contains(document.activeElement) ? document.activeElement.dataset.column : null;
    replace(this.head, this.shown.map((column, i) => {
      const isSorted = this.sort === column;
      const button = h("button", { type: "button", class: "sort", "data-column": column, title: column, onclick: () => this.resort(column) },
        h("span", { class: "ellipsis" }, titleOf(column)),
        isSorted && h("span", { class: "arrow", "aria-hidden": "true" }, this.descending ? "↓" : "↑"));
      return h("div", { role: "columnheader", "aria-colindex": i + 1, class: `cell ${isText(column) ? "" : "number"} ${column === "name" ? "name" : ""}`,
        "aria-sort": isSorted ? (this.descending ? "descending" : "ascending") : "none" },
      column === "name" && this.headBox, button, this.widthHandle(column));
    }));
    if (focused) this.head.querySelector(`[data-column="${CSS.escape(focused)}"]`)?.focus();
    this.drawHeadBox();
  }

  drawWidths() {
    const [name, ...others] = this.shown.map(widthOf);
    this.grid.style.setProperty("--name-width", `${name}px`);
    this.grid.style.setProperty("--columns", `var(--name) ${others.map((width) => `${width}px`).join(" ")}`);
  }

  widthHandle(column) {
    const handle = h("span", { class: "handle", "aria-hidden": "true" });
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      handle.setPointerCapture(event.pointerId);
      const begin = event.clientX - handle.parentElement.getBoundingClientRect().width;
      handle.onpointermove = (move) => {
        setWidth(column, move.clientX - begin);
        this.drawWidths();
      };
      handle.onpointerup = () => {
        handle.onpointermove = null;
      };
    });
    return handle;
  }

  renderRow(element, item, index) {
    element.id = `row-${index}`;
    element.className = "row";
    element.setAttribute("aria-rowindex", index + 2);
    element.removeAttribute("aria-expanded");
    element.removeAttribute("title");
    if (!item) {
      element.classList.add("waiting");
    } else if (item.group) {
      this.renderGroup(element, item);
    } else {
      this.renderRun(element, item);
    }
    element.classList.toggle("active", index === this.active);
  }

  renderRun(element, run) {
    const look = this.looks.get(run.name);
    element.setAttribute("aria-selected", String(isChosen(run.name)));
    element.classList.toggle("troubled", Boolean(run.trouble));
    element.style.setProperty("--run", look?.color ?? "transparent");
    renew(element, this.shown.map((column, i) => {
      const cell = h("div", { role: "gridcell", "aria-colindex": i + 1, class: `cell ${isText(column) ? "" : "number"}` });
      if (column !== "name") return replace(cell, cellContent(column, run, run.cells[column]));
      cell.classList.add("name");
      return replace(cell,
        h("input", { type: "checkbox", tabindex: -1, checked: isChosen(run.name), "aria-label": `Choose ${run.name}` }),
        nameElement(run.name, runLink(run.name), { tabindex: -1 }),
        run.note && h("span", { class: "mark", title: run.note, role: "img", "aria-label": `Note: ${run.note}` }, "✎"),
        run.trouble && h("span", { class: "mark trouble", title: run.trouble, role: "img", "aria-label": `Error: ${run.trouble}` }, "!"));
    }));
  }

  renderGroup(element, { group, isOpen }) {
    const all = group.runs.every(isChosen);
    element.classList.add("group");
    element.setAttribute("aria-expanded", String(isOpen));
    element.setAttribute("aria-selected", String(all));
    element.style.setProperty("--run", "transparent");
    renew(element, h("div", { role: "gridcell", class: "cell name", "aria-colindex": 1 },
      h("input", { type: "checkbox", tabindex: -1, checked: all, indeterminate: !all && group.runs.some(isChosen),
        "aria-label": `Select all of ${group.value ?? "none"}` }),
      h("span", { class: "twist", "aria-hidden": "true" }, isOpen ? "▾" : "▸"),
      h("span", { class: "ellipsis" }, group.value === null || group.value === "" ? "none" : String(group.value)),
      h("span", { class: "muted" }, formatNumber(group.count))));
  }

  drawCount() {
    const { source } = this.list;
    const answer = this.group ? null : source.answer;
    const matching = this.group ? source.groups.reduce((sum, group) => sum + group.count, 0) : answer?.total ?? 0;
    const isFiltered = this.filter.trim() !== "";
    this.grid.setAttribute("aria-rowcount", source.length + 1);
    this.count.textContent = isFiltered && answer ? `${formatNumber(matching)} of ${counted(answer.all, "run")}` : counted(matching, "run");
    this.matching = matching;
    const isEmpty = source.isLoaded && matching === 0;
    this.grid.hidden = isEmpty;
    this.empty.hidden = !isEmpty;
    if (isEmpty && this.emptyOf !== isFiltered) {
      this.emptyOf = isFiltered;
      replace(this.empty, isFiltered
        ? [h("h2", {}, "No run matches this filter"), h("button", { type: "button", onclick: () => {
          this.input.value = "";
          this.refilter();
          this.input.focus();
        } }, "Show all runs")]
        : [h("h2", {}, "No runs yet"), h("p", {}, "Runs in ", h("code", {}, this.session.folder), " appear here when they start. To train one:"),
          h("pre", { class: "command" }, "gallop train fashion-mnist")]);
    }
    this.drawCompare();
  }

  drawCompare() {
    const names = chosenNames();
    const all = names.length === 0;
    this.noneButton.hidden = all;
    this.compareLink.hidden = all && !this.matching;
    this.compareLink.classList.toggle("primary", !all);
    this.compareLink.textContent = all ? "Compare all" : `Compare ${formatNumber(names.length)}`;
    this.compareLink.href = link("compare", all ? { filter: this.filter } : { runs: names });
  }

  drawHeadBox() {
    if (!this.headBox) return;
    const any = chosenNames().length > 0;
    this.headBox.indeterminate = any;
    const text = any ? "Clear the selection" : `Select the first ${FIRST_RUNS} of the list`;
    this.headBox.title = text;
    this.headBox.setAttribute("aria-label", text);
  }

  drawChosen() {
    this.looks = looksOf(chosenNames());
    this.drawHeadBox();
    this.drawCompare();
    this.list?.invalidate();
  }

  markActive() {
    for (const element of this.body.querySelectorAll(".row.active")) element.classList.remove("active");
    const element = this.list?.elementAt(this.active);
    if (!element) return;
    element.classList.add("active");
    this.grid.setAttribute("aria-activedescendant", element.id);
  }

  // User input.

  goTo(index) {
    const { source } = this.list;
    this.active = Math.min(Math.max(index, 0), Math.max(source.length - 1, 0));
    this.activeName = source.at(this.active)?.name ?? null;
    this.list.show(this.active);
    this.markActive();
  }

  key(event) {
    if (event.target !== this.grid || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = this.list.seenRows - 1;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity, j: 1, k: -1 };
    const item = this.list.source.at(this.active);
    if (moves[event.key] !== undefined) {
      this.goTo(this.active + moves[event.key]);
    } else if (event.key === "Enter") {
      this.open();
    } else if (event.key === " ") {
      if (event.shiftKey) this.chooseUpTo(this.active);
      else this.toggle(item);
    } else if (event.key === "Escape") {
      chooseNone();
    } else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && item?.group) {
      if ((event.key === "ArrowRight") !== item.isOpen) this.list.source.toggle(item.group);
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      this.grid.scrollLeft += event.key === "ArrowRight" ? 80 : -80;
    } else {
      return;
    }
    event.preventDefault();
  }

  click(event) {
    const row = event.target.closest(".row");
    if (!row || event.target.closest("a")) return;
    const index = Number(row.id.slice("row-".length));
    const item = this.list.source.at(index);
    this.activeName = item?.name ?? null;
    this.active = index;
    this.markActive();
    const isBox = event.target.matches("input");
    if (isBox) this.list.invalidate(); // The browser has switched it.
    if (event.shiftKey) this.chooseUpTo(index);
    else if (isBox || event.ctrlKey || event.metaKey) this.toggle(item);
    else if (item?.group) this.list.source.toggle(item.group);
    this.grid.focus({ preventScroll: true });
  }

  toggle(item) {
    if (item?.group) choose(item.group.runs, !item.group.runs.every(isChosen));
    else if (item) choose([item.name], !isChosen(item.name));
    this.setLastChosen(item, this.active);
  }

  setLastChosen(item, index) {
    this.lastChosen = item ? { key: this.list.keyOf(item), index } : null;
  }

  async chooseUpTo(index) {
    const { source } = this.list;
    const begin = this.lastChosen?.index ?? index;
    this.setLastChosen(source.at(index), index);
    try {
      const rows = await source.rows(Math.min(begin, index), Math.max(begin, index), this.signal);
      choose(rows.flatMap(({ name }) => name ?? []));
    } catch (error) {
      this.error.report(error, this.signal);
    }
  }

  chooseFirst() {
    if (chosenNames().length > 0) {
      chooseNone();
      return;
    }
    const { source } = this.list;
    const names = [];
    for (let i = 0; i < source.length && names.length < FIRST_RUNS; ++i) {
      const name = source.at(i)?.name;
      if (name !== undefined) names.push(name);
    }
    choose(names);
  }

  open() {
    const item = this.list.source.at(this.active);
    if (item?.group) this.list.source.toggle(item.group);
    else if (item) location.hash = runLink(item.name);
  }

  close() {
    if (!this.list) return;
    Object.assign(kept, { address: link("", this.query), top: this.grid.scrollTop, left: this.grid.scrollLeft, active: this.active,
      open: this.group ? [...this.list.source.open.keys()] : [] });
    this.next?.close();
    this.list.source.close();
    this.list.close();
  }
}

/** Shows the runs table until the signal is aborted. */
export function showRuns(root, route, session, signal) {
  new RunsTable(root, route, session, signal);
}
