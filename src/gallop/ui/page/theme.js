// The theme, the colors of runs, and the chart colors from the style sheet.

// Accessible for every color vision (after Okabe and Ito, with brighter variants for dark pages), in the order of
// distinguishability.
const PALETTE = [
  ["#0072b2", "#4ba3e3"],
  ["#d55e00", "#ff8b4d"],
  ["#009e73", "#2bc79b"],
  ["#b8478d", "#e58fc4"],
  ["#c78500", "#f2b632"],
  ["#3aa0d8", "#93d4f7"],
  ["#6f3fb0", "#b593f2"],
  ["#7d7a12", "#cfcb57"],
  ["#6b7280", "#a3adba"],
];
const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3]];
const FIRST = 6; // Preferred colors of names; the others are for collisions.
const SLOTS = PALETTE.length * DASHES.length;
const KEY = "gallop.theme";

/** Dispatches "change" when the theme changes. */
export const theme = new EventTarget();

const system = matchMedia("(prefers-color-scheme: dark)");
const choice = () => localStorage.getItem(KEY) ?? "system";
const isDark = () => (choice() === "system" ? system.matches : choice() === "dark");

function apply() {
  document.documentElement.style.setProperty("color-scheme", choice() === "system" ? "light dark" : choice());
  theme.dispatchEvent(new Event("change"));
}

export function startTheme() {
  system.addEventListener("change", apply);
  apply();
}

/** Toggles between light and dark. */
export function switchTheme() {
  const wanted = isDark() ? "light" : "dark";
  if ((wanted === "dark") === system.matches) localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, wanted);
  apply();
}

/** A color of the style sheet by variable name. */
export function styleColor(name) {
  const probe = document.createElement("i");
  probe.style.setProperty("color", `var(${name})`);
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; ++i) value = Math.imul(value ^ text.charCodeAt(i), 16777619) >>> 0;
  return (value ^ (value >>> 15)) >>> 0;
}

// The slot of a name, constant while the page lives.
const slots = new Map();

const lookOf = (slot) => ({
  color: PALETTE[slot % PALETTE.length][isDark() ? 1 : 0],
  dash: DASHES[Math.floor(slot / PALETTE.length) % DASHES.length],
});

/** Looks in order, for groups. */
export const looksInOrder = (names) => new Map(names.map((name, i) => [name, lookOf(i)]));

/**
 * The looks of these runs by name: {color, dash}. A name has the same look in all lists where it is free; no two runs
 * of a list look alike while there are enough looks, plain lines before dashed ones.
 */
export function looksOf(names) {
  const taken = new Set();
  const looks = new Map();
  for (const name of names) {
    let slot = slots.get(name) ?? hash(name) % FIRST;
    const level = taken.size < PALETTE.length ? PALETTE.length : SLOTS;
    if (taken.has(slot)) {
      for (let tries = 0; tries < level && taken.has(slot); ++tries) slot = (slot + 1) % level;
    }
    taken.add(slot);
    slots.set(name, slot);
    looks.set(name, lookOf(slot));
  }
  return looks;
}

/** The color with this opacity. */
export function faint(color, share) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  return `rgba(${red}, ${green}, ${blue}, ${share})`;
}

// Close to viridis, which is monotonic in gray and for every color vision; without the ends that lack contrast.
const SCALES = {
  light: [[68, 30, 110], [59, 82, 139], [33, 145, 140], [94, 190, 98], [208, 190, 40]],
  dark: [[128, 92, 186], [82, 122, 194], [40, 165, 158], [104, 205, 110], [242, 228, 80]],
};

/** The color for a fraction between 0 and 1. */
export function scaleColor(share) {
  const scale = SCALES[isDark() ? "dark" : "light"];
  const at = Math.min(Math.max(share, 0), 1) * (scale.length - 1);
  const low = Math.min(Math.floor(at), scale.length - 2);
  const mixed = scale[low].map((part, i) => Math.round(part + (scale[low + 1][i] - part) * (at - low)));
  return `rgb(${mixed.join(", ")})`;
}
