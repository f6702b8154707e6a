// Ticks and labels of chart axes.

import { formatDuration, formatNumber, formatTime } from "./format.js";

export const AXES = [["step", "step"], ["relative", "time since its start"], ["wall", "time of day"], ["samples", "samples"],
  ["tokens", "tokens"]];

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400,
  7 * 86400, 14 * 86400, 28 * 86400, 91 * 86400, 365 * 86400];
const TICK_PX = 86; // Minimum distance of ticks.

const isTime = (axis) => axis === "wall" || axis === "relative";

/**
 * Ticks at whole seconds, minutes, hours or days (in the local time zone) for an axis of this width in pixels; null for
 * other axes.
 */
export function timeTicks(axis, min, max, width) {
  if (!isTime(axis) || !(max > min)) return null;
  const wanted = (max - min) * TICK_PX / Math.max(width, TICK_PX);
  if (wanted < SECONDS[0] / 2) return null;
  const step = SECONDS.find((seconds) => seconds >= wanted) ?? SECONDS.at(-1);
  const shift = axis === "wall" ? new Date(min * 1000).getTimezoneOffset() * 60 : 0;
  const ticks = [];
  for (let at = Math.ceil((min - shift) / step) * step + shift; at <= max; at += step) ticks.push({ value: at });
  return ticks;
}

/** The label of a tick; `span` is the range of the axis. */
export function tickLabel(axis, value, span) {
  if (axis === "relative") return formatDuration(value).replace(/ 00 (s|min)$/, "");
  if (axis === "wall") {
    const text = formatTime(value);
    if (span > 3 * 86400) return text.slice(5, 10);
    return span > 600 ? (text.slice(11, 16) === "00:00" ? text.slice(5, 10) : text.slice(11, 16)) : text.slice(11);
  }
  return shortNumber(value, span);
}

/** The exact position on an axis, as text. */
export function placeOn(axis, value) {
  if (axis === "relative") return `${formatDuration(value)} after its start`;
  if (axis === "wall") return formatTime(value);
  return `${axis} ${formatNumber(Math.round(value))}`;
}

/** "1.2M": as few digits as distinguish ticks; `span` is the range of the axis, 0 if unknown. */
export function shortNumber(value, span = 0) {
  const size = Math.abs(value);
  const digits = span > 0 && size > 0 ? Math.min(Math.ceil(Math.log10(size / span)) + 3, 15) : 0;
  const isFine = digits > 5 && size >= 1e-4 && size < 1e6;
  if (isFine) return Number(value.toPrecision(digits)).toLocaleString("en-US", { maximumFractionDigits: 15 });
  if (size < 1e15) {
    for (const [unit, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (size >= (unit === 1e3 ? 1e4 : unit)) return `${Number((value / unit).toPrecision(Math.max(digits, 4)))}${letter}`;
    }
  }
  return digits > 5 ? String(Number(value.toPrecision(digits))) : formatNumber(Number(value.toPrecision(5)));
}
