// A profile as boxes: phases, advice, ranks, timeline, layers, roofline, memory and operators.

import { h, replace } from "./dom.js";
import { flameGraph } from "./profile_flame.js";
import { memoryPlot } from "./profile_memory.js";
import { roofline } from "./profile_roofline.js";
import { adviceBox, operatorsBox, phasesBar, ranksBox, stepFacts } from "./profile_summary.js";
import { Timeline } from "./profile_timeline.js";
import { spansOf } from "./profile_trace.js";
import { box } from "./tables.js";
import { theme } from "./theme.js";

/** The boxes, which follow the theme until the signal is aborted; `timeline` is an element, or null without a trace. */
export function profileBoxes(profile, timeline, signal) {
  const bar = h("div", {}, phasesBar(profile));
  theme.addEventListener("change", () => replace(bar, phasesBar(profile)), { signal });
  return h("div", { class: "boxes profile" },
    box("Step", stepFacts(profile), bar), adviceBox(profile), ranksBox(profile), timeline && timelineBox(timeline),
    profile.layers.length > 0 && box("Layers", flameGraph(profile, signal)),
    profile.why_no_layers && box("Layers", h("p", { class: "muted" }, `Unknown: ${profile.why_no_layers}.`)),
    h("div", { class: "halves" }, box("Roofline", roofline(profile, signal)), box("Memory of a step", memoryPlot(profile, signal))),
    operatorsBox(profile));
}

export const timelineBox = (timeline) => h("section", { class: "box" }, h("h2", {}, "Timeline"), timeline);

/** Draws traces, by rank, into an element; see spansOf(). */
export function drawTimeline(element, traces, signal) {
  replace(element, h("p", { class: "muted" }, "The wheel zooms, dragging pans, a double click shows all."), new Timeline(spansOf(traces), signal).element);
}
