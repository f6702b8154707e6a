// The flame graph of a profile: layers by the hierarchy of their names, as wide as their time.

import { h, onWidth, replace, s } from "./dom.js";
import { formatBytes } from "./format.js";
import { formatFlops, formatMs, formatShare, layerName, phaseColors } from "./profile_units.js";
import { theme } from "./theme.js";

const ROW_PX = 24;
const LETTER_PX = 6.6;
const LEAST_PX = 0.6; // Narrower layers are not drawn.
const PARTS = [["all", "Both"], ["forward_ms", "Forward"], ["backward_ms", "Backward"]];

function add(node, layer) {
  for (const name of ["forward_ms", "backward_ms", "other_ms", "ms", "flops", "bytes", "limit_ms"]) node[name] = (node[name] ?? 0) + layer[name];
}

/** The tree of layers: {name, path, children, and the sums of its layers}. */
function treeOf(layers) {
  const root = { name: "all layers", path: "", children: new Map() };
  for (const layer of layers) {
    let node = root;
    add(root, layer);
    const parts = layerName(layer.name).split(".");
    parts.forEach((name, i) => {
      // "0" alone says little.
      const label = /^\d+$/.test(name) && i > 0 ? `${parts[i - 1]}.${name}` : name;
      if (!node.children.has(name)) node.children.set(name, { name: label, path: parts.slice(0, i + 1).join("."), children: new Map() });
      node = node.children.get(name);
      add(node, layer);
    });
  }
  return root;
}

const depthOf = (node) => 1 + Math.max(0, ...[...node.children.values()].map(depthOf));

/** Draws the layers until the signal is aborted. */
export function flameGraph({ layers, step_ms: stepMs }, signal) {
  const root = treeOf(layers);
  const state = { width: 0, part: "all", top: root };
  const drawing = h("div", { class: "flame" });
  const label = h("div", { class: "point-label", role: "status", hidden: true });
  const buttons = PARTS.map(([name, text]) => h("button", { type: "button", "data-part": name, onclick: () => {
    state.part = name;
    draw();
  } }, text));
  const back = h("button", { type: "button", class: "quiet", onclick: () => {
    state.top = root;
    draw();
  } }, "← All layers");
  const valueOf = (node) => (state.part === "all" ? node.ms : node[state.part]);

  function show(node, x, y) {
    replace(label, h("b", {}, node.path || node.name), h("div", {}, formatMs(node.ms), h("span", { class: "muted" }, ` ${formatShare(node.ms / stepMs)} of the step`)),
      h("div", {}, `forward ${formatMs(node.forward_ms)}, backward ${formatMs(node.backward_ms)}`),
      node.flops > 0 && h("div", {}, `${formatFlops(node.flops)}, ${formatBytes(node.bytes)}`),
      node.limit_ms > 0 && h("div", { class: "muted" }, `${formatShare(node.limit_ms / node.ms)} of the hardware limit`));
    label.hidden = false;
    label.style.setProperty("transform", `translate(${Math.max(0, Math.min(x, state.width - label.offsetWidth - 4))}px, ${y}px)`);
  }

  function rects(node, left, width, row, all) {
    if (width < LEAST_PX) return;
    all.push({ node, left, width, row });
    let at = left;
    for (const child of node.children.values()) {
      if (!(valueOf(child) > 0)) continue;
      const part = width * valueOf(child) / valueOf(node);
      rects(child, at, part, row + 1, all);
      at += part;
    }
  }

  function draw() {
    if (signal.aborted || state.width === 0) return;
    const colorOf = phaseColors();
    buttons.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.part === state.part)));
    back.hidden = state.top === root;
    const all = [];
    if (valueOf(state.top) > 0) rects(state.top, 0, state.width, 0, all);
    const height = ROW_PX * depthOf(state.top);
    const text = ({ node, width }) => {
      const letters = Math.floor((width - 10) / LETTER_PX);
      const full = `${node.name}   ${formatMs(valueOf(node))}`;
      if (letters >= full.length) return full;
      return letters < 3 ? "" : node.name.length <= letters ? node.name : `${node.name.slice(0, letters - 1)}…`;
    };
    const focused = drawing.contains(document.activeElement) ? document.activeElement.getAttribute("data-path") : null;
    replace(drawing, s("svg", { width: state.width, height, role: "group", "aria-label": "Time of the layers" }, all.map((one) => {
      const { node, left, width, row } = one;
      const inner = Math.max(width - 1, LEAST_PX), top = row * ROW_PX;
      const forward = state.part === "all" ? inner * node.forward_ms / node.ms : state.part === "forward_ms" ? inner : 0;
      const backward = state.part === "all" ? inner * node.backward_ms / node.ms : inner - forward;
      const enter = () => {
        state.top = node === state.top ? root : node;
        draw();
      };
      const hide = () => { label.hidden = true; };
      const appear = () => show(node, left, top + ROW_PX + 6);
      return s("g", { tabindex: 0, role: "button", "data-path": node.path, "aria-label": `${node.path || node.name}, ${formatMs(node.ms)}`,
        onclick: enter, onkeydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          enter();
        }, onpointerenter: appear, onpointerleave: hide, onfocus: appear, onblur: hide },
      s("rect", { class: "rest", x: left, y: top, width: inner, height: ROW_PX - 2 }),
      s("rect", { x: left, y: top, width: forward, height: ROW_PX - 2, style: { fill: colorOf("forward") } }),
      s("rect", { x: left + forward, y: top, width: backward, height: ROW_PX - 2, style: { fill: colorOf("backward") } }),
      s("text", { x: left + 5, y: top + ROW_PX / 2 - 1, dy: "0.32em" }, text(one)));
    })));
    if (focused !== null) drawing.querySelector(`[data-path="${CSS.escape(focused)}"]`)?.focus();
  }

  onWidth(drawing, signal, (width) => {
    state.width = Math.floor(width);
    draw();
  });
  theme.addEventListener("change", draw, { signal });
  return [h("div", { class: "toolbar-in-box" }, h("span", { class: "parts" }, buttons), back,
    h("span", { class: "muted" }, "Click a layer to enlarge it.")), h("div", { class: "with-label" }, drawing, label)];
}
