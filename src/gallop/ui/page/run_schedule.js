// The planned values of a run's schedules over its whole length, the actual values so far, and the current position.

import { numberOf } from "./api.js";
import { CurveCard } from "./curves.js";
import { h } from "./dom.js";
import { formatNumber } from "./format.js";
import { showKept } from "./run_kept.js";
import { linksOf, loadCurves } from "./series.js";
import { looksOf, styleColor, theme } from "./theme.js";

const SETTINGS = { axis: "step", smoothing: 0, logX: false, logY: false };
const DASHES = [5, 4];

const nameOf = (metric) => (metric === "train.lr" ? "learning rate" : metric.replace("train.", "").replaceAll("_", " "));

// The planned values as a line of a chart.
function planned({ at, lines }, metric) {
  const y = lines.find((line) => line.metric === metric).values.map(numberOf);
  const point = (i) => (i < 0 ? null : { value: y[i], step: at[i] });
  return {
    name: "planned", label: "planned", href: null, color: styleColor("--soft"), dash: DASHES, x: at, y, smooth: y,
    latest: point(y.length - 1), least: point(y.indexOf(Math.min(...y))), most: point(y.indexOf(Math.max(...y))),
  };
}

function titleOf({ lines }, metric) {
  const { schedule } = lines.find((line) => line.metric === metric);
  return nameOf(metric) + (schedule && `, ${schedule}`);
}

function placeText({ steps, steps_per_epoch: perEpoch }, run) {
  const epochs = (count) => formatNumber(Number((count / perEpoch).toFixed(2)));
  return `Step ${formatNumber(run.steps)} of ${formatNumber(steps)}${perEpoch > 0 ? `, epoch ${epochs(run.steps)} of ${epochs(steps)}` : ""}`;
}

function followText({ lines }) {
  const names = lines.filter((line) => line.follows_evaluations).map((line) => nameOf(line.metric));
  return names.length > 0 && `Depends on evaluations: ${names.join(", ")}. The plan assumes that they keep improving.`;
}

/** Shows the schedules until the signal is aborted; returns a function that updates them. */
export function showSchedule(root, { run, signal }) {
  const here = h("p", { class: "schedule-place", role: "status" });
  let now = run;
  let cards = [];

  function contextOf(schedule) {
    const isLogged = (metric) => now.metrics.some((one) => one.name === metric);
    return {
      settings: SETTINGS,
      load: async (metric, what) => {
        const used = isLogged(metric) ? await loadCurves(metric, [now.name], looksOf([now.name]), SETTINGS, what) : [];
        return [...used.map((one) => ({ ...one, name: "used", label: "used", href: null })), planned(schedule, metric)];
      },
      lines: () => 2,
      links: (metric) => (isLogged(metric) ? linksOf(metric, [now.name], SETTINGS) : []),
      pointed: (x, from, y) => cards.forEach((card) => card.point(x, card === from ? y : null)),
      title: (metric) => titleOf(schedule, metric),
      mark: () => now.steps,
      noun: "line",
    };
  }

  function content(schedule) {
    const context = contextOf(schedule);
    const follows = followText(schedule);
    for (const card of cards) card.unmount();
    cards = schedule.lines.map(({ metric }) => new CurveCard(metric, context));
    return [here, follows && h("p", { class: "muted hint" }, follows),
      h("div", { class: "main" }, h("div", { class: "cards" }, cards.map((card) => card.element)))];
  }

  const read = showKept(root, {
    path: "run/schedule", name: run.name, signal, content,
    nothing: ["No schedule", h("p", {}, "A training saves its schedule when it starts or resumes. Older runs and imported runs have none.")],
    kept: (schedule, isSame) => {
      here.textContent = placeText(schedule, now);
      for (const card of cards) {
        if (isSame) card.reload();
        else card.mount();
      }
    },
  });

  theme.addEventListener("change", () => cards.forEach((card) => card.reload()), { signal });
  signal.addEventListener("abort", () => cards.forEach((card) => card.unmount()));
  return (latest) => {
    now = latest;
    return read();
  };
}
