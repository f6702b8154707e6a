// Scales: positions of values on an axis of a drawing, between 0 and 1.

import { numberOf } from "./api.js";
import { shortNumber, tickLabel, timeTicks } from "./axes.js";

const TICKS = 6;
const TICKS_PX = 700; // Width for which times are chosen; spaced() removes excess ticks.
const FEW = 8; // Up to this many distinct numbers, each gets a tick.
// Ratio of largest to smallest value from which an axis is logarithmic by default.
const WIDE = { few: 8, many: 50 };

/** Whether a run has such a value other than NaN. */
export function hasValue(value) {
  if (value === null || value === undefined || value === "") return false;
  return typeof value === "string" ? value.toLowerCase() !== "nan" : !Number.isNaN(value);
}

// Ticks of a logarithmic axis of seconds: minutes, hours and days instead of powers of ten.
const DURATIONS = [0.01, 0.1, 1, 10, 60, 600, 3600, 6 * 3600, 86400, 7 * 86400, 28 * 86400];

function linearTicks(low, high) {
  const rough = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const factors = decades > 2.5 ? [1] : decades > 1.2 ? [1, 3] : [1, 2, 3, 5, 7];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) {
    for (const factor of factors) {
      const tick = Number((factor * 10 ** power).toPrecision(6));
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
    }
  }
  return ticks.length >= 2 ? ticks : [low, high];
}

// The formatter of a column's ticks, for an axis from `low` to `high`.
function textOf(column, low, high) {
  if (column === "created") return (value) => tickLabel("wall", value, high - low);
  return column === "seconds" ? (value) => tickLabel("relative", value) : (value) => shortNumber(value, high - low);
}

/**
 * A scale for values of a column (numbers, numeric strings, other strings, null): {kind: "linear", "log" or "words",
 * at(value), ticks: [{at, text}], canBeLog}. at() is NaN for values without a position. `log`: true, false, or
 * undefined for automatic.
 */
export function makeScale(column, values, log) {
  const present = values.filter(hasValue);
  const numbers = present.map(numberOf);
  if (present.length > 0 && numbers.every((number) => !Number.isNaN(number))) {
    const finite = numbers.filter(Number.isFinite);
    let low = finite.reduce((a, b) => Math.min(a, b), Infinity);
    let high = finite.reduce((a, b) => Math.max(a, b), -Infinity);
    const text = textOf(column, low, high);
    const isTime = column === "created" || column === "seconds";
    const canBeLog = low > 0 && high > low && column !== "created";
    const different = [...new Set(finite)].sort((a, b) => a - b);
    const few = different.length <= FEW && !isTime ? different : null;
    const ticksAt = (places, at) => places.map((tick) => ({ at: at(tick), text: text(tick) }));
    if (canBeLog && (log ?? high / low >= (few ? WIDE.few : WIDE.many))) {
      const [from, to] = [Math.log10(low), Math.log10(high)];
      const at = (value) => (Math.log10(numberOf(value)) - from) / (to - from);
      return { kind: "log", canBeLog, at, ticks: ticksAt(few ?? (isTime ? DURATIONS.filter((seconds) => seconds >= low && seconds <= high) : logTicks(low, high)), at) };
    }
    if (!(high > low)) {
      const half = Math.abs(low || 1) / 2;
      [low, high] = [low - half, high + half];
    }
    const at = (value) => (numberOf(value) - low) / (high - low);
    const times = isTime && timeTicks(column === "created" ? "wall" : "relative", low, high, TICKS_PX);
    return { kind: "linear", canBeLog, at, ticks: ticksAt(few ?? (times ? times.map(({ value }) => value) : linearTicks(low, high)), at) };
  }
  const words = [...new Set(present.map(String))].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const places = new Map(words.map((word, i) => [word, words.length > 1 ? (i + 0.5) / words.length : 0.5]));
  return { kind: "words", canBeLog: false, at: (value) => places.get(String(value)) ?? NaN,
    ticks: words.map((text) => ({ at: places.get(text), text })) };
}

/** Removes ticks that are too close to the previous one. */
export function spaced(ticks, share) {
  let last = -Infinity;
  return ticks.filter(({ at }) => {
    if (at - last < share) return false;
    last = at;
    return true;
  });
}
