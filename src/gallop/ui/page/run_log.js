// The log of a run, newest records last.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { exactNumber, formatNumber, timeElement } from "./format.js";

const PAGE = 200;

function recordElement({ step, time, kind, values, texts, superseded }) {
  return h("tr", { class: superseded ? "superseded" : "", title: superseded ? "The run was rewound to before this record." : null },
    h("td", {}, timeElement(time)),
    h("td", { class: "value" }, formatNumber(step)),
    h("td", {}, h("span", { class: "kind" }, kind)),
    h("td", { class: "what" }, Object.entries(values ?? {}).map(([name, value]) => h("span", { class: "pair-of", title: exactNumber(value) }, h("span", { class: "muted" }, `${name} `), formatNumber(value))),
      Object.entries(texts ?? {}).map(([name, text]) => h("span", { class: "pair-of" }, h("span", { class: "muted" }, `${name} `), text))));
}

/** Shows the log until the signal is aborted; returns a function that loads new records. */
export function showLog(root, { name, kinds, signal }) {
  let kind = "";
  let first = 0; // Records shown: [first, end).
  let end = 0;
  let isBusy = false;
  const error = errorLine();
  const select = h("select", { "aria-label": "Kind", onchange: () => {
    kind = select.value;
    begin();
  } }, h("option", { value: "" }, "all kinds"), kinds.map((text) => h("option", { value: text }, text)));
  const status = h("span", { class: "muted", role: "status" });
  const earlier = h("button", { type: "button", hidden: true, onclick: () => readEarlier() }, "Show earlier records");
  const body = h("tbody", {});
  const rows = h("table", { class: "plain log" }, h("thead", {}, h("tr", {}, ["time", "step", "kind", ""].map((text) => h("th", { scope: "col", class: text === "step" ? "value" : "" }, text)))), body);
  replace(root, h("div", { class: "toolbar" }, h("label", { class: "field" }, h("span", {}, "Show"), select), earlier, h("span", { class: "spacer" }), status), error, h("div", { class: "scroll-x" }, rows));

  const scroller = root.closest("#view");
  const isAtEnd = () => scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2;
  const toEnd = () => {
    scroller.scrollTop = scroller.scrollHeight;
  };
  const read = (offset, limit) => get("run/log", { name, kind, offset, limit }, signal);
  async function guarded(call) {
    if (isBusy) return;
    isBusy = true;
    try {
      await call();
      error.show("");
    } catch (failure) {
      error.report(failure, signal);
    }
    isBusy = false;
  }
  function showStatus() {
    earlier.hidden = first === 0;
    status.textContent = end === 0 ? "no records" : `${formatNumber(first + 1)} to ${formatNumber(end)}`;
  }
  const begin = () => guarded(async () => {
    const { total } = await read(0, 1);
    first = Math.max(0, total - PAGE);
    const { records } = await read(first, PAGE);
    end = first + records.length;
    replace(body, records.map(recordElement));
    showStatus();
    toEnd();
  });
  const readEarlier = () => guarded(async () => {
    const from = Math.max(0, first - PAGE);
    const { records } = await read(from, first - from);
    const below = scroller.scrollHeight - scroller.scrollTop;
    body.prepend(...records.map(recordElement));
    scroller.scrollTop = scroller.scrollHeight - below;
    first = from;
    showStatus();
  });
  const readNew = () => guarded(async () => {
    for (;;) {
      const { total, records } = await read(end, PAGE);
      if (total < end) {
        first = end = 0; // The log was replaced.
        isBusy = false;
        await begin();
        return;
      }
      const follows = isAtEnd();
      body.append(...records.map(recordElement));
      if (follows) toEnd();
      end += records.length;
      showStatus();
      if (records.length === 0 || end >= total) return;
    }
  });
  begin();
  return readNew;
}
