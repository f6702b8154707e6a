// Values of columns of many runs.

import { get } from "./api.js";

const PAGE = 1000;
const OWN = new Set(["name", "state", "created", "seconds", "steps"]);

/** Runs that one of several filters chooses: {name, state, ..., values: {column: value}}. */
export async function valuesOf(filters, columns, signal) {
  const asked = columns.filter((column) => !OWN.has(column));
  return (await Promise.all(filters.map((filter) => valuesOfOne(filter, asked, signal)))).flat();
}

async function valuesOfOne(filter, asked, signal) {
  const runs = [];
  for (;;) {
    const answer = await get("runs", { filter, columns: asked.join(","), offset: runs.length, limit: PAGE }, signal);
    for (const run of answer.runs) {
      const values = Object.fromEntries(asked.map((column, i) => [column, run.values[i]]));
      for (const column of OWN) values[column] = run[column];
      runs.push({ ...run, values });
    }
    if (answer.runs.length === 0 || runs.length >= answer.matching) return runs;
  }
}

/** Of these columns those in which runs differ. */
export function differing(runs, columns) {
  return columns.filter((column) => new Set(runs.map((run) => String(run.values[column] ?? ""))).size > 1);
}
