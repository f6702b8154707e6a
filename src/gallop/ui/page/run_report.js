// The evaluation report of a run: the confusion matrix as a table, the most confident mistakes, images with predicted
// masks, and figures.

import { address } from "./api.js";
import { h } from "./dom.js";
import { formatNumber, shellWord } from "./format.js";
import { showKept } from "./run_kept.js";

const MOST_CLASSES = 100; // Limit of the table; the figure shows the most frequent confusions of more.

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const share = (part, all) => (all > 0 ? part / all : 0);
const sum = (row) => row.reduce((all, one) => all + one, 0);

// A row for each true class, a column for each predicted class; the color is the fraction of the row.
function table({ classes, counts }) {
  const sums = counts.map(sum);
  const cell = (truth, guess) => {
    const number = counts[truth][guess];
    const all = sums[truth];
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
      h("td", { class: "value" }, percent(share(counts[truth][truth], sums[truth]))))))))];
}

const hasTable = ({ counts }) => counts.length > 0 && counts.length <= MOST_CLASSES;

function mistakes(source, { classes, mistakes: list }) {
  if (list.length === 0) return h("p", { class: "muted" }, "None: every prediction is correct.");
  return h("ul", { class: "mistakes" }, list.map(({ image, truth, guess, probability }) => h("li", {},
    h("img", { src: source("run/image", { image }), loading: "lazy", alt: `${classes[truth]}, predicted as ${classes[guess]}` }),
    h("span", { class: "guess" }, classes[guess]), h("span", { class: "muted" }, `${percent(probability)}, is ${classes[truth]}`))));
}

const isAllRight = (counts) => counts.length > 0 && counts.every((row, truth) => row.every((number, guess) => number === 0 || truth === guess));

const kinds = [["image", "image"], ["truth", "true mask"], ["prediction", "predicted mask"], ["differences", "differences"]];

function masks(source, { classes, colors, overlays }) {
  const row = (one) => h("li", {},
    h("p", { class: "muted" }, `Sample ${formatNumber(one.sample)}, IoU ${one.iou === null ? "undefined" : formatNumber(one.iou)}`),
    h("div", { class: "masks" }, kinds.map(([key, name]) => h("figure", {},
      h("img", { src: source("run/image", { image: one[key] }), loading: "lazy", alt: `${name} of sample ${one.sample}` }),
      h("figcaption", { class: "muted" }, name)))));
  const group = (name, title) => [h("h3", {}, title), h("ul", { class: "overlays" }, overlays.filter((one) => one.group === name).map(row))];
  return [h("ul", { class: "legend-of-classes" }, [...classes.map((name, i) => [name, colors[i]]), ["wrong pixel", "var(--difference)"]].map(([name, color]) =>
    h("li", {}, h("i", { style: { "--color": color } }), name))),
    group("first", "First images"), group("lowest-iou", "Lowest IoU")];
}

// The confusion matrix may already be shown as a table.
function figures(source, report) {
  return report.figures.filter(({ name }) => name !== "confusion-matrix" || !hasTable(report)).map(({ name, title }) =>
    h("div", { class: "scrolled" }, h("img", { class: "picture", alt: title, src: source("run/figure", { figure: name }), loading: "lazy" })));
}

// `source` makes the addresses of images.
function contentOf(source, report) {
  const what = `${report.part} split, step ${formatNumber(report.step)}`;
  const drawn = figures(source, report), hasClasses = hasTable(report);
  return h("div", { class: "boxes" },
    hasClasses && h("section", { class: "box" }, h("h2", {}, `Classes of the ${what}`), table(report)),
    (report.mistakes.length > 0 || isAllRight(report.counts)) && h("section", { class: "box" }, h("h2", {}, "Most confident mistakes"), mistakes(source, report)),
    report.overlays.length > 0 && h("section", { class: "box" }, h("h2", {}, "Predicted masks"), masks(source, report)),
    drawn.length > 0 && h("section", { class: "box" }, h("h2", {}, hasClasses ? "Figures" : `Figures of the ${what}`), drawn));
}

/** Shows the report until the signal is aborted; returns a function that updates it. */
export function showReport(root, { name, signal }) {
  let version = 0; // In the addresses of images: a later report has others of the same names.
  const content = (report) => {
    version += 1;
    return contentOf((path, query) => address(path, { name, ...query, v: version }), report);
  };
  return showKept(root, {
    path: "run/report", name, signal, content,
    nothing: ["No report yet", h("p", {}, "For figures, the confusion matrix and the most confident mistakes of an evaluation, run:"),
      h("pre", { class: "command" }, `gallop evaluate ${shellWord(name)} --report`)],
  });
}
