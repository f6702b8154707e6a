// The step of a profile: its phases as a bar, its numbers, its advice, its operators and its ranks as tables.

import { shortNumber } from "./axes.js";
import { h } from "./dom.js";
import { formatBytes, formatNumber, shortened } from "./format.js";
import { formatFlops, formatMs, formatShare, layerName, phaseColors } from "./profile_units.js";
import { box, facts, plainTable } from "./tables.js";

const SHOWN_OPERATORS = 12;
const LEAST_SHARE = 0.0005; // Smaller phases are not listed.
const CALL_LETTERS = 90;

export function phasesBar({ phases }) {
  const colorOf = phaseColors();
  const shown = phases.filter(({ fraction }) => fraction >= LEAST_SHARE);
  const style = ({ name, fraction }) => ({ background: colorOf(name), "flex-grow": fraction.toFixed(4) });
  return h("div", {},
    h("div", { class: "phases", role: "img", "aria-label": shown.map(({ name, fraction }) => `${name} ${formatShare(fraction)}`).join(", ") },
      shown.map((phase) => h("span", { style: style(phase), title: `${phase.name}: ${formatMs(phase.ms)}, ${formatShare(phase.fraction)}` }))),
    h("ul", { class: "phase-key" }, shown.map((phase) => h("li", {}, h("i", { style: { background: colorOf(phase.name) } }),
      phase.name, h("b", {}, formatMs(phase.ms)), h("span", { class: "muted" }, formatShare(phase.fraction))))));
}

export function stepFacts(profile) {
  const { counters, loader, memory } = profile;
  const rate = 1000 * profile.samples / profile.step_ms;
  const parts = loader.parts.slice(0, 3).map(({ name, ms }) => `${name} ${formatMs(ms)}`).join(", ");
  return facts([
    ["Steps", `${formatNumber(profile.first_step)} to ${formatNumber(profile.first_step + profile.steps - 1)} of ${formatNumber(profile.samples)} ${profile.items}; ${profile.training}`],
    ["Step", h("b", {}, formatMs(profile.step_ms)), ` median ${formatMs(profile.median_ms)}, slowest ${formatMs(profile.slowest_ms)} in step ${formatNumber(profile.slowest_step)}; ${formatNumber(Math.round(rate))} ${profile.items}/s`],
    profile.limit_ms > 0 && ["Limit", `${formatMs(profile.limit_ms)} at this machine's peaks, ${formatShare(profile.limit_ms / profile.step_ms)} of the step`],
    profile.flops > 0 && ["FLOPs", `${formatFlops(profile.flops)} a step, ${formatFlops(1000 * profile.flops / profile.step_ms, "FLOP/s")}, utilization (MFU) ${formatShare(profile.flops_utilization)}`],
    loader.threads > 0 && ["Loader", `${loader.threads} thread${loader.threads === 1 ? "" : "s"}, ${formatShare(loader.busy_fraction)} busy${parts && `; a step takes ${parts}`}`],
    memory.process_bytes > 0 && ["Memory", `${formatBytes(memory.process_bytes)} of the process; parameters ${formatBytes(memory.parameters + memory.buffers)}, optimizer state ${formatBytes(memory.optimizer_state)}`],
    ...countersFacts(counters),
  ]);
}

// Profiles of earlier versions have none.
function countersFacts(counters) {
  if (!counters) return [];
  const parts = (...texts) => texts.filter(Boolean).join(", ");
  const count = (name, text) => name in counters && `${shortNumber(counters[name])} ${text}`;
  const stalled = (name) => `stalled_${name}_fraction` in counters && `${name} stalled ${formatShare(counters[`stalled_${name}_fraction`])} of the cycles`;
  const { instructions_per_cycle: perCycle, llc_bytes_per_second: bytes, why_no_hardware: why } = counters;
  const misses = bytes === undefined ? count("cache_misses", "cache misses per step") : `${count("llc_misses", "LLC misses per step")} (${formatBytes(bytes)}/s)`;
  return [
    ["Kernel", parts(count("page_faults", "page faults"), count("context_switches", "context switches"),
      count("involuntary_context_switches", "of them involuntary"), count("cpu_migrations", "CPU migrations")) + " per step"],
    ["Processor", why ? h("span", { class: "muted" }, `no hardware counters: ${why}`)
      : parts(perCycle !== undefined && `${formatNumber(Number(perCycle.toPrecision(3)))} instructions per cycle`, count("cycles", "cycles per step"), misses, stalled("frontend"), stalled("backend"))],
  ];
}

const gainText = ({ low, high, basis }) => {
  const ends = [...new Set([low, high].map((one) => `${one.toFixed(2)}×`))].join(" to ");
  return `expected speed-up ${ends} (${basis})`;
};

export function adviceBox({ advice }) {
  return box("Advice", advice.length === 0
    ? h("p", { class: "muted" }, "No rule found anything to change.")
    : h("ol", { class: "advice" }, advice.map(({ rule, finding, remedy, options, gain }) => h("li", {},
      h("p", {}, h("b", {}, `${finding}.`), ` ${remedy}`, gain.high > 1 ? `: ${gainText(gain)}.` : "."),
      h("p", { class: "muted" }, h("span", { class: "kind" }, rule), options.map((option) => h("code", {}, option)))))));
}

export function operatorsBox({ operators }) {
  return box("Slowest operators", plainTable(
    [{ text: "operator" }, { text: "layer" }, { text: "time", isNumber: true }, { text: "of the step", isNumber: true },
      { text: "calls", isNumber: true }, { text: "FLOPs", isNumber: true }, { text: "bytes", isNumber: true },
      { text: "limit", isNumber: true, title: "percentage of the hardware limit" }],
    operators.slice(0, SHOWN_OPERATORS).map((one) => ({
      cells: [{ content: h("code", {}, shortened(one.call, CALL_LETTERS)), title: one.call }, layerName(one.layer), formatMs(one.ms), formatShare(one.fraction),
        formatNumber(one.calls), one.flops > 0 ? formatFlops(one.flops, "") : "–", one.bytes > 0 ? formatBytes(one.bytes) : "–",
        one.limit_ms > 0 ? formatShare(one.limit_ms / one.ms) : "–"],
    }))));
}

export function ranksBox({ ranks, rank_skew: skew }) {
  if (!ranks) return null;
  const number = (text, title) => ({ text, isNumber: true, title });
  return box("Ranks", h("p", { class: "muted" }, `Skew of the compute time, (max − min) / mean: ${formatShare(skew)}.`), plainTable(
    [{ text: "rank" }, { text: "host" }, number("step"), number("compute"), number("data wait"),
      number("exposed communication", "the step waits for it"), number("overlapped", "communication that overlaps with the step"),
      number("last into collectives", "fraction of collectives for which the others waited")],
    ranks.map((one) => ({ cells: [one.rank, one.host, formatMs(one.step_ms), formatMs(one.compute_ms), formatMs(one.data_wait_ms),
      formatMs(one.exposed_communication_ms), formatMs(one.overlapped_communication_ms), formatShare(one.last_into_collectives)] }))));
}
