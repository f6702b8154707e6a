// What a run is and what became of it, at a glance.

import { numberOf } from "./api.js";
import { h, renew, replace } from "./dom.js";
import { counted, exactNumber, formatBytes, formatDuration, formatNumber, formatTime, timeElement } from "./format.js";
import { Labels } from "./labels.js";
import { box, facts, plainTable } from "./tables.js";

const digits = (number) => formatNumber(Number(number.toPrecision(3)));

// In the larger of two units a thousand apart, where that leaves a number of 0.1 or more.
const inUnits = (amount, small, large) => (amount >= 100 ? `${digits(amount / 1000)} ${large}` : `${digits(amount)} ${small}`);

// What a run has taken. CO2 and money only where the server was told by what they are counted.
function costFacts({ joules, seconds, method, kwh, pue, co2_grams: grams, price }) {
  return [
    kwh > 0 && ["Energy", h("span", { title: `${formatNumber(joules)} J of the machine` }, inUnits(1000 * kwh, "Wh", "kWh")),
      h("span", { class: "muted" }, ` ${digits(joules / Math.max(seconds, 1))} W on average; ${method}${pue > 1 ? `; with a PUE of ${formatNumber(pue)}` : ""}`)],
    grams !== undefined && kwh > 0 && ["CO2", inUnits(grams, "g", "kg")],
    price !== undefined && ["Price", formatNumber(Number(price.toFixed(2)))],
  ];
}

// How long ago and when; long ago, when alone.
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

// What one process of the run was made of: program, code, data.
function identityFacts({ step, program, code, data }) {
  const since = step > 0 ? ` (from step ${formatNumber(step)})` : "";
  return [
    [`program${since}`, h("code", {}, program || "–")],
    code && [`code${since}`, h("code", {}, code.commit), ` ${code.branch} ${code.remote}`,
      code.patch && `, with changes of ${formatBytes(code.patch_bytes)}: ${code.patch}`],
    ...data.map((one) => [`data${since}`, `${one.path}, ${counted(one.files, "file")}, ${formatBytes(one.bytes)} `, h("code", {}, one.checksum)]),
  ];
}

function madeFacts({ info, identity }) {
  if (Object.keys(info).length === 0 && identity.length === 0) return h("p", { class: "muted" }, "not known");
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
  // Where no point is finite there is neither a least nor a most.
  const end = (number, step) => (Number.isFinite(numberOf(number)) ? value(number, step) : "–");
  return plainTable([{ text: "metric" }, ...["last", "min", "max", "points"].map((text) => ({ text, isNumber: true }))],
    metrics.map((one) => ({ cells: [one.name, value(one.last, one.last_step), end(one.least, one.least_step), end(one.most, one.most_step),
      formatNumber(one.count)] })));
}

/** Shows a run; gives what shows it as it has become. */
export function showOverview(root, run) {
  const labels = new Labels(run);
  const [about, made, checkpoints, metrics] = [1, 2, 3, 4].map(() => h("div", {}));
  replace(root, h("div", { class: "boxes overview" },
    h("div", { class: "stack" }, box("Run", about), box("Tags and note", labels.children()), box("Made by", made), box("Checkpoints", checkpoints)),
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
