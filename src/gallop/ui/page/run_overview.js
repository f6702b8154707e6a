// The overview of a run.

import { numberOf } from "./api.js";
import { h, renew, replace } from "./dom.js";
import { counted, exactNumber, formatBytes, formatDuration, formatNumber, formatTime, timeElement } from "./format.js";
import { Labels } from "./labels.js";
import { box, facts, plainTable } from "./tables.js";

const digits = (number) => formatNumber(Number(number.toPrecision(3)));

// In the larger of two units, a factor of 1000 apart, if that gives at least 0.1.
const inUnits = (amount, small, large) => (amount >= 100 ? `${digits(amount / 1000)} ${large}` : `${digits(amount)} ${small}`);

// The resources used by a run. CO2 and cost only if the server has their factors.
function costFacts({ joules, seconds, method, kwh, pue, co2_grams: grams, price }) {
  return [
    kwh > 0 && ["Energy", h("span", { title: `${formatNumber(joules)} J of the machine` }, inUnits(1000 * kwh, "Wh", "kWh")),
      h("span", { class: "muted" }, ` ${digits(joules / Math.max(seconds, 1))} W on average; ${method}${pue > 1 ? `; with a PUE of ${formatNumber(pue)}` : ""}`)],
    grams !== undefined && kwh > 0 && ["CO2", inUnits(grams, "g", "kg")],
    price !== undefined && ["Price", formatNumber(Number(price.toFixed(2)))],
  ];
}

// The relative time of creation; for old runs only the date.
function createdText(seconds) {
  const exact = formatTime(seconds);
  const ago = timeElement(seconds);
  return exact.startsWith(ago.textContent) ? exact : [ago, h("span", { class: "muted" }, ` ${exact}`)];
}

function runFacts(run) {
  const { energy, ends } = run;
  return facts([
    run.created > 0 && ["Created", createdText(run.created)],
    ["Duration", formatDuration(run.seconds)],
    ["Steps", formatNumber(run.steps)],
    ...ends.map((end) => [end === ends.at(-1) ? "Ended" : "Paused", timeElement(end.time), ` at step ${formatNumber(end.step)}: ${end.reason}`]),
    ...(energy ? costFacts(energy) : []),
  ]);
}

// The provenance of one process of the run: program, plug-ins, files of the model, code, data.
function identityFacts({ step, program, plugins, models, code, data }) {
  const since = step > 0 ? ` (from step ${formatNumber(step)})` : "";
  const files = (name, list) => list.map((one) =>
    [`${name}${since}`, `${one.path}, ${counted(one.files, "file")}, ${formatBytes(one.bytes)} `, h("code", {}, one.checksum)]);
  return [
    [`program${since}`, h("code", {}, program || "–")],
    ...files("plug-in", plugins),
    ...files("model", models),
    code && [`code${since}`, h("code", {}, code.commit), ` ${code.branch} ${code.remote}`,
      code.patch && `, with changes of ${formatBytes(code.patch_bytes)}: ${code.patch}`],
    ...files("data", data),
  ];
}

function madeFacts({ info, identity }) {
  if (Object.keys(info).length === 0 && identity.length === 0) return h("p", { class: "muted" }, "unknown");
  const said = (name, value) => (value === "" || value === null ? "–" : name.endsWith("_bytes") ? formatBytes(value) : String(value));
  return facts([
    ...Object.entries(info).map(([name, value]) => [name.replace(/_bytes$/, "").replaceAll("_", " "),
      h(name === "command" ? "code" : "span", {}, said(name, value))]),
    ...identity.flatMap(identityFacts),
  ]);
}

function checkpointTable({ checkpoints }) {
  if (checkpoints.length === 0) return h("p", { class: "muted" }, "none");
  return plainTable([{ text: "checkpoint" }, { text: "step", isNumber: true }, { text: "size", isNumber: true }, { text: "time" }],
    checkpoints.map(({ name, step, bytes, time, marks }) => ({
      cells: [[name, marks.map((mark) => h("span", { class: "kind" }, mark))], formatNumber(step), formatBytes(bytes), timeElement(time)],
    })));
}

function metricTable({ metrics }) {
  if (metrics.length === 0) return h("p", { class: "muted" }, "none yet");
  const value = (number, step) => ({
    content: [Number.isNaN(numberOf(number)) ? h("b", { class: "nan" }, "NaN") : formatNumber(number), h("small", {}, formatNumber(step))],
    title: exactNumber(number),
  });
  // Without finite points there is neither a minimum nor a maximum.
  const end = (number, step) => (Number.isFinite(numberOf(number)) ? value(number, step) : "–");
  return plainTable([{ text: "metric" }, ...["last", "min", "max", "points"].map((text) => ({ text, isNumber: true }))],
    metrics.map((one) => ({ cells: [one.name, value(one.last, one.last_step), end(one.least, one.least_step), end(one.most, one.most_step),
      formatNumber(one.count)] })));
}

/** Shows a run; returns a function that updates it. */
export function showOverview(root, run) {
  const labels = new Labels(run);
  const [about, made, checkpoints, metrics] = [1, 2, 3, 4].map(() => h("div", {}));
  replace(root, h("div", { class: "boxes overview" },
    h("div", { class: "stack" }, box("Run", about), box("Tags and note", labels.children()), box("Provenance", made), box("Checkpoints", checkpoints)),
    box("Metrics", metrics)));
  const update = (now) => {
    renew(about, runFacts(now));
    renew(made, madeFacts(now));
    renew(checkpoints, checkpointTable(now));
    renew(metrics, metricTable(now));
    labels.update(now);
  };
  update(run);
  return update;
}
