// The evaluation report of a run: the confusion matrix as a table, the most confident mistakes, images with predicted
// masks, and figures.

import { address } from "./api.js";
import { h } from "./dom.js";
import { formatNumber, shellWord } from "./format.js";
import { showKept } from "./run_kept.js";

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const share = (part, all) => (all > 0 ? part / all : 0);
const sum = (row) => row.reduce((all, one) => all + one, 0);

// A row for each true class, a column for each predicted class; the color is the fraction of the row.
function table({ classes, counts }) {
  const cell = (truth, guess) => {
    const number = counts[truth][guess];
    const all = sum(counts[truth]);
    const kind = truth === guess ? "right" : "wrong";
    return h("td", {
      class: `count ${number > 0 ? kind : "none"}`,
      style: { "--share": share(number, all).toFixed(3) },
      title: `${classes[truth]} predicted as ${classes[guess]}: ${formatNumber(number)} of ${formatNumber(all)}, ${percent(share(number, all))}`,
    }, number > 0 ? formatNumber(number) : "");
  };
  return [h("p", { class: "muted", id: "confusion-note" }, "Rows are true classes, columns predicted ones."),
    h("div", { class: "scroll-x" }, h("table", { class: "confusion", "aria-describedby": "confusion-note" },
    h("thead", {}, h("tr", {}, h("td", {}), [...classes, "found"].map((name) => h("th", { scope: "col" }, h("span", {}, name))))),
    h("tbody", {}, classes.map((name, truth) => h("tr", {}, h("th", { scope: "row" }, name),
      classes.map((_, guess) => cell(truth, guess)),
      h("td", { class: "value" }, percent(share(counts[truth][truth], sum(counts[truth])))))))))];
}

function mistakes(run, { classes, mistakes: list }) {
  if (list.length === 0) return h("p", { class: "muted" }, "None: every prediction is correct.");
  return h("ul", { class: "mistakes" }, list.map(({ image, truth, guess, probability }) => h("li", {},
    h("img", { src: address("run/image", { name: run, image }), loading: "lazy", alt: `${classes[truth]}, predicted as ${classes[guess]}` }),
    h("span", { class: "guess" }, classes[guess]), h("span", { class: "muted" }, `${percent(probability)}, is ${classes[truth]}`))));
}

const isAllRight = (counts) => counts.length > 0 && counts.every((row, truth) => row.every((number, guess) => number === 0 || truth === guess));

const kinds = [["image", "image"], ["truth", "true mask"], ["prediction", "predicted mask"], ["differences", "differences"]];

function masks(run, { classes, colors, overlays }) {
  const row = (one) => h("li", {},
    h("p", { class: "muted" }, `Sample ${formatNumber(one.sample)}, IoU ${one.iou === null ? "undefined" : formatNumber(one.iou)}`),
    h("div", { class: "masks" }, kinds.map(([key, name]) => h("figure", {},
      h("img", { src: address("run/image", { name: run, image: one[key] }), loading: "lazy", alt: `${name} of sample ${one.sample}` }),
      h("figcaption", { class: "muted" }, name)))));
  const group = (name, title) => [h("h3", {}, title), h("ul", { class: "overlays" }, overlays.filter((one) => one.group === name).map(row))];
  return [h("ul", { class: "legend-of-classes" }, [...classes.map((name, i) => [name, colors[i]]), ["wrong pixel", "var(--difference)"]].map(([name, color]) =>
    h("li", {}, h("i", { style: { "--color": color } }), name))),
    group("first", "First images"), group("lowest-iou", "Lowest IoU")];
}

// The confusion matrix is already shown as a table.
function figures(run, { figures: list, counts }) {
  return list.filter(({ name }) => name !== "confusion-matrix" || counts.length === 0).map(({ name, title }) =>
    h("div", { class: "scrolled" }, h("img", { class: "picture", alt: title, src: address("run/figure", { name: run, figure: name }), loading: "lazy" })));
}

function contentOf(run, report) {
  const what = `${report.part} part, step ${formatNumber(report.step)}`;
  const drawn = figures(run, report), hasClasses = report.counts.length > 0;
  return h("div", { class: "boxes" },
    hasClasses && h("section", { class: "box" }, h("h2", {}, `Classes of the ${what}`), table(report)),
    (report.mistakes.length > 0 || isAllRight(report.counts)) && h("section", { class: "box" }, h("h2", {}, "Most confident mistakes"), mistakes(run, report)),
    report.overlays.length > 0 && h("section", { class: "box" }, h("h2", {}, "Predicted masks"), masks(run, report)),
    drawn.length > 0 && h("section", { class: "box" }, h("h2", {}, hasClasses ? "Figures" : `Figures of the ${what}`), drawn));
}

/** Shows the report until the signal is aborted; returns a function that updates it. */
export function showReport(root, { name, signal }) {
  return showKept(root, {
    path: "run/report", name, signal, content: (report) => contentOf(name, report),
    nothing: ["No report yet", h("p", {}, "For figures, the confusion matrix and the most confident mistakes of an evaluation, run:"),
      h("pre", { class: "command" }, `gallop evaluate ${shellWord(name)} --report`)],
  });
}
