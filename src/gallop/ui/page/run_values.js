// Column values of many runs.

import { get } from "./api.js";
import { choose, chooseNone } from "./chosen.js";
import { knownColumns } from "./columns.js";
import { link } from "./routes.js";
import { nameElement } from "./run_name.js";

const PAGE = 1000;
const FIRST_AXES = 7;
const ASKED_OPTIONS = 60; // Number of options that are examined for differences.
const OWN = new Set(["name", "state", "created", "seconds", "steps"]);

/** Runs that match any of several filters: {name, state, ..., values: {column: value}}. */
export async function valuesOf(filters, columns, signal) {
  const requested = columns.filter((column) => !OWN.has(column));
  return (await Promise.all(filters.map((filter) => valuesOfOne(filter, requested, signal)))).flat();
}

async function valuesOfOne(filter, requested, signal) {
  const runs = [];
  for (;;) {
    const answer = await get("runs", { filter, columns: requested.join(","), offset: runs.length, limit: PAGE }, signal);
    for (const run of answer.runs) {
      const values = Object.fromEntries(requested.map((column, i) => [column, run.values[i]]));
      for (const column of OWN) values[column] = run[column];
      runs.push({ ...run, values });
    }
    if (answer.runs.length === 0 || runs.length >= answer.matching) return runs;
  }
}

/** The columns in which runs differ: first those with different values, then those that some runs lack. */
export function differing(runs, columns) {
  const kinds = new Map(columns.map((column) => [column, new Set(runs.map((run) => String(run.values[column] ?? "")))]));
  const isVaried = (column) => [...kinds.get(column)].filter(Boolean).length > 1;
  const isLacked = (column) => !isVaried(column) && kinds.get(column).size > 1;
  return [...columns.filter(isVaried), ...columns.filter(isLacked)];
}

/** A source of showParallel(): runs that match any of several filters. */
export function parallelRuns(filters, signal) {
  return {
    word: "run",
    known: () => knownColumns(signal),
    async first(known) {
      const params = known.filter((column) => column.startsWith("params.")).slice(0, ASKED_OPTIONS);
      const metrics = ["metrics.accuracy", "metrics.loss"].filter((column) => known.includes(column));
      const last = metrics.length > 0 ? metrics : known.filter((column) => column.startsWith("metrics.")).slice(0, 1);
      const runs = await valuesOf(filters, params, signal);
      return [...differing(runs, params).slice(0, FIRST_AXES - last.length), ...last.reverse()];
    },
    rows: (columns) => valuesOf(filters, columns, signal),
    nameElement: (run) => nameElement(run.name),
    choose(runs) {
      chooseNone();
      choose(runs.map((run) => run.name));
      location.hash = link("");
    },
  };
}
