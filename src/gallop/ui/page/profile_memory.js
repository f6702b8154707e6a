// The memory that a compiled step holds while each of its nodes runs, by category, and what it is at the peak.

import { shortNumber } from "./axes.js";
import { h, onWidth, replace, s } from "./dom.js";
import { formatBytes } from "./format.js";
import { layerName, MEMORY_CATEGORIES as CATEGORIES, memoryColors } from "./profile_units.js";
import { plainTable } from "./tables.js";
import { theme } from "./theme.js";

const SIZE = { height: 260, top: 22, bottom: 40, left: 66, right: 14 };
const SHOWN_LAYERS = 6;
const PHASE_PX = 66;

const totalOf = (use) => CATEGORIES.reduce((sum, name) => sum + use[name], 0);

function niceStep(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => most / step <= 5);
}

function peakText({ peak, peak_phase: phase, peak_layer: layer }) {
  const parts = CATEGORIES.map((name) => `${name} ${formatBytes(peak[name])}`).join(", ");
  return [`The step holds most in ${phase || "a node"}${layer ? ` of ${layer}` : ""}: `, h("b", {}, formatBytes(totalOf(peak))), ` (${parts}).`];
}

/** Draws the memory until the signal is aborted. */
export function memoryPlot({ memory }, signal) {
  const { nodes } = memory;
  if (nodes.length === 0) return h("p", { class: "muted" }, "Only compiled steps have a plan of their memory.");
  const drawing = h("div", { class: "memory" });
  const label = h("div", { class: "point-label", role: "status", hidden: true });
  // Nodes without a time still have an extent.
  const least = nodes.reduce((sum, { ms }) => sum + ms, 0) / nodes.length / 100 || 1;
  const begins = [];
  let end = 0;
  for (const { ms } of nodes) {
    begins.push(end);
    end += Math.max(ms, least);
  }
  const peak = nodes.reduce((best, node, i) => (totalOf(node) > totalOf(nodes[best]) ? i : best), 0);
  const most = totalOf(nodes[peak]) * 1.08;
  const state = { width: 0, at: peak };

  const xOf = (ms) => SIZE.left + ms / end * (state.width - SIZE.left - SIZE.right);
  const yOf = (bytes) => SIZE.height - SIZE.bottom - bytes / most * (SIZE.height - SIZE.top - SIZE.bottom);

  function show(i) {
    state.at = Math.min(Math.max(i, 0), nodes.length - 1);
    const node = nodes[state.at];
    replace(label, h("b", {}, formatBytes(totalOf(node))), CATEGORIES.map((name) => h("div", {}, h("span", { class: "muted" }, `${name} `), formatBytes(node[name]))),
      h("div", {}, [node.phase, node.layer].filter(Boolean).join(" of ")), h("code", {}, node.operator));
    label.hidden = false;
    const x = xOf(begins[state.at]);
    label.style.setProperty("transform", `translate(${Math.max(4, Math.min(x + 12, state.width - label.offsetWidth - 4))}px, ${SIZE.top}px)`);
    const cursor = drawing.querySelector(".cursor");
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    cursor.removeAttribute("visibility");
  }

  function hide() {
    label.hidden = true;
    drawing.querySelector(".cursor")?.setAttribute("visibility", "hidden");
  }

  function nodeAt(event) {
    const box = drawing.getBoundingClientRect();
    const ms = (event.clientX - box.left - SIZE.left) / (state.width - SIZE.left - SIZE.right) * end;
    const after = begins.findIndex((begin) => begin > ms);
    return after < 0 ? nodes.length - 1 : after - 1;
  }

  function area(from, to) {
    const upper = [], lower = [];
    nodes.forEach((node, i) => {
      const left = xOf(begins[i]).toFixed(1), right = xOf(i + 1 < nodes.length ? begins[i + 1] : end).toFixed(1);
      upper.push(`${left},${yOf(to(node)).toFixed(1)}`, `${right},${yOf(to(node)).toFixed(1)}`);
      lower.push(`${left},${yOf(from(node)).toFixed(1)}`, `${right},${yOf(from(node)).toFixed(1)}`);
    });
    return `M${upper.join("L")}L${lower.reverse().join("L")}Z`;
  }

  function draw() {
    if (signal.aborted || state.width === 0) return;
    const colorOf = memoryColors();
    const below = (count) => (node) => CATEGORIES.slice(0, count).reduce((sum, name) => sum + node[name], 0);
    const step = niceStep(most), x = xOf(begins[peak]);
    const isRight = x > state.width * 0.7;
    const times = Array.from({ length: 5 }, (_, i) => i / 4 * end);
    // The middle of a phase; none for one that is too narrow for its name.
    const middleOf = (name) => {
      const own = nodes.map(({ phase }, i) => (phase === name ? begins[i] : -1)).filter((at) => at >= 0);
      if (own.length === 0 || xOf(own.at(-1)) - xOf(own[0]) < PHASE_PX) return null;
      return (xOf(own[0]) + xOf(own.at(-1))) / 2;
    };
    replace(drawing, s("svg", { width: state.width, height: SIZE.height, tabindex: 0, role: "img", "aria-label": "Memory over the step. Arrow keys move through its nodes.",
      onpointermove: (event) => show(nodeAt(event)), onpointerleave: hide, onblur: hide, onfocus: () => show(state.at),
      onkeydown: (event) => {
        const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!move) return;
        event.preventDefault();
        show(state.at + move);
      } },
    Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => s("g", { class: "tick", transform: `translate(0, ${yOf(i * step)})` },
      s("line", { class: "grid-line", x1: SIZE.left, x2: state.width - SIZE.right }),
      s("text", { x: SIZE.left - 6, dy: "0.32em", "text-anchor": "end" }, formatBytes(i * step)))),
    times.map((ms) => s("text", { x: xOf(ms), y: SIZE.height - SIZE.bottom + 15, "text-anchor": "middle" }, shortNumber(Number(ms.toPrecision(3))))),
    s("text", { class: "axis-title", x: (SIZE.left + state.width - SIZE.right) / 2, y: SIZE.height - 6, "text-anchor": "middle" }, "ms of the step's operators"),
    CATEGORIES.map((name, i) => s("path", { d: area(below(i), below(i + 1)), style: { fill: colorOf(name) } })),
    ["forward", "backward", "optimizer"].map((name) => middleOf(name) !== null && s("text", { class: "phase-name", x: middleOf(name), y: SIZE.height - SIZE.bottom - 6, "text-anchor": "middle" },
      name)),
    s("line", { class: "peak", x1: x, x2: x, y1: SIZE.top - 8, y2: SIZE.height - SIZE.bottom }),
    s("text", { class: "axis-title", x: x + (isRight ? -5 : 5), y: SIZE.top - 2, "text-anchor": isRight ? "end" : "start" }, `peak ${formatBytes(totalOf(nodes[peak]))}`),
    s("line", { class: "cursor", visibility: "hidden", y1: SIZE.top, y2: SIZE.height - SIZE.bottom })));
  }

  onWidth(drawing, signal, (width) => {
    state.width = Math.max(Math.floor(width), 260);
    draw();
  });
  const key = h("ul", { class: "phase-key" });
  const drawKey = () => {
    const colorOf = memoryColors();
    replace(key, CATEGORIES.map((name) => h("li", {}, h("i", { style: { background: colorOf(name) } }), name)));
  };
  drawKey();
  theme.addEventListener("change", () => {
    drawKey();
    draw();
  }, { signal });
  const number = (text) => ({ text, isNumber: true });
  return [h("div", { class: "with-label" }, drawing, label), key, h("p", {}, peakText(memory)),
    plainTable([{ text: "layer at the peak" }, ...CATEGORIES.map(number)], memory.layers.slice(0, SHOWN_LAYERS).map((one) => ({
      cells: [layerName(one.layer), ...CATEGORIES.map((name) => (one[name] > 0 ? formatBytes(one[name]) : "–"))],
    }))), memory.nodes.length > 0 && h("p", { class: "muted" }, `All of it is in a block of ${formatBytes(memory.planned)}, next to parameters and optimizer state.`)];
}
