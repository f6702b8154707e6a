// Formats numbers, times and sizes for display.

import { numberOf } from "./api.js";
import { h } from "./dom.js";

const DIGITS = 5;
const DIGITS_BEFORE_EXPONENT = 4;
// By maximum number of decimals; cached, as creating one is slow.
const formats = Array.from({ length: 12 }, (_, decimals) => new Intl.NumberFormat("en-US", { maximumFractionDigits: decimals }));

/** "0.93417", "12,300", "1e-5"; strings are returned unchanged, except infinities. */
export function formatNumber(value) {
  if (value === null || value === undefined) return "";
  const number = numberOf(value);
  if (Number.isNaN(number) || (typeof value === "string" && Number.isFinite(number))) return String(value);
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  const size = Math.abs(number);
  if (Number.isInteger(number) && size < 1e12) return formats[0].format(number);
  if (size >= 1e-4 && size < 1e9) {
    const decimals = Math.max(0, DIGITS - 1 - Math.floor(Math.log10(size)));
    return formats[decimals].format(number);
  }
  const [digits, exponent] = number.toExponential(DIGITS_BEFORE_EXPONENT - 1).split("e");
  return `${Number(digits)}e${Number(exponent)}`;
}

/** All digits, for tooltips. */
export function exactNumber(value) {
  return value === null || value === undefined ? "" : String(value);
}

/** "0.8 s", "42 s", "3 min 12 s", "1 h 02 min", "2 d 3 h". */
export function formatDuration(seconds) {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 0) return `−${formatDuration(-seconds)}`;
  if (seconds < 10) return `${Number(seconds.toPrecision(2))} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const padded = (number) => String(number).padStart(2, "0");
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${padded(whole % 60)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ${padded(minutes % 60)} min`;
  const hours = Math.round(seconds / 3600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** "1 d 6 h 15 min": to the millisecond, or four digits below a second; without parts that are 0. */
export function exactDuration(seconds) {
  if (seconds < 0) return `−${exactDuration(-seconds)}`;
  let left = Number(seconds < 1 ? seconds.toPrecision(4) : seconds.toFixed(3));
  const parts = [];
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    const count = Math.floor(left / size);
    if (count > 0) parts.push(`${count} ${unit}`);
    left -= count * size;
  }
  if (parts.length > 0) left = Number(left.toFixed(3));
  if (left > 0 || parts.length === 0) parts.push(`${left} s`);
  return parts.join(" ");
}

/** "3.1 GB". */
export function formatBytes(bytes) {
  if (!Number.isFinite(bytes)) return "";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  // Three digits of 999.7 kB would be 1000.
  while (bytes >= (unit === 0 ? 1000 : 999.5) && unit + 1 < units.length) {
    bytes /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? bytes : bytes.toPrecision(3)} ${units[unit]}`;
}

/** "2026-03-01 12:00:05", in the local time zone. */
export function formatTime(seconds) {
  const time = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ` +
    `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

function formatAgo(seconds) {
  const ago = Date.now() / 1000 - seconds;
  if (ago < 45) return "just now";
  if (ago < 3600) return `${Math.max(1, Math.round(ago / 60))} min ago`;
  if (ago < 86400) return `${Math.round(ago / 3600)} h ago`;
  const days = Math.round(ago / 86400);
  return days < 60 ? `${days} d ago` : formatTime(seconds).slice(0, 10);
}

/** A relative time, with the exact time as its tooltip. */
export function timeElement(seconds) {
  if (!seconds) return "";
  return h("time", { datetime: new Date(seconds * 1000).toISOString(), title: formatTime(seconds) }, formatAgo(seconds));
}

/** Updates the relative times of timeElement(). */
export function keepTimes() {
  setInterval(() => {
    for (const element of document.querySelectorAll("time[datetime]")) {
      const text = formatAgo(Date.parse(element.dateTime) / 1000);
      if (element.textContent !== text) element.textContent = text;
    }
  }, 20000);
}

/** "1 run", "2 runs". */
export function counted(count, word) {
  return `${formatNumber(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** Quotes a text for a POSIX shell if needed, like shell_word() of base/shell.h. */
export const shellWord = (text) => (/^[\w.+:,@%/=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Truncates to a maximum number of characters. */
export const shortened = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
