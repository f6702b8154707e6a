// The data of charts from the server: curves of runs, or bands of groups.

import { address, get, numberOf } from "./api.js";
import { runLink } from "./routes.js";
import { looksInOrder } from "./theme.js";

const numbers = (list) => list.map(numberOf);

/** Curves of runs. `looks`: how each is drawn, by name. */
export async function loadCurves(metric, runs, looks, { axis, smoothing }, { from, to, points, signal }) {
  if (runs.length === 0) return [];
  const answer = await get("curves", { metric, runs: runs.join(","), axis, smoothing, from, to, points }, signal);
  return answer.curves.map((curve) => ({
    ...curve, ...looks.get(curve.run), name: curve.run, label: curve.run, href: runLink(curve.run),
    x: numbers(curve.x), y: numbers(curve.y), smooth: numbers(curve.smooth ?? curve.y),
  }));
}

/** The mean and band of each group of the runs that match a filter. */
export async function loadBands(metric, by, filter, { axis, smoothing }, { from, to, points, signal }) {
  const { groups } = await get("band", { metric, by, filter, axis, smoothing, from, to, points }, signal);
  const nameOf = ({ value }) => `${by}=${value ?? ""}`;
  const looks = looksInOrder(groups.map(nameOf));
  return groups.map((group) => ({
    ...looks.get(nameOf(group)), name: nameOf(group), href: null, label: group.value === null || group.value === "" ? "none" : String(group.value), runs: group.runs,
    x: numbers(group.x), y: numbers(group.mean),
    band: { low: numbers(group.low), high: numbers(group.high), least: numbers(group.least), most: numbers(group.most) },
  }));
}

/** Download links of a chart's data, at full resolution. */
export function linksOf(metric, runs, { axis, smoothing, logX, logY }) {
  const what = { metric, runs: runs.join(","), axis };
  return [["CSV", "All points as CSV", address("export.csv", what)],
    ["SVG", "Plot as SVG", address("plot.svg", { ...what, smoothing, logx: logX, logy: logY })]];
}
