// The first training samples of a run: images before and after augmentation, or texts.

import { address } from "./api.js";
import { h } from "./dom.js";
import { showKept } from "./run_kept.js";

const SHOWN_PX = 88; // Smaller images are scaled by integers.

function picture(run, image, alt) {
  return h("img", {
    src: address("run/samples/image", { name: run, image }), alt, loading: "lazy",
    onload: ({ target }) => target.classList.toggle("magnified", target.naturalWidth < SHOWN_PX),
    onerror: ({ target }) => target.replaceWith(h("span", { class: "no-image muted", role: "img", "aria-label": alt }, "cannot be read")),
  });
}

function imageElement(run, { label, image, before }) {
  return h("li", {},
    h("span", { class: "pictures" },
      before && [picture(run, before, `${label}, original`), h("span", { class: "muted", "aria-hidden": "true" }, "→")],
      picture(run, image, before ? `${label}, augmented` : label)),
    h("span", { class: "label", title: label }, label));
}

function contentOf(run, { augmented_by: augmentations, samples }) {
  const isText = samples.some((one) => !one.image);
  const by = augmentations.length > 0 ? `Each image before and after ${augmentations.join(", ")}.` : "Not augmented.";
  return h("div", { class: "boxes" }, h("section", { class: "box" },
    h("h2", {}, isText ? "First training texts" : "First training images"),
    samples.length === 0 && h("p", { class: "muted" }, "No sample of the first batch could be read."),
    samples.length > 0 && !isText && [h("p", { class: "muted" }, by), h("ul", { class: "samples" }, samples.map((one) => imageElement(run, one)))],
    isText && h("ol", { class: "texts" }, samples.map(({ text }) => h("li", {}, h("pre", { class: "command" }, text))))));
}

/** Shows the samples until the signal is aborted; returns a function that updates them. */
export function showSamples(root, { name, signal }) {
  return showKept(root, {
    path: "run/samples", name, signal, content: (samples) => contentOf(name, samples),
    nothing: ["No samples", h("p", {}, "A run saves its first samples, unless "),
      h("pre", { class: "command" }, "track.log_samples=0"), h("p", {}, "Older runs and imported runs have none.")],
  });
}
