// The roofline of a profile: its operators by FLOPs per byte and rate, below the measured peaks of the machine (Williams
// et al., 2009).

import { h, onWidth, replace, s } from "./dom.js";
import { formatBytes } from "./format.js";
import { formatFlops, formatMs, formatShare, layerName, phaseColors } from "./profile_units.js";
import { looksInOrder, theme } from "./theme.js";

const SIZE = { height: 440, top: 14, bottom: 42, left: 64, right: 14 };
const MOST_POINTS = 300;

const decades = (low, high) => Array.from({ length: Math.round(high - low) + 1 }, (_, i) => low + i);

/** Draws the operators until the signal is aborted. */
export function roofline({ operators, peaks, step_ms: stepMs }, signal) {
  const drawing = h("div", { class: "roofline" });
  const label = h("div", { class: "point-label", role: "status", hidden: true });
  const points = operators.filter(({ flops, bytes, ms }) => flops > 0 && bytes > 0 && ms > 0).slice(0, MOST_POINTS)
    .map((one) => ({ ...one, intensity: one.flops / one.bytes, rate: 1000 * one.flops / one.ms }));
  const others = operators.filter(({ flops }) => !(flops > 0)).reduce((sum, { ms }) => sum + ms, 0);
  if (points.length === 0) return h("p", { class: "muted" }, "No operator with counted FLOPs.");
  const formats = [...new Set(points.map(({ format }) => format))].sort();
  const roofs = formats.filter((format) => peaks.flops_per_second[format] > 0).map((format) => ({ format, rate: peaks.flops_per_second[format] }));
  const memory = peaks.bytes_per_second;
  const slopes = memory.length === 0 ? [] : [{ name: "memory", rate: memory.at(-1)[1] },
    { name: "caches", rate: Math.max(...memory.map(([, rate]) => rate)) }].filter(({ rate }, i, all) => i === 0 || rate > 1.1 * all[0].rate);
  const logs = (values) => values.map(Math.log10);
  const highest = Math.max(...roofs.map(({ rate }) => rate), ...points.map(({ rate }) => rate));
  const x = { low: Math.floor(Math.min(...logs(points.map(({ intensity }) => intensity)), -1)), high: Math.ceil(Math.max(...logs(points.map(({ intensity }) => intensity)), 2)) };
  const y = { low: Math.floor(Math.min(...logs(points.map(({ rate }) => rate)))), high: Math.ceil(Math.log10(1.3 * highest)) };

  function draw(width) {
    const at = (axis, value, from, to) => from + (Math.log10(value) - axis.low) / (axis.high - axis.low) * (to - from);
    const xOf = (value) => at(x, value, SIZE.left, width - SIZE.right);
    const yOf = (value) => at(y, value, SIZE.height - SIZE.bottom, SIZE.top);
    const looks = looksInOrder(formats);
    const lowest = 10 ** y.low, left = 10 ** x.low, right = 10 ** x.high;
    // A slope begins where it enters the plot and ends at the highest roof.
    const slope = ({ name, rate }, i) => {
      const from = Math.max(left, lowest / rate), to = Math.min(right, highest / rate);
      const [x1, y1, x2, y2] = [xOf(from), yOf(from * rate), xOf(to), yOf(to * rate)];
      const turned = -Math.atan2(y1 - y2, x2 - x1) * 180 / Math.PI;
      return [s("line", { class: `roof ${i > 0 ? "dashed" : ""}`, x1, y1, x2, y2 }),
        s("text", { class: "roof-name", transform: `translate(${(x1 + x2) / 2}, ${(y1 + y2) / 2}) rotate(${turned})`, dy: "-5", "text-anchor": "middle" },
          `${name} ${formatBytes(rate)}/s`)];
    };
    const roof = ({ format, rate }) => {
      const from = slopes.length > 0 ? Math.max(left, rate / Math.max(...slopes.map((one) => one.rate))) : left;
      const x1 = xOf(Math.min(from, right));
      return [s("line", { class: "roof", x1, y1: yOf(rate), x2: width - SIZE.right, y2: yOf(rate), style: { stroke: looks.get(format).color } }),
        s("text", { class: "roof-name", x: Math.min(x1 + 4, width - SIZE.right - 130), y: yOf(rate) - 5 }, `${format} ${formatFlops(rate, "FLOP/s")}`)];
    };
    const hide = () => { label.hidden = true; };
    const show = (point) => {
      replace(label, h("b", {}, layerName(point.layer)), h("div", {}, h("code", {}, point.call.slice(0, 120))),
        h("div", {}, formatMs(point.ms), h("span", { class: "muted" }, ` ${formatShare(point.ms / stepMs)} of the step`)),
        h("div", {}, formatFlops(point.rate, "FLOP/s"), h("span", { class: "muted" }, ` at ${Number(point.intensity.toPrecision(3))} FLOP/byte`)),
        point.limit_ms > 0 && h("div", { class: "muted" }, `${formatShare(point.limit_ms / point.ms)} of the hardware limit`));
      label.hidden = false;
      const across = Math.min(xOf(point.intensity) + 12, width - label.offsetWidth - 4);
      label.style.setProperty("transform", `translate(${Math.max(across, 4)}px, ${Math.max(yOf(point.rate) - label.offsetHeight - 10, 0)}px)`);
    };
    replace(drawing, s("svg", { width, height: SIZE.height, role: "group", "aria-label": "Roofline" },
      decades(x.low, x.high).map((power) => s("g", { class: "tick", transform: `translate(${xOf(10 ** power)}, 0)` },
        s("line", { class: "grid-line", y1: SIZE.top, y2: SIZE.height - SIZE.bottom }),
        s("text", { y: SIZE.height - SIZE.bottom + 16, "text-anchor": "middle" }, String(Number((10 ** power).toPrecision(1)))))),
      decades(y.low, y.high).map((power) => s("g", { class: "tick", transform: `translate(0, ${yOf(10 ** power)})` },
        s("line", { class: "grid-line", x1: SIZE.left, x2: width - SIZE.right }),
        s("text", { x: SIZE.left - 6, dy: "0.32em", "text-anchor": "end" }, formatFlops(10 ** power, "").trim()))),
      s("text", { class: "axis-title", x: (SIZE.left + width - SIZE.right) / 2, y: SIZE.height - 6, "text-anchor": "middle" }, "FLOPs per byte"),
      s("text", { class: "axis-title", transform: `translate(12, ${(SIZE.height - SIZE.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "FLOP/s"),
      s("g", { class: "points" }, [...points].sort((a, b) => b.ms - a.ms).map((point) => s("a", { tabindex: 0, role: "img", "aria-label": `${layerName(point.layer)}, ${formatFlops(point.rate, "FLOP/s")}`,
        onpointerenter: () => show(point), onpointerleave: hide, onfocus: () => show(point), onblur: hide },
      s("circle", { cx: xOf(point.intensity), cy: yOf(point.rate), r: Math.max(3, Math.min(12, 40 * Math.sqrt(point.ms / stepMs))), style: { fill: looks.get(point.format).color } })))),
      slopes.map(slope), roofs.map(roof)));
  }

  let room = 0;
  onWidth(drawing, signal, (width) => {
    room = Math.max(Math.floor(width), 260);
    draw(room);
  });
  theme.addEventListener("change", () => room > 0 && draw(room), { signal });
  return [h("div", { class: "with-label" }, drawing, label),
    h("p", { class: "muted" }, "The area of a point is its time.", others > 0 && ` Operators without FLOPs take ${formatShare(others / stepMs)} of the step.`)];
}
