// A chart of curves with its legend.

import { tickLabel, timeTicks, placeOn, shortNumber } from "./axes.js";
import { h, oncePerFrame, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { counted, exactNumber, formatNumber } from "./format.js";
import { nameElement } from "./run_name.js";
import { faint, styleColor } from "./theme.js";

// Points requested per curve, and for all curves of a chart, so that many runs draw as fast as few. Spikes are
// preserved.
const POINTS = { least: 200, most: 1000, ofAll: 30000 };
const DRAG_PX = 6;
const MARK_DASHES = [3, 3];
const EMPHASIZED_PX = 3.4;
const ZOOM_BY_KEY = 0.6;

// Plugins: triangles at the bottom of the chart for non-finite values, a highlighted line, and a marked position on the
// horizontal axis.
const marks = {
  id: "marks",
  afterDatasetsDraw(chart, _, { series = [], emphasized = null, place = null, placeColor = "" }) {
    const { ctx, chartArea: { left, right, top, bottom }, scales: { x } } = chart;
    const placeAt = place === null ? NaN : x.getPixelForValue(place);
    if (placeAt >= left && placeAt <= right) {
      ctx.save();
      ctx.strokeStyle = placeColor;
      ctx.setLineDash(MARK_DASHES);
      ctx.beginPath();
      ctx.moveTo(placeAt, top);
      ctx.lineTo(placeAt, bottom);
      ctx.stroke();
      ctx.restore();
    }
    const index = emphasized === null ? -1 : chart.data.datasets.findIndex((dataset) => dataset.series === emphasized);
    if (index >= 0) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(left, top, right - left, bottom - top);
      ctx.clip();
      ctx.beginPath();
      ctx.lineWidth = EMPHASIZED_PX;
      ctx.strokeStyle = chart.data.datasets[index].borderColor;
      chart.getDatasetMeta(index).dataset.path(ctx);
      ctx.stroke();
      ctx.restore();
    }
    for (const { gaps, color } of series) {
      ctx.fillStyle = color;
      for (const value of gaps) {
        const at = x.getPixelForValue(value);
        if (!(at >= left && at <= right)) continue;
        ctx.beginPath();
        ctx.moveTo(at, bottom - 7);
        ctx.lineTo(at - 4, bottom);
        ctx.lineTo(at + 4, bottom);
        ctx.fill();
      }
    }
  },
};

// The index of the nearest x; `xs` is ascending.
function nearest(xs, x) {
  let low = 0;
  let high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Writes the values of a series at an index (-1: none) into its row of the legend.
function writeValues(series, cells, index) {
  const text = (values) => (index < 0 ? "" : formatNumber(values[index]));
  const { band } = series;
  write(cells.here, text(series.y) + (band && index >= 0 ? ` ± ${formatNumber((band.high[index] - band.low[index]) / 2)}` : ""));
  if (cells.smooth) write(cells.smooth, text(series.smooth));
}

// Values that an axis can show: finite ones, and only positive ones on a logarithmic axis.
const shownOn = (isLog) => (value) => (Number.isFinite(value) && (!isLog || value > 0) ? value : NaN);

function radii(ys) {
  const isAlone = ys.map((y, i) => Number.isFinite(y) && !Number.isFinite(ys[i - 1]) && !Number.isFinite(ys[i + 1]));
  return isAlone.includes(true) ? isAlone.map((alone) => (alone ? 2.5 : 0)) : 0;
}

/**
 * A card with a chart and its legend. `context` has:
 *   settings            {axis, smoothing, logX, logY}
 *   load(metric, what)  resolves to series {name, label, href, color, dash, x, y, smooth, band, latest, least, most, runs};
 *                       what: {from, to, points, signal}
 *   lines()             returns the approximate number of lines
 *   links(metric)       returns [text, title, address] of each download
 *   pointed(x, card)    is called with the position of the cursor, null when it leaves
 * and optionally:
 *   title(metric)       returns the title; default: the metric
 *   mark()              returns a position on the horizontal axis to mark
 *   noun                noun of a line; default: run
 */
export class CurveCard {
  constructor(metric, context) {
    this.metric = metric;
    this.context = context;
    this.series = [];
    this.zoom = null;
    this.pointer = null;
    this.isMounted = false;
    this.isStale = true;
    this.isLoading = false;
    this.element = h("figure", { class: "card", "data-metric": metric });
    this.drawPointer = oncePerFrame(() => this.drawPointerNow());
  }

  mount() {
    if (this.isMounted) return;
    this.isMounted = true;
    this.abort = new AbortController();
    this.element.style.removeProperty("min-height");
    this.error = errorLine();
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.cross = h("div", { class: "cross", hidden: true });
    this.dot = h("div", { class: "dot", hidden: true });
    this.selection = h("div", { class: "selection", hidden: true });
    this.plot = h("div", { class: "plot", tabindex: 0, role: "img" }, this.canvas, this.cross, this.dot, this.selection);
    this.whole = h("button", { type: "button", class: "quiet whole", title: "Reset zoom (0)", hidden: true, onclick: () => this.setZoom(null) }, "whole");
    this.wide = h("button", { type: "button", class: "quiet", title: "Large or small", "aria-label": "Large or small",
      "aria-pressed": String(this.element.classList.contains("wide")), onclick: () => this.toggleWide() }, "⤢");
    this.tools = h("span", { class: "tools" });
    this.legend = h("div", { class: "legend idle" }); // No cursor yet.
    replace(this.element, h("figcaption", {}, h("span", { class: "ellipsis", title: this.metric }, this.context.title?.(this.metric) ?? this.metric), this.whole, this.tools, this.wide),
      this.error, this.plot, this.legend);
    this.listen();
    this.reload();
  }

  unmount() {
    if (!this.isMounted) return;
    // A card that the search hides has no height.
    if (this.element.offsetHeight > 0) this.element.style.setProperty("min-height", `${this.element.offsetHeight}px`);
    this.isMounted = false;
    this.isStale = true;
    this.isLoading = false;
    this.abort.abort();
    this.chart?.destroy();
    this.chart = null;
    replace(this.element);
  }

  toggleWide() {
    const isWide = this.element.classList.toggle("wide");
    this.wide.setAttribute("aria-pressed", String(isWide));
    this.reload();
  }

  /** Its data are outdated: reloads them now, or when the chart becomes visible. */
  async reload() {
    this.isStale = true;
    if (!this.isMounted || this.isLoading) return;
    const { signal } = this.abort;
    this.isLoading = true;
    while (this.isStale && !signal.aborted) {
      this.isStale = false;
      try {
        const share = POINTS.ofAll / (2 * Math.max(this.context.lines(), 1));
        const points = Math.max(Math.round(Math.min(this.plot.clientWidth, share, POINTS.most)), POINTS.least);
        const series = await this.context.load(this.metric, { ...this.zoom, points, signal });
        if (signal.aborted) return;
        this.series = series;
        this.error.show(series.find((one) => one.trouble)?.trouble ?? "");
        this.draw();
      } catch (error) {
        this.error.report(error, signal);
        if (signal.aborted) return;
        if (error.status !== 0) this.series = [];
        this.draw();
      }
    }
    this.isLoading = false;
  }

  // Rendering.

  datasets() {
    const { smoothing, logX, logY } = this.context.settings;
    const onX = shownOn(logX);
    const onY = shownOn(logY);
    const points = (x, y) => x.map((at, i) => ({ x: onX(at), y: onY(y[i]) }));
    const lines = [];
    const behind = [];
    for (const one of this.series) {
      if (one.isHidden) continue;
      const line = { borderColor: one.color, borderDash: one.dash, borderWidth: 1.6, pointBackgroundColor: one.color, pointBorderWidth: 0, fill: false };
      if (one.band) {
        const edge = { ...line, borderWidth: 0, pointRadius: 0 };
        const [low, high, least, most] = ["low", "high", "least", "most"].map((name) => points(one.x, one.band[name]));
        behind.push({ ...edge, data: least }, { ...edge, data: most, fill: "-1", backgroundColor: faint(one.color, 0.07) },
          { ...edge, data: low }, { ...edge, data: high, fill: "-1", backgroundColor: faint(one.color, 0.16) });
        lines.push({ ...line, data: points(one.x, one.y), pointRadius: radii(one.y.map(onY)), series: one.name });
      } else if (smoothing > 0 && one.smooth) {
        behind.push({ ...line, data: points(one.x, one.y), borderColor: faint(one.color, 0.3), borderWidth: 1, borderDash: [], pointRadius: 0 });
        lines.push({ ...line, data: points(one.x, one.smooth), pointRadius: radii(one.smooth.map(onY)), series: one.name });
      } else {
        lines.push({ ...line, data: points(one.x, one.y), pointRadius: radii(one.y.map(onY)), series: one.name });
      }
    }
    return [...lines, ...behind]; // The first one is drawn on top.
  }

  scale(axis, isLog) {
    const isX = axis === "x";
    const kind = this.context.settings.axis;
    const limits = isX && this.zoom ? { min: this.zoom.from, max: this.zoom.to } : { min: undefined, max: undefined };
    return {
      type: isLog ? "logarithmic" : "linear",
      ...limits,
      grid: { color: styleColor("--grid-line"), drawTicks: false, borderColor: styleColor("--line") },
      afterBuildTicks: isX && !isLog ? (scale) => {
        const ticks = timeTicks(kind, scale.min, scale.max, scale.width);
        if (ticks) scale.ticks = ticks;
      } : undefined,
      ticks: {
        color: styleColor("--soft"), font: { size: 11 }, padding: 6, maxRotation: 0, autoSkipPadding: 16, maxTicksLimit: isX ? 9 : 7,
        callback(value) {
          const span = this.max - this.min;
          return isX ? tickLabel(kind, value, span) : shortNumber(value, span);
        },
      },
    };
  }

  draw() {
    if (!this.isMounted) return;
    const { logX, logY } = this.context.settings;
    const scales = { x: this.scale("x", logX), y: this.scale("y", logY) };
    const datasets = this.datasets();
    const place = this.context.mark?.() ?? null;
    const placeColor = styleColor("--accent");
    const gaps = this.series.filter((one) => !one.isHidden).map((one) => ({ color: one.color, gaps: one.x.filter((_, i) => !Number.isFinite(one.y[i])) }));
    if (this.chart) {
      this.chart.data.datasets = datasets;
      this.chart.options.scales = scales;
      Object.assign(this.chart.options.plugins.marks, { series: gaps, place, placeColor });
      this.chart.update("none");
    } else {
      this.chart = new Chart(this.canvas, {
        type: "line",
        data: { datasets },
        plugins: [marks],
        options: {
          animation: false, parsing: false, normalized: true, responsive: true, maintainAspectRatio: false, events: [], spanGaps: false,
          layout: { padding: { top: 6, right: 10 } },
          elements: { point: { radius: 0 }, line: { tension: 0, borderJoinStyle: "round" } },
          plugins: { legend: { display: false }, tooltip: { enabled: false }, marks: { series: gaps, place, placeColor } },
          scales,
        },
      });
    }
    this.whole.hidden = !this.zoom;
    this.drawTools();
    this.drawLegend();
    this.drawPointer();
  }

  // Only changed links are replaced, so that the focus is kept.

  drawTools() {
    const links = this.context.links(this.metric);
    if (this.shownLinks === String(links) && this.tools.hasChildNodes()) return;
    this.shownLinks = String(links);
    replace(this.tools, links.map(([text, title, address]) => h("a", { class: "button quiet", href: address, title, download: true }, text)));
  }

  drawLegend() {
    const shown = this.series.filter((one) => !one.isHidden);
    const withPoints = shown.filter((one) => one.x.length > 0);
    const isBand = shown.some((one) => one.band);
    const isSmooth = this.context.settings.smoothing > 0 && !isBand;
    const layout = JSON.stringify([isBand, isSmooth, withPoints.map((one) => [one.name, one.color, one.dash]), this.error.textContent]);
    if (layout !== this.shownLayout || !this.legend.hasChildNodes()) {
      this.shownLayout = layout;
      this.makeLegend(withPoints, isBand, isSmooth, shown.length > 0);
    }
    for (const one of withPoints) {
      const { figures } = this.rows.get(one.name);
      if (isBand) {
        figures[0].textContent = formatNumber(one.y.at(-1));
        figures[1].textContent = formatNumber(one.runs);
        continue;
      }
      for (const [i, point] of [one.latest, one.least, one.most].entries()) {
        figures[i].title = point ? `${exactNumber(point.value)} at step ${formatNumber(point.step)}` : "";
        replace(figures[i], point && [formatNumber(point.value), h("small", {}, formatNumber(point.step))]);
      }
    }
    const count = isBand ? counted(shown.length, "group") : counted(withPoints.length, this.context.noun ?? "run");
    this.plot.setAttribute("aria-label", `${this.metric} of ${count}; the table below has the values`);
  }

  makeLegend(series, isBand, isSmooth, isAnyShown) {
    const titles = isBand ? ["last mean", "runs"] : ["latest", "min", "max"];
    this.seen = null;
    this.noPlace = isBand ? "group" : this.context.noun ?? "run";
    this.place = h("th", { scope: "col" }, this.noPlace);
    this.rows = new Map(series.map((one) => {
      const here = h("td", { class: "value here" });
      const smooth = isSmooth && h("td", { class: "value smooth" });
      const figures = titles.map(() => h("td", { class: "value figure" }));
      const row = h("tr", { onpointerenter: () => this.emphasize(one.name), onpointerleave: () => this.emphasize(null) },
        h("th", { scope: "row" }, h("span", { class: "run-name" }, lookElement(one),
          nameElement(one.label, one.href))), here, smooth, figures);
      return [one.name, { row, here, smooth, figures }];
    }));
    if (series.length === 0) {
      replace(this.legend, !this.error.textContent && h("p", { class: "muted nothing" }, isAnyShown ? "No points." : "No runs are shown."));
      return;
    }
    const heading = (text, kind = "") => h("th", { scope: "col", class: `value ${kind}` }, text);
    const top = this.legend.firstChild?.scrollTop ?? 0;
    replace(this.legend, h("div", { class: "legend-scroll" }, h("table", { class: isBand ? "of-groups" : "" },
      h("thead", {}, h("tr", {}, this.place, heading("here", "here"), isSmooth && heading("smooth", "smooth"), titles.map((text) => heading(text, "figure")))),
      h("tbody", {}, [...this.rows.values()].map(({ row }) => row)))));
    this.legend.firstChild.scrollTop = top;
    this.legend.firstChild.addEventListener("scroll", () => {
      this.seen = null;
      this.drawPointer();
    }, { passive: true });
  }

  // Highlights one curve.
  emphasize(name) {
    if (!this.chart) return;
    this.chart.options.plugins.marks.emphasized = name;
    this.chart.draw();
  }

  // The cursor.

  /** Shows the values at an x of the axis; null: none. `y`: vertical cursor position in pixels, if it is in this chart. */
  point(x, y = null) {
    this.pointer = x === null ? null : { x, y };
    if (this.isMounted) this.drawPointer();
  }

  drawPointerNow() {
    if (!this.chart || !this.rows) return;
    const { chartArea, scales } = this.chart;
    const at = this.pointer ? scales.x.getPixelForValue(this.pointer.x) : NaN;
    const isInside = at >= chartArea.left - 1 && at <= chartArea.right + 1;
    this.cross.hidden = !isInside;
    this.dot.hidden = true;
    this.legend.classList.toggle("idle", !isInside);
    this.place.textContent = isInside ? placeOn(this.context.settings.axis, this.pointer.x) : this.noPlace;
    if (isInside) {
      this.cross.style.setProperty("transform", `translateX(${at}px)`);
      this.cross.style.setProperty("top", `${chartArea.top}px`);
      this.cross.style.setProperty("height", `${chartArea.bottom - chartArea.top}px`);
    }
    let near = null;
    this.seen ??= this.seenRows();
    for (const [row, one] of this.series.filter(({ name }) => this.rows.has(name)).entries()) {
      const cells = this.rows.get(one.name);
      const isIn = isInside && this.pointer.x >= one.x[0] && this.pointer.x <= one.x.at(-1);
      const index = isIn ? nearest(one.x, this.pointer.x) : -1;
      if (this.seen(row)) writeValues(one, cells, index);
      if (!isIn || this.pointer.y === null) continue;
      const value = cells.smooth ? one.smooth[index] : one.y[index];
      const place = { x: scales.x.getPixelForValue(one.x[index]), y: scales.y.getPixelForValue(value), one, cells };
      const distance = Math.abs(place.y - this.pointer.y);
      if (Number.isFinite(distance) && (!near || distance < near.distance)) near = { ...place, distance };
    }
    if (this.near !== near?.cells) this.near?.row.classList.remove("near");
    this.near = near?.cells;
    if (!near) return;
    near.cells.row.classList.add("near");
    this.dot.hidden = false;
    this.dot.style.setProperty("transform", `translate(${near.x}px, ${near.y}px)`);
    this.dot.style.setProperty("background", near.one.color);
  }

  // The visible rows of the legend: only those are updated while the cursor moves.
  seenRows() {
    const scroller = this.legend.firstChild;
    const height = this.rows.values().next().value?.row.offsetHeight;
    if (!height || !scroller) return () => true;
    const first = Math.floor(scroller.scrollTop / height) - 1;
    const last = first + Math.ceil(scroller.clientHeight / height) + 1;
    return (row) => row >= first && row <= last;
  }

  setZoom(zoom) {
    this.zoom = zoom;
    this.draw();
    this.reload();
  }

  listen() {
    const { plot } = this;
    const placeOf = (event) => {
      const box = plot.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const valueAt = (pixel) => {
      const { chartArea: { left, right }, scales } = this.chart;
      return scales.x.getValueForPixel(Math.min(Math.max(pixel, left), right));
    };
    let begin = null;
    plot.addEventListener("pointerdown", (event) => {
      if (!this.chart || event.button !== 0) return;
      begin = placeOf(event).x;
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      if (!this.chart) return;
      const { x, y } = placeOf(event);
      const { left, right, top, bottom } = this.chart.chartArea;
      this.context.pointed(x >= left && x <= right ? valueAt(x) : null, this, y);
      if (begin === null) return;
      const [from, to] = [Math.max(Math.min(begin, x), left), Math.min(Math.max(begin, x), right)];
      this.selection.hidden = to - from < DRAG_PX;
      for (const [name, pixels] of [["left", from], ["width", Math.max(to - from, 0)], ["top", top], ["height", bottom - top]]) {
        this.selection.style.setProperty(name, `${pixels}px`);
      }
    });
    plot.addEventListener("pointerup", (event) => {
      if (begin === null) return;
      const { x } = placeOf(event);
      const isDragged = Math.abs(x - begin) >= DRAG_PX;
      const [from, to] = [valueAt(Math.min(begin, x)), valueAt(Math.max(begin, x))];
      begin = null;
      this.selection.hidden = true;
      if (isDragged && to > from) this.setZoom({ from, to });
    });
    plot.addEventListener("pointercancel", () => {
      begin = null;
      this.selection.hidden = true;
    });
    plot.addEventListener("pointerleave", () => this.context.pointed(null, this));
    plot.addEventListener("dblclick", () => this.setZoom(null));
    plot.addEventListener("keydown", (event) => {
      if (!this.chart || event.ctrlKey || event.metaKey || event.altKey) return;
      const { x } = this.chart.scales;
      const at = this.pointer?.x ?? x.getValueForPixel((x.left + x.right) / 2);
      if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
        const pixel = x.getPixelForValue(at) + (event.key === "ArrowRight" ? 8 : -8);
        this.context.pointed(valueAt(pixel), this);
      } else if (event.key === "+" || event.key === "=" || event.key === "-") {
        const factor = event.key === "-" ? 1 / ZOOM_BY_KEY : ZOOM_BY_KEY;
        const pixel = x.getPixelForValue(at);
        const [from, to] = [x.left, x.right].map((edge) => x.getValueForPixel(pixel + (edge - pixel) * factor));
        if (this.zoom || factor < 1) this.setZoom({ from, to });
      } else if (event.key === "0" || event.key === "Escape") {
        this.setZoom(null);
      } else {
        return;
      }
      event.preventDefault();
    });
    plot.addEventListener("blur", () => this.context.pointed(null, this));
  }
}

/** A sample of a run's line style. */
export function lookElement({ color, dash }) {
  return h("span", { class: `look ${dash?.length ? "dashed" : ""}`, style: { "--run": color }, "aria-hidden": "true" });
}
