// Parallel coordinates: an axis for each column, a line for each run.

import { numberOf } from "./api.js";
import { choose, chooseNone } from "./chosen.js";
import { knownColumns, openColumnChooser, titleOf } from "./columns.js";
import { h, onWidth, options, replace, s } from "./dom.js";
import { errorLine } from "./errors.js";
import { counted, exactNumber, formatNumber, shortened } from "./format.js";
import { nameElement } from "./run_name.js";
import { differing, valuesOf } from "./run_values.js";
import { hasValue, makeScale, spaced } from "./scales.js";
import { plainTable } from "./tables.js";
import { scaleColor, theme } from "./theme.js";

const SIZE = { height: 380, top: 46, bottom: 34, side: 70, axis: 118 };
const FIRST_AXES = 7;
const ASKED_OPTIONS = 60; // Of which those that differ become axes.
const LISTED = 50;
const BRUSH_PX = 22;
const TICK_PX = 13;
const LETTERS = 16; // Of a title or tick.

/** Draws the runs that filters choose until the signal is aborted; gives what asks for them again. */
export function showParallel(root, { filters, signal }) {
  let room = 0; // For the drawing, in pixels.
  const state = { runs: [], columns: null, known: [], color: "", logs: new Map(), brushes: new Map() };
  const error = errorLine();
  const axesButton = h("button", { type: "button", id: "axes", onclick: () =>
    openColumnChooser("Axes", state.known, state.columns, (columns) => {
      state.columns = columns;
      load();
    }) }, "Axes");
  const colorSelect = h("select", { "aria-label": "Color by", onchange: () => {
    state.color = colorSelect.value;
    draw();
  } });
  const clear = h("button", { type: "button", hidden: true, onclick: () => {
    state.brushes.clear();
    draw();
  } }, "Clear ranges");
  const chooseButton = h("button", { type: "button", hidden: true, onclick: () => {
    chooseNone();
    choose(inside().map((run) => run.name));
    location.hash = "#/";
  } });
  const told = h("span", { class: "muted", role: "status" });
  const drawing = h("div", { class: "drawing" });
  const table = h("div", { class: "below" });
  replace(root, h("div", { class: "toolbar" }, axesButton, h("label", { class: "field" }, h("span", {}, "Color by"), colorSelect), clear, chooseButton,
    h("span", { class: "spacer" }), told), error,
  h("p", { class: "muted hint" }, "Drag along an axis to keep the runs within a range; a double click on it lets go. A click on a name changes between linear and logarithmic."),
  drawing, table);

  async function load() {
    try {
      state.known = await knownColumns(signal);
      if (!state.columns) {
        const params = state.known.filter((column) => column.startsWith("params.")).slice(0, ASKED_OPTIONS);
        const metrics = ["metrics.accuracy", "metrics.loss"].filter((column) => state.known.includes(column));
        const last = metrics.length > 0 ? metrics : state.known.filter((column) => column.startsWith("metrics.")).slice(0, 1);
        const runs = await valuesOf(filters, params, signal);
        state.columns = [...differing(runs, params).slice(0, FIRST_AXES - last.length), ...last.reverse()];
      }
      const runs = await valuesOf(filters, state.columns, signal);
      error.show("");
      if (JSON.stringify([runs, state.columns]) === state.shown) return;
      state.shown = JSON.stringify([runs, state.columns]);
      state.runs = runs;
      if (state.isDragged) state.isOutdated = true;
      else draw();
    } catch (failure) {
      error.tell(failure, signal);
    }
  }

  const placeOf = (scale, value) => (hasValue(value) ? scale.at(value) : NaN);
  function inside() {
    return state.runs.filter((run) => [...state.brushes].every(([column, { low, high, scale }]) => {
      const at = placeOf(scale, run.values[column]);
      return at >= low && at <= high;
    }));
  }

  function draw() {
    if (signal.aborted || !state.columns) return;
    const { columns, runs } = state;
    for (const column of state.brushes.keys()) if (!columns.includes(column)) state.brushes.delete(column);
    if (!columns.includes(state.color)) state.color = columns.at(-1) ?? "";
    replace(colorSelect, options(columns.map((column) => [column, titleOf(column)]), state.color));
    if (columns.length === 0 || runs.length === 0) {
      replace(drawing, h("p", { class: "muted nothing" }, runs.length === 0 ? "No runs." : "Choose axes."));
      replace(table);
      return;
    }
    const scales = new Map(columns.map((column) => [column, makeScale(column, runs.map((run) => run.values[column]), state.logs.get(column))]));
    for (const [column, brush] of state.brushes) brush.scale = scales.get(column);
    const width = Math.max(room, columns.length * SIZE.axis);
    const height = SIZE.height - SIZE.top - SIZE.bottom;
    const xOf = (i) => (columns.length > 1 ? SIZE.side + (i / (columns.length - 1)) * (width - 2 * SIZE.side) : width / 2);
    const yOf = (at) => (Number.isFinite(at) ? SIZE.top + (1 - at) * height : SIZE.top + height + 18);
    const colorOf = (run) => {
      const at = placeOf(scales.get(state.color), run.values[state.color]);
      return Number.isFinite(at) ? scaleColor(at) : "var(--soft)";
    };
    const lines = new Map(runs.map((run) => {
      const points = columns.map((column, i) => `${xOf(i).toFixed(1)},${yOf(placeOf(scales.get(column), run.values[column])).toFixed(1)}`);
      return [run.name, s("polyline", { points: points.join(" "), class: "run-line", style: { stroke: colorOf(run) } }, s("title", {}, run.name))];
    }));
    const lacks = (column) => runs.some((run) => !Number.isFinite(placeOf(scales.get(column), run.values[column])));
    const axes = columns.map((column, i) => drawAxis(column, scales.get(column), xOf(i), yOf, lacks(column), marked));
    const few = Math.min(1, Math.max(0.16, 14 / Math.sqrt(runs.length * 8)));
    const picture = s("svg", { width, height: SIZE.height, viewBox: `0 0 ${width} ${SIZE.height}`, role: "img",
      "aria-label": `Parallel coordinates of ${counted(runs.length, "run")}; the table below has the values` },
    s("g", { class: "run-lines", style: { "--few": few } }, [...lines.values()]), axes);
    replace(drawing, picture);
    marked();

    function marked() {
      const kept = inside();
      const names = new Set(kept.map((run) => run.name));
      for (const [name, line] of lines) line.classList.toggle("out", !names.has(name));
      const isBrushed = state.brushes.size > 0;
      clear.hidden = chooseButton.hidden = !isBrushed;
      chooseButton.textContent = `Choose these ${formatNumber(kept.length)}`;
      told.textContent = isBrushed ? `${formatNumber(kept.length)} of ${counted(runs.length, "run")}` : counted(runs.length, "run");
      drawTable(kept, lines, scales);
    }
  }

  function drawAxis(column, scale, x, yOf, hasNone, marked) {
    const group = s("g", { class: "axis", transform: `translate(${x}, 0)` });
    const [top, bottom] = [yOf(1), yOf(0)];
    const brush = s("rect", { class: "brush", x: -7, width: 14, rx: 3 });
    const drawBrush = () => {
      const range = state.brushes.get(column);
      brush.toggleAttribute("hidden", !range);
      if (!range) return;
      brush.setAttribute("y", yOf(range.high));
      brush.setAttribute("height", Math.max(2, yOf(range.low) - yOf(range.high)));
    };
    const title = s("text", { class: `axis-title ${scale.canBeLog ? "can-change" : ""}`, y: top - 22, "text-anchor": "middle", tabindex: scale.canBeLog ? 0 : -1,
      role: scale.canBeLog ? "button" : null }, shortened(titleOf(column), LETTERS), s("title", {}, column));
    const change = () => {
      if (!scale.canBeLog) return;
      state.logs.set(column, scale.kind !== "log");
      state.brushes.delete(column);
      draw();
    };
    title.addEventListener("click", change);
    title.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") change();
    });
    const handle = s("rect", { class: "brush-area", x: -BRUSH_PX / 2, width: BRUSH_PX, y: top - 6, height: bottom - top + 12 });
    group.append(s("line", { y1: top, y2: bottom }), title,
      ...spaced(scale.ticks, TICK_PX / (bottom - top)).map((tick) => s("g", { class: "tick", transform: `translate(0, ${yOf(tick.at)})` },
        s("line", { x1: -4, x2: 0 }), s("text", { x: -8, dy: "0.32em", "text-anchor": "end" }, shortened(tick.text, LETTERS), s("title", {}, tick.text)))));
    if (scale.kind === "log") group.append(s("text", { class: "kind", y: top - 9, "text-anchor": "middle" }, "log"));
    if (hasNone) group.append(s("text", { class: "kind", y: bottom + 22, x: -8, "text-anchor": "end" }, "none"));
    group.append(brush, handle);
    let begin = null;
    const atOf = (event) => {
      const y = event.clientY - drawing.firstChild.getBoundingClientRect().top;
      return Math.min(Math.max((bottom - y) / (bottom - top), -0.01), 1.01);
    };
    handle.addEventListener("pointerdown", (event) => {
      handle.setPointerCapture(event.pointerId);
      begin = atOf(event);
      state.isDragged = true;
    });
    handle.addEventListener("pointermove", (event) => {
      if (begin === null) return;
      const at = atOf(event);
      if (Math.abs(at - begin) * (bottom - top) < 4) return;
      state.brushes.set(column, { low: Math.min(begin, at), high: Math.max(begin, at), scale });
      drawBrush();
      marked();
    });
    handle.addEventListener("lostpointercapture", () => {
      begin = null;
      state.isDragged = false;
      if (!state.isOutdated) return;
      state.isOutdated = false;
      draw();
    });
    handle.addEventListener("dblclick", () => {
      state.brushes.delete(column);
      drawBrush();
      marked();
    });
    drawBrush();
    return group;
  }

  function drawTable(kept, lines, scales) {
    const isHigh = (run) => numberOf(run.values[state.color]);
    const sorted = [...kept].sort((a, b) => (isHigh(b) || -Infinity) - (isHigh(a) || -Infinity));
    const light = (name, on) => {
      const line = lines.get(name);
      line.classList.toggle("near", on);
      if (on) line.parentNode.append(line);
    };
    replace(table, plainTable([{ text: "run" }, ...state.columns.map((column) => ({ text: titleOf(column), title: column, isNumber: scales.get(column).kind !== "words" }))],
      sorted.slice(0, LISTED).map((run) => ({
        cells: [nameElement(run.name),
          ...state.columns.map((column) => ({ content: formatNumber(run.values[column]), title: exactNumber(run.values[column]) }))],
        onpointerenter: () => light(run.name, true),
        onpointerleave: () => light(run.name, false),
      }))),
    sorted.length > LISTED && h("p", { class: "muted" }, `and ${formatNumber(sorted.length - LISTED)} more`));
  }

  onWidth(drawing, signal, (width) => {
    room = width;
    draw();
  });
  theme.addEventListener("change", draw, { signal });
  load();
  return load;
}
