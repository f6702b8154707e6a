// A grid of charts for many metrics, in sections. Only charts near the viewport are rendered.

import { CurveCard } from "./curves.js";
import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { formatNumber } from "./format.js";

const NEAR = "400px";
const CLOSED_KEY = "gallop.closed";

// "train.loss" and "train/loss" belong to "train"; a name without a prefix belongs to evaluations.
const sectionOf = (metric) => /^([^./]+)[./]/.exec(metric)?.[1] ?? "evaluation";
const ORDER = ["evaluation", "train"];
const LAST = "system";
const FIRST_METRICS = ["accuracy", "loss"]; // In each section.

function rank(section) {
  if (section === LAST) return ORDER.length + 1;
  const at = ORDER.indexOf(section);
  return at < 0 ? ORDER.length : at;
}

function byName(a, b) {
  const place = (metric) => (FIRST_METRICS.indexOf(metric.split(/[./]/).at(-1)) + FIRST_METRICS.length + 1) % (FIRST_METRICS.length + 1);
  return place(a) - place(b) || a.localeCompare(b, "en", { numeric: true });
}

export class ChartGrid {
  /** `context` is that of CurveCard, without `pointed`. `closed`: sections that are initially collapsed. */
  constructor(context, { scroller, signal, closed = [LAST] }) {
    this.context = { ...context, pointed: (x, card, y) => this.point(x, card, y) };
    this.cards = new Map();
    this.sections = new Map();
    this.pattern = null;
    this.closed = new Map(JSON.parse(localStorage.getItem(CLOSED_KEY) ?? "[]"));
    this.usuallyClosed = closed;
    this.error = errorLine();
    this.empty = h("p", { class: "muted nothing", hidden: true }, "No matching metric.");
    this.element = h("div", { class: "sections" });
    this.observer = new IntersectionObserver((entries) => {
      for (const { target, isIntersecting } of entries) {
        const card = this.cards.get(target.dataset.metric);
        if (isIntersecting) card?.mount();
        else card?.unmount();
      }
    }, { root: scroller, rootMargin: `${NEAR} 0px` });
    this.setPattern(this.settings.search);
    signal.addEventListener("abort", () => {
      this.observer.disconnect();
      for (const card of this.cards.values()) card.unmount();
    });
  }

  get settings() {
    return this.context.settings;
  }

  /** Sets the available metrics; existing charts are kept. */
  setMetrics(metrics) {
    const wanted = new Set(metrics);
    for (const [metric, card] of this.cards) {
      if (wanted.has(metric)) continue;
      card.unmount();
      this.observer.unobserve(card.element);
      card.element.remove();
      this.cards.delete(metric);
    }
    const bySection = new Map();
    for (const metric of metrics) {
      const section = sectionOf(metric);
      bySection.set(section, [...(bySection.get(section) ?? []), metric]);
    }
    const names = [...bySection.keys()].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b, "en", { numeric: true }));
    for (const [name, { element }] of this.sections) {
      if (bySection.has(name)) continue;
      element.remove();
      this.sections.delete(name);
    }
    let place = this.element.firstElementChild;
    for (const name of names) {
      const section = this.sections.get(name) ?? this.makeSection(name);
      const list = bySection.get(name).sort(byName);
      for (const metric of list) {
        if (this.cards.has(metric)) continue;
        const card = new CurveCard(metric, this.context);
        this.cards.set(metric, card);
        section.grid.append(card.element);
        this.observer.observe(card.element);
      }
      // An element in its place is not moved: reinsertion would lose the focus and a button press.
      if (section.element === place) place = place.nextElementSibling;
      else this.element.insertBefore(section.element, place);
    }
    this.search();
  }

  makeSection(name) {
    const grid = h("div", { class: "cards" });
    const count = h("span", { class: "muted" });
    const isOpen = !(this.closed.get(name) ?? this.usuallyClosed.includes(name));
    const element = h("details", { open: isOpen, class: "section" }, h("summary", {}, h("h2", {}, name), count), grid);
    element.addEventListener("toggle", () => {
      if (element.open === !(this.closed.get(name) ?? this.usuallyClosed.includes(name))) return;
      this.closed.set(name, !element.open);
      localStorage.setItem(CLOSED_KEY, JSON.stringify([...this.closed]));
    });
    const section = { element, grid, count };
    this.sections.set(name, section);
    return section;
  }

  /** Shows the metrics that match a regular expression; an empty text matches all. */
  setPattern(text) {
    try {
      this.pattern = text ? new RegExp(text, "i") : null;
      this.error.show("");
    } catch (error) {
      this.error.show(error.message.replace(/^Invalid regular expression: /, "invalid regular expression: "));
      return;
    }
    this.search();
  }

  search() {
    let found = 0;
    for (const { element, grid, count } of this.sections.values()) {
      let shown = 0;
      for (const figure of grid.children) {
        figure.hidden = Boolean(this.pattern) && !this.pattern.test(figure.dataset.metric);
        shown += figure.hidden ? 0 : 1;
      }
      element.hidden = shown === 0;
      count.textContent = formatNumber(shown);
      found += shown;
    }
    this.empty.hidden = found > 0 || this.cards.size === 0;
  }

  /** Applies a changed setting (chart_controls.js). */
  changed(setting) {
    if (setting === "search") this.setPattern(this.settings.search);
    else if (setting === "logX" || setting === "logY") this.redraw();
    else {
      if (setting === "axis") this.resetZoom();
      this.reload();
    }
  }

  /** Reloads all curves; visible ones at once. */
  reload() {
    for (const card of this.cards.values()) card.reload();
  }

  /** The axis has changed: zoom ranges are no longer valid. */
  resetZoom() {
    for (const card of this.cards.values()) card.zoom = null;
  }

  /** Redraws the rendered charts. */
  redraw() {
    for (const card of this.cards.values()) card.draw();
  }

  hide(isHidden) {
    for (const card of this.cards.values()) {
      for (const one of card.series) one.isHidden = isHidden(one.name);
      card.draw();
    }
  }

  point(x, from, y) {
    for (const card of this.cards.values()) {
      if (card.isMounted) card.point(x, card === from ? y : null);
    }
  }

  /** The root elements. */
  children() {
    return [this.error, this.empty, this.element];
  }
}
