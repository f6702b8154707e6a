// Parallel coordinates: one axis per column, one line per row, such as a run.

import { newestRequest, numberOf } from "./api.js";
import { openColumnChooser, titleOf } from "./columns.js";
import { h, onWidth, options, replace, s } from "./dom.js";
import { errorLine } from "./errors.js";
import { counted, exactNumber, formatNumber, shortened } from "./format.js";
import { hasValue, makeScale, spaced } from "./scales.js";
import { plainTable } from "./tables.js";
import { scaleColor, theme } from "./theme.js";

const SIZE = { height: 380, top: 46, bottom: 34, left: 108, right: 64, axis: 118 };
const LISTED = 50;
const BRUSH_PX = 22;
const TICK_PX = 13;
const LETTERS = 16; // Maximum length of titles and ticks.

/**
 * Draws rows until the signal is aborted; returns a function that reloads them. `source`: {word: noun of a row,
 * known(): available columns, first(known): initial columns, rows(columns): {name, values: {column: value}},
 * nameElement(row)}, and optionally choose(rows), which selects some of them.
 */
export function showParallel(root, { source, signal }) {
  let room = 0; // Available width in pixels.
  const state = { rows: [], columns: null, known: [], color: "", logs: new Map(), brushes: new Map() };
  const beginLoad = newestRequest();
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
  const chooseButton = h("button", { type: "button", hidden: true, onclick: () => source.choose(inside()) });
  const status = h("span", { class: "muted", role: "status" });
  const drawing = h("div", { class: "drawing" });
  const table = h("div", { class: "below" });
  replace(root, h("div", { class: "toolbar" }, axesButton, h("label", { class: "field" }, h("span", {}, "Color by"), colorSelect), clear, chooseButton,
    h("span", { class: "spacer" }), status), error,
  h("p", { class: "muted hint" }, `Drag along an axis to select the ${source.word}s within a range; double-click it to reset. Click a name to toggle between linear and logarithmic.`),
  drawing, table);

  async function load() {
    const isNewest = beginLoad();
    try {
      const known = await source.known();
      if (!isNewest()) return;
      state.known = known;
      const columns = state.columns ?? await source.first(known);
      if (!isNewest()) return;
      state.columns = columns;
      const rows = await source.rows(columns);
      if (!isNewest()) return;
      error.show("");
      if (JSON.stringify([rows, state.columns]) === state.shown) return;
      state.shown = JSON.stringify([rows, state.columns]);
      state.rows = rows;
      if (state.isDragged) state.isOutdated = true;
      else draw();
    } catch (failure) {
      if (isNewest()) error.report(failure, signal);
    }
  }

  const placeOf = (scale, value) => (hasValue(value) ? scale.at(value) : NaN);
  function inside() {
    return state.rows.filter((row) => [...state.brushes].every(([column, { low, high, scale }]) => {
      const at = placeOf(scale, row.values[column]);
      return at >= low && at <= high;
    }));
  }

  function draw() {
    if (signal.aborted || !state.columns) return;
    const { columns, rows } = state;
    for (const column of state.brushes.keys()) if (!columns.includes(column)) state.brushes.delete(column);
    if (!columns.includes(state.color)) state.color = columns.at(-1) ?? "";
    replace(colorSelect, options(columns.map((column) => [column, titleOf(column)]), state.color));
    if (columns.length === 0 || rows.length === 0) {
      replace(drawing, h("p", { class: "muted nothing" }, rows.length === 0 ? "No rows." : "Select axes."));
      replace(table);
      return;
    }
    const scales = new Map(columns.map((column) => [column, makeScale(column, rows.map((row) => row.values[column]), state.logs.get(column))]));
    for (const [column, brush] of state.brushes) brush.scale = scales.get(column);
    const width = Math.max(room, SIZE.left + (columns.length - 1) * SIZE.axis + SIZE.right);
    const height = SIZE.height - SIZE.top - SIZE.bottom;
    const xOf = (i) => (columns.length > 1 ? SIZE.left + (i / (columns.length - 1)) * (width - SIZE.left - SIZE.right) : width / 2);
    const yOf = (at) => (Number.isFinite(at) ? SIZE.top + (1 - at) * height : SIZE.top + height + 18);
    const colorOf = (row) => {
      const at = placeOf(scales.get(state.color), row.values[state.color]);
      return Number.isFinite(at) ? scaleColor(at) : "var(--soft)";
    };
    const lines = new Map(rows.map((row) => {
      const points = columns.map((column, i) => `${xOf(i).toFixed(1)},${yOf(placeOf(scales.get(column), row.values[column])).toFixed(1)}`);
      return [row.name, s("polyline", { points: points.join(" "), class: "run-line", style: { stroke: colorOf(row) } }, s("title", {}, row.name))];
    }));
    const lacks = (column) => rows.some((row) => !Number.isFinite(placeOf(scales.get(column), row.values[column])));
    const axes = columns.map((column, i) => drawAxis(column, scales.get(column), xOf(i), yOf, lacks(column), marked));
    const few = Math.min(1, Math.max(0.16, 14 / Math.sqrt(rows.length * 8)));
    const picture = s("svg", { width, height: SIZE.height, viewBox: `0 0 ${width} ${SIZE.height}`, role: "img",
      "aria-label": `Parallel coordinates of ${counted(rows.length, source.word)}; the table below has the values` },
    s("g", { class: "run-lines", style: { "--few": few } }, [...lines.values()]), axes);
    replace(drawing, picture);
    marked();

    function marked() {
      const kept = inside();
      const names = new Set(kept.map((row) => row.name));
      for (const [name, line] of lines) line.classList.toggle("out", !names.has(name));
      const isBrushed = state.brushes.size > 0;
      clear.hidden = !isBrushed;
      chooseButton.hidden = !isBrushed || !source.choose;
      chooseButton.textContent = `Select these ${formatNumber(kept.length)}`;
      status.textContent = isBrushed ? `${formatNumber(kept.length)} of ${counted(rows.length, source.word)}` : counted(rows.length, source.word);
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
    const numbers = new Map(kept.map((row) => [row, numberOf(row.values[state.color])]));
    const isMissing = (row) => Number.isNaN(numbers.get(row));
    const sorted = [...kept].sort((a, b) => isMissing(a) - isMissing(b) || (numbers.get(a) < numbers.get(b)) - (numbers.get(b) < numbers.get(a)));
    const light = (name, on) => {
      const line = lines.get(name);
      line.classList.toggle("near", on);
      if (on) line.parentNode.append(line);
    };
    replace(table, plainTable([{ text: source.word }, ...state.columns.map((column) => ({ text: titleOf(column), title: column, isNumber: scales.get(column).kind !== "words" }))],
      sorted.slice(0, LISTED).map((row) => ({
        cells: [source.nameElement(row),
          ...state.columns.map((column) => ({ content: formatNumber(row.values[column]), title: exactNumber(row.values[column]) }))],
        onpointerenter: () => light(row.name, true),
        onpointerleave: () => light(row.name, false),
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
