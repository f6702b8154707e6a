// The controls common to all charts: search, smoothing, axes. Their state is part of the URL.

import { AXES } from "./axes.js";
import { debounced, h, options } from "./dom.js";
import { amend, one } from "./routes.js";

const SMOOTHING = 0.6; // TensorBoard's default.

/** The settings in the URL. */
export function settingsOf(query) {
  const smoothing = Number(one(query, "smoothing", SMOOTHING));
  const axis = one(query, "axis", "step");
  return {
    axis: AXES.some(([name]) => name === axis) ? axis : "step",
    smoothing: smoothing >= 0 && smoothing <= 1 ? smoothing : SMOOTHING,
    logX: one(query, "logx") === "1",
    logY: one(query, "logy") === "1",
    search: one(query, "search"),
  };
}

/** The controls; they change `settings` and then call `changed(name)`. */
export function chartControls(settings, changed) {
  const set = (name, value, inAddress, key = name) => {
    settings[name] = value;
    amend({ [key.toLowerCase()]: inAddress });
    changed(name);
  };
  const search = h("input", { type: "search", id: "search", value: settings.search, placeholder: "Search metrics (regular expression)",
    "aria-label": "Search metrics", spellcheck: "false",
    oninput: debounced(150, () => search.isConnected && set("search", search.value, search.value)) });
  const number = h("output", { class: "value", for: "smoothing" }, settings.smoothing.toFixed(2));
  const slider = h("input", { type: "range", id: "smoothing", min: 0, max: 0.99, step: 0.01, value: settings.smoothing, oninput: () => {
    number.textContent = Number(slider.value).toFixed(2);
    settings.smoothing = Number(slider.value);
    changed("smoothing");
  }, onchange: () => amend({ smoothing: Number(slider.value) === SMOOTHING ? "" : slider.value }) });
  const axis = h("select", { id: "axis", "aria-label": "Horizontal axis", onchange: () => set("axis", axis.value, axis.value === "step" ? "" : axis.value) },
    options(AXES, settings.axis));
  const toggle = (name, text, title) => {
    const button = h("button", { type: "button", title, "aria-pressed": String(settings[name]), onclick: () => {
      button.setAttribute("aria-pressed", String(!settings[name]));
      set(name, !settings[name], settings[name] ? "" : "1");
    } }, text);
    return button;
  };
  return [search,
    h("label", { class: "field" }, h("span", {}, "Smoothing"), slider, number),
    h("label", { class: "field" }, h("span", {}, "Over"), axis),
    h("span", { class: "pair", role: "group", "aria-label": "Logarithmic axes" },
      toggle("logX", "log x", "Logarithmic horizontal axis"), toggle("logY", "log y", "Logarithmic vertical axis"))];
}
