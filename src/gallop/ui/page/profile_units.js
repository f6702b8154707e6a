// Names, colors and units of profiles.

import { formatNumber } from "./format.js";
import { looksInOrder } from "./theme.js";

// In the order in which the colors of a palette are easiest to distinguish.
const PHASES = ["forward", "backward", "optimizer", "data wait", "communication", "loss", "evaluation", "checkpoint", "host"];
const SAME = { recomputation: "backward", report: "host", other: "optimizer", "batch transforms": "data wait", "host-to-device copy": "data wait" };

/** The colors of phases by name, in the current theme; `others` get the remaining ones. */
export function phaseColors() {
  const looks = looksInOrder(PHASES);
  return (name) => looks.get(SAME[name] ?? name)?.color ?? looks.get("host").color;
}

/** What a step holds in memory. */
export const MEMORY_CATEGORIES = ["activations", "gradients", "temporaries"];

/** The colors of these categories by name, other than those of forward, backward and optimizer. */
export function memoryColors() {
  const looks = looksInOrder([...PHASES.slice(0, 3), ...MEMORY_CATEGORIES]);
  return (name) => looks.get(name).color;
}

const rounded = (value) => formatNumber(Number(value.toPrecision(3)));

/** "1.25 ms", "34 µs", "2.1 s" */
export function formatMs(ms) {
  if (ms > 0 && ms < 0.1) return `${rounded(1000 * ms)} µs`;
  return ms < 1000 ? `${rounded(ms)} ms` : `${rounded(ms / 1000)} s`;
}

/** "1.2 GFLOP", with the unit of a rate "353 GFLOP/s". */
export function formatFlops(flops, unit = "FLOP") {
  for (const [size, prefix] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (flops >= size) return `${rounded(flops / size)} ${prefix}${unit}`;
  }
  return `${rounded(flops)} ${unit}`;
}

export const formatShare = (share) => `${(100 * share).toFixed(1)} %`;

/** The name of a layer; empty for operators of no layer. */
export const layerName = (name) => name || "(no layer)";
