// A scatter plot of two columns of runs, with a third as color. Each point links to its run.

import { newestRequest } from "./api.js";
import { knownColumns, OWN_COLUMNS, titleOf } from "./columns.js";
import { h, onWidth, options, replace, s } from "./dom.js";
import { errorLine } from "./errors.js";
import { counted, formatDuration, formatNumber, formatTime, shortened } from "./format.js";
import { amend, one, runLink } from "./routes.js";
import { differing, valuesOf } from "./run_values.js";
import { hasValue, makeScale, spaced } from "./scales.js";
import { scaleColor, theme } from "./theme.js";

const SIZE = { height: 460, top: 16, bottom: 44, left: 84, right: 20 };
const MOST_OPTIONS = 60;
const TICK_PX = { x: 80, y: 15 };
const LETTERS = { x: 14, y: 11 }; // Maximum length of ticks.
const MANY = 150; // From this number, points are drawn smaller.
const MOST_KEYS = 10;
const MOST_TABS = 200; // Maximum number of points in the tab order.

function shown(column, value) {
  if (column === "created") return formatTime(value);
  if (column === "seconds") return formatDuration(value);
  return hasValue(value) ? formatNumber(value) : "none";
}

/** Draws the runs that match filters until the signal is aborted; returns a function that reloads them. */
export function showScatter(root, { filters, query, signal }) {
  let room = 0; // Available width in pixels.
  const state = { x: one(query, "x"), y: one(query, "y"), color: one(query, "color"), logs: new Map(), runs: [] };
  const beginLoad = newestRequest();
  const error = errorLine();
  const selects = Object.fromEntries(["x", "y", "color"].map((name) => [name, h("select", { id: `scatter-${name}`, onchange: () => {
    state[name] = selects[name].value;
    amend({ [name]: state[name] });
    load();
  } })]));
  const logs = Object.fromEntries(["x", "y"].map((name) => [name, h("button", { type: "button", onclick: () => {
    state.logs.set(state[name], logs[name].getAttribute("aria-pressed") !== "true");
    draw();
  } }, `log ${name}`)]));
  const status = h("span", { class: "muted", role: "status" });
  const drawing = h("div", { class: "drawing" });
  const key = h("span", { class: "color-key" });
  const label = h("div", { class: "point-label", hidden: true, role: "status" });
  replace(root, h("div", { class: "toolbar" },
    h("label", { class: "field" }, h("span", {}, "Horizontal"), selects.x), logs.x,
    h("label", { class: "field" }, h("span", {}, "Vertical"), selects.y), logs.y,
    h("label", { class: "field" }, h("span", {}, "Color"), selects.color), key, h("span", { class: "spacer" }), status),
  error, h("div", { class: "with-label" }, drawing, label));

  async function load() {
    const isNewest = beginLoad();
    try {
      const known = await knownColumns(signal);
      if (!isNewest()) return;
      const all = [...OWN_COLUMNS.filter((column) => column !== "name"), ...known];
      const metrics = known.filter((column) => column.startsWith("metrics."));
      if (!all.includes(state.y)) state.y = ["metrics.accuracy", "metrics.loss", ...metrics, "steps"].find((column) => all.includes(column));
      if (!all.includes(state.x)) {
        const params = known.filter((column) => column.startsWith("params.")).slice(0, MOST_OPTIONS);
        const found = differing(await valuesOf(filters, params, signal), params);
        if (!isNewest()) return;
        state.x = found.includes("params.optimizer.lr") ? "params.optimizer.lr" : found[0] ?? "seconds";
      }
      if (!all.includes(state.color)) state.color = "";
      for (const name of ["x", "y"]) replace(selects[name], options(all.map((column) => [column, column]), state[name]));
      replace(selects.color, options([["", "one color"], ...all.map((column) => [column, column])], state.color));
      const runs = await valuesOf(filters, [...new Set([state.x, state.y, state.color].filter(Boolean))], signal);
      if (!isNewest()) return;
      error.show("");
      const shown = JSON.stringify([runs, state.x, state.y, state.color]);
      if (shown === state.shown) return;
      Object.assign(state, { runs, shown });
      draw();
    } catch (failure) {
      if (isNewest()) error.report(failure, signal);
    }
  }

  function draw() {
    if (signal.aborted || state.runs.length === 0) return;
    const scaleOf = (column) => makeScale(column, state.runs.map((run) => run.values[column]), state.logs.get(column));
    const [across, up] = [scaleOf(state.x), scaleOf(state.y)];
    const color = state.color ? scaleOf(state.color) : null;
    for (const [name, scale] of [["x", across], ["y", up]]) {
      logs[name].setAttribute("aria-pressed", String(scale.kind === "log"));
      logs[name].disabled = !scale.canBeLog;
    }
    const width = Math.max(room, 280);
    const xOf = (at) => SIZE.left + (0.02 + 0.96 * at) * (width - SIZE.left - SIZE.right);
    const yOf = (at) => SIZE.height - SIZE.bottom - (0.03 + 0.94 * at) * (SIZE.height - SIZE.top - SIZE.bottom);
    const placed = state.runs.map((run) => ({ run, x: across.at(run.values[state.x]), y: up.at(run.values[state.y]) }))
      .filter(({ run, x, y }) => hasValue(run.values[state.x]) && hasValue(run.values[state.y]) && Number.isFinite(x) && Number.isFinite(y));
    const show = (place) => {
      const { run } = place;
      replace(label, h("b", {}, run.name), [state.x, state.y, state.color].filter(Boolean).map((column) =>
        h("div", {}, h("span", { class: "muted" }, `${titleOf(column)} `), shown(column, run.values[column]))));
      label.hidden = false;
      const left = Math.min(xOf(place.x) + 12, width - label.offsetWidth - 4);
      label.style.setProperty("transform", `translate(${Math.max(left, 4)}px, ${Math.max(yOf(place.y) - label.offsetHeight - 10, 0)}px)`);
    };
    const hide = () => {
      label.hidden = true;
    };
    const points = placed.map((place, i) => {
      const at = color ? color.at(place.run.values[state.color]) : NaN;
      return s("a", { href: runLink(place.run.name), tabindex: i < MOST_TABS ? 0 : -1, "aria-label": place.run.name,
        onpointerenter: () => show(place), onpointerleave: hide, onfocus: () => show(place), onblur: hide },
      s("circle", { cx: xOf(place.x).toFixed(1), cy: yOf(place.y).toFixed(1), r: placed.length > MANY ? 3.5 : 5,
        style: { fill: color ? (Number.isFinite(at) ? scaleColor(at) : "var(--soft)") : "var(--accent)" } }));
    });
    const focused = drawing.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    replace(drawing, s("svg", { width, height: SIZE.height, viewBox: `0 0 ${width} ${SIZE.height}`, class: "scatter" },
      s("g", { class: "axis" },
        spaced(across.ticks, TICK_PX.x / width).map(({ at, text }) => s("g", { class: "tick", transform: `translate(${xOf(at)}, 0)` },
          s("line", { class: "grid-line", y1: SIZE.top, y2: SIZE.height - SIZE.bottom }),
          s("text", { y: SIZE.height - SIZE.bottom + 16, "text-anchor": "middle" }, shortened(text, LETTERS.x)))),
        spaced(up.ticks, TICK_PX.y / SIZE.height).map(({ at, text }) => s("g", { class: "tick", transform: `translate(0, ${yOf(at)})` },
          s("line", { class: "grid-line", x1: SIZE.left, x2: width - SIZE.right }),
          s("text", { x: SIZE.left - 8, dy: "0.32em", "text-anchor": "end" }, shortened(text, LETTERS.y)))),
        s("text", { class: "axis-title", x: (SIZE.left + width) / 2, y: SIZE.height - 6, "text-anchor": "middle" }, titleOf(state.x)),
        s("text", { class: "axis-title", transform: `translate(13, ${SIZE.height / 2}) rotate(-90)`, "text-anchor": "middle" }, titleOf(state.y))),
      s("g", { class: `points ${placed.length > MANY ? "many" : ""}` }, points)));
    if (focused !== null) drawing.querySelector(`.points a[aria-label="${CSS.escape(focused)}"]`)?.focus();
    replace(key, color && color.ticks.slice(0, MOST_KEYS).map((tick) => h("span", { class: "run-name" },
      h("span", { class: "look", style: { "--run": scaleColor(tick.at) } }), tick.text)));
    const missing = state.runs.length - placed.length;
    status.textContent = counted(placed.length, "run") + (missing > 0 ? `, ${formatNumber(missing)} without these values` : "");
  }

  onWidth(drawing, signal, (width) => {
    room = width;
    draw();
  });
  theme.addEventListener("change", draw, { signal });
  load();
  return load;
}
