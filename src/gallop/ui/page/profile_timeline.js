// The timeline of a profile on a canvas: a row of lanes for each thread. The wheel zooms, dragging pans.

import { h, oncePerFrame, onWidth, replace } from "./dom.js";
import { formatBytes } from "./format.js";
import { formatFlops, formatMs, phaseColors } from "./profile_units.js";
import { styleColor, theme } from "./theme.js";

const LANE_PX = 18;
const GAP_PX = 8; // Between threads.
const AXIS_PX = 24;
const LEAST_LABEL_PX = 60, MOST_LABEL_PX = 170; // Names of threads.
const FONT = "11px system-ui, sans-serif";
const TEXT_PX = 34; // Narrower spans have no name.
const LETTER_PX = 6.2;
const LEAST_MS = 1e-4; // The narrowest range.
const ZOOM = 1.3;
const COLLECTIVE = /all_reduce|all_gather|reduce_scatter|wait_tensor|broadcast/;

// The steps of axes: 1, 2 and 5 times a power of ten.
function tickStep(wanted) {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= wanted);
}

export class Timeline {
  /** `spans`: of spansOf(). Draws until the signal is aborted. */
  constructor({ groups, begin, end }, signal) {
    Object.assign(this, { groups, whole: [begin, end], view: [begin, end], width: 0, picked: null });
    let top = AXIS_PX;
    this.lanes = [];
    for (const group of groups) {
      group.top = top;
      for (const lane of group.lanes) {
        this.lanes.push({ spans: lane, top });
        top += LANE_PX;
      }
      top += GAP_PX;
    }
    this.height = top;
    this.canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": `Timeline of ${groups.length} threads. ` +
      "Arrow keys move to another span, Shift with arrow keys pans, plus and minus zoom, 0 shows all." });
    this.label = h("div", { class: "point-label", role: "status", hidden: true });
    this.element = h("div", { class: "timeline" }, this.canvas, this.label);
    this.draw = oncePerFrame(() => !signal.aborted && this.drawNow());
    this.labelPx = labelWidth(groups);
    this.readColors();
    this.listen(signal);
    onWidth(this.element, signal, (width) => {
      this.width = Math.floor(width);
      this.drawNow();
    });
    theme.addEventListener("change", () => {
      this.readColors();
      this.draw();
    }, { signal });
  }

  readColors() {
    this.colors = Object.fromEntries(["ink", "soft", "line", "surface", "grid-line", "accent"].map((name) => [name, styleColor(`--${name}`)]));
    this.phaseColor = phaseColors();
  }

  colorOf({ name, kind, args }) {
    if (name.startsWith("ProfilerStep#")) return this.colors["grid-line"];
    if (kind === "data" || name.startsWith("enumerate(")) return this.phaseColor("data wait");
    if (kind === "communication" || COLLECTIVE.test(name)) return this.phaseColor("communication");
    if (args.phase) return this.phaseColor(args.phase);
    if (kind === "evaluation" || kind === "checkpoint") return this.phaseColor(kind);
    return kind === "cpu_op" ? this.phaseColor("optimizer") : this.colors.line;
  }

  xOf(ms) {
    return this.labelPx + (ms - this.view[0]) / (this.view[1] - this.view[0]) * (this.width - this.labelPx);
  }

  msAt(x) {
    return this.view[0] + (x - this.labelPx) / (this.width - this.labelPx) * (this.view[1] - this.view[0]);
  }

  setView(begin, end) {
    const [first, last] = this.whole;
    const size = Math.min(Math.max(end - begin, LEAST_MS), last - first);
    const from = Math.min(Math.max(begin, first), last - size);
    this.view = [from, from + size];
    this.draw();
  }

  zoom(factor, at) {
    const [begin, end] = this.view;
    this.setView(at - (at - begin) * factor, at + (end - at) * factor);
  }

  pan(share) {
    const size = this.view[1] - this.view[0];
    this.setView(this.view[0] + share * size, this.view[1] + share * size);
  }

  drawNow() {
    if (this.width < this.labelPx + 50) return;
    const scale = devicePixelRatio || 1;
    this.canvas.width = this.width * scale;
    this.canvas.height = this.height * scale;
    this.canvas.style.setProperty("height", `${this.height}px`);
    const pen = this.canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = FONT;
    pen.textBaseline = "middle";
    this.drawAxis(pen);
    pen.save();
    pen.beginPath();
    pen.rect(this.labelPx, 0, this.width - this.labelPx, this.height);
    pen.clip();
    for (const lane of this.lanes) this.drawLane(pen, lane);
    pen.restore();
    pen.fillStyle = this.colors.soft;
    for (const { label, top } of this.groups) pen.fillText(label, 0, top + LANE_PX / 2, this.labelPx - 8);
  }

  drawAxis(pen) {
    const size = this.view[1] - this.view[0];
    const step = tickStep(size * 90 / (this.width - this.labelPx));
    pen.fillStyle = this.colors.soft;
    pen.strokeStyle = this.colors["grid-line"];
    const origin = this.whole[0];
    for (let i = Math.ceil((this.view[0] - origin) / step); origin + i * step <= this.view[1]; ++i) {
      const x = Math.round(this.xOf(origin + i * step)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, AXIS_PX - 4);
      pen.lineTo(x, this.height);
      pen.stroke();
      const text = i === 0 ? "0 ms" : formatMs(i * step);
      const left = x - (i === 0 ? 0 : pen.measureText(text).width / 2);
      if (left >= this.labelPx - 1 && x + 20 < this.width) pen.fillText(text, left, 9);
    }
  }

  // Spans that end within the same pixel as the one before are left out.
  drawLane(pen, { spans, top }) {
    let drawn = -1;
    for (let i = firstEndingAfter(spans, this.view[0]); i < spans.length && spans[i].begin < this.view[1]; ++i) {
      const span = spans[i];
      const left = Math.max(this.xOf(span.begin), this.labelPx - 1), right = Math.min(this.xOf(span.end), this.width + 1);
      if (right < drawn + 0.5) continue;
      const width = Math.max(right - left - 0.5, 0.7);
      pen.fillStyle = this.colorOf(span);
      pen.fillRect(left, top, width, LANE_PX - 2);
      drawn = right;
      if (span === this.picked) {
        pen.strokeStyle = this.colors.ink;
        pen.lineWidth = 2;
        pen.strokeRect(left + 1, top + 1, Math.max(width - 2, 1), LANE_PX - 4);
        pen.lineWidth = 1;
      }
      if (width > TEXT_PX) this.drawName(pen, span, left, top, width);
    }
  }

  drawName(pen, span, left, top, width) {
    const letters = Math.floor((width - 6) / LETTER_PX);
    const text = span.args.layer ? `${span.name} ${span.args.layer}` : span.name;
    pen.fillStyle = onColor(pen.fillStyle, this.colors);
    pen.fillText(text.length > letters ? `${text.slice(0, letters - 1)}…` : text, left + 4, top + LANE_PX / 2 - 1);
  }

  spanAt(x, y) {
    if (x < this.labelPx) return null;
    const lane = this.lanes.find(({ top }) => y >= top && y < top + LANE_PX);
    if (!lane) return null;
    const ms = this.msAt(x), near = Math.abs(this.msAt(x + 1.5) - ms);
    const found = lane.spans[firstEndingAfter(lane.spans, ms - near)];
    return found && found.begin <= ms + near ? found : null;
  }

  pick(span) {
    if (span === this.picked) return;
    this.picked = span;
    this.draw();
    this.label.hidden = !span;
    if (!span) return;
    const { args } = span;
    replace(this.label, h("b", {}, span.name), h("div", {}, formatMs(span.end - span.begin),
      h("span", { class: "muted" }, ` from ${formatMs(span.begin - this.whole[0])}`)),
    args.layer && h("div", {}, args.layer), args.phase && h("div", { class: "muted" }, args.phase),
    (args.flops || args.bytes) && h("div", {}, [args.flops && formatFlops(args.flops), args.bytes && formatBytes(args.bytes)].filter(Boolean).join(", ")),
    args.flops && h("div", { class: "muted" }, formatFlops(1000 * args.flops / (span.end - span.begin), "FLOP/s")),
    args.call && h("code", {}, args.call.slice(0, 160)));
    const lane = this.lanes.find(({ spans }) => spans.includes(span));
    const left = Math.max(this.labelPx, Math.min(this.xOf(span.begin), this.width - this.label.offsetWidth - 4));
    this.label.style.setProperty("transform", `translate(${left}px, ${lane.top + LANE_PX + 4}px)`);
  }

  // Moves to the neighbor in the lane, or to the nearest span of another lane.
  step(across, down) {
    const at = this.picked ? this.lanes.findIndex(({ spans }) => spans.includes(this.picked)) : -1;
    if (at < 0) {
      this.pick(this.lanes[0].spans.find(({ end }) => end > this.view[0]) ?? this.lanes[0].spans[0]);
      return;
    }
    const lane = this.lanes[Math.min(Math.max(at + down, 0), this.lanes.length - 1)].spans;
    const i = down === 0 ? lane.indexOf(this.picked) + across : firstEndingAfter(lane, this.picked.begin);
    const span = lane[Math.min(Math.max(i, 0), lane.length - 1)];
    if (span.begin < this.view[0] || span.begin > this.view[1]) {
      const half = (this.view[1] - this.view[0]) / 2;
      this.setView(span.begin - half, span.begin + half);
    }
    this.pick(span);
  }

  listen(signal) {
    const { canvas } = this;
    let dragged = null;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.width);
      else this.zoom(event.deltaY > 0 ? ZOOM : 1 / ZOOM, this.msAt(Math.max(place(event)[0], this.labelPx)));
    }, { signal, passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      dragged = { x: event.clientX, view: this.view };
      canvas.setPointerCapture(event.pointerId);
    }, { signal });
    canvas.addEventListener("pointermove", (event) => {
      if (!dragged) {
        this.pick(this.spanAt(...place(event)));
        return;
      }
      const [begin, end] = dragged.view;
      const moved = (dragged.x - event.clientX) / (this.width - this.labelPx) * (end - begin);
      this.setView(begin + moved, end + moved);
    }, { signal });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { dragged = null; }, { signal });
    for (const name of ["pointerleave", "blur"]) canvas.addEventListener(name, () => this.pick(null), { signal });
    canvas.addEventListener("dblclick", () => this.setView(...this.whole), { signal });
    canvas.addEventListener("keydown", (event) => this.key(event), { signal });
  }

  key(event) {
    const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    const middle = this.picked ? (Math.max(this.picked.begin, this.view[0]) + Math.min(this.picked.end, this.view[1])) / 2
      : (this.view[0] + this.view[1]) / 2;
    if (across !== 0 && event.shiftKey) this.pan(0.2 * across);
    else if (across !== 0 || down !== 0) this.step(across, down);
    else if (event.key === "+") this.zoom(1 / ZOOM, middle);
    else if (event.key === "-") this.zoom(ZOOM, middle);
    else if (event.key === "0") this.setView(...this.whole);
    else return;
    event.preventDefault();
  }
}

function labelWidth(groups) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = FONT;
  const widest = Math.max(...groups.map(({ label }) => pen.measureText(label).width));
  return Math.ceil(Math.min(Math.max(widest + 14, LEAST_LABEL_PX), MOST_LABEL_PX));
}

// The spans of a lane are disjoint and sorted.
function firstEndingAfter(spans, ms) {
  let low = 0, high = spans.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans[middle].end <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

// White or black, whichever has more contrast with the color; the ink on backgrounds of the page.
function onColor(color, colors) {
  if (!color.startsWith("#")) return colors.ink;
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#10141c" : "#ffffff";
}
