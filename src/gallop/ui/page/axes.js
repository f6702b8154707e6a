// Ticks and labels of chart axes.

import { exactDuration, formatNumber, formatTime } from "./format.js";

export const AXES = [["step", "step"], ["relative", "time since its start"], ["wall", "time of day"], ["samples", "samples"],
  ["tokens", "tokens"]];

const DAY = 86400;
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY,
  7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 365 * DAY];
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
  const shiftAt = (seconds) => (axis === "wall" ? new Date(seconds * 1000).getTimezoneOffset() * 60 : 0);
  const shift = shiftAt(min);
  const ticks = [];
  for (let at = Math.ceil((min - shift) / step) * step + shift; at <= max; at += step) {
    // The hour of a day moves with a change to or from summer time.
    ticks.push({ value: step >= DAY / 4 ? at - shift + shiftAt(at) : at });
  }
  return ticks;
}

/** The label of a tick; `span` is the range of the axis. */
export function tickLabel(axis, value, span) {
  if (axis === "relative") return exactDuration(value);
  if (axis === "wall") {
    const [date, time] = formatTime(value).split(" ");
    if (span > 14 * DAY || (span > 600 && time === "00:00:00")) return date.slice(5);
    return span > 600 && time.endsWith(":00") ? time.slice(0, 5) : time;
  }
  return shortNumber(value, span);
}

/** The exact position on an axis, as text. */
export function placeOn(axis, value) {
  if (axis === "relative") return `${exactDuration(value < 10 ? value : Math.round(value))} after its start`;
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
