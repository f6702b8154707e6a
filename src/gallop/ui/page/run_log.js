// The log of a run, newest records last.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { exactNumber, formatNumber, timeElement } from "./format.js";

const PAGE = 200;
const MOST = 2000; // Rows that are kept while the end of the log is followed.

function recordElement({ step, time, kind, values, texts, superseded }) {
  return h("tr", { class: superseded ? "superseded" : "", title: superseded ? "The run was rewound to before this record." : null },
    h("td", {}, timeElement(time)),
    h("td", { class: "value" }, formatNumber(step)),
    h("td", {}, h("span", { class: "kind" }, kind)),
    h("td", { class: "what" }, Object.entries(values ?? {}).map(([name, value]) => h("span", { class: "pair-of", title: exactNumber(value) }, h("span", { class: "muted" }, `${name} `), formatNumber(value))),
      Object.entries(texts ?? {}).map(([name, text]) => h("span", { class: "pair-of" }, h("span", { class: "muted" }, `${name} `), text))));
}

/** Shows the log until the signal is aborted; returns a function that loads new records of a run. */
export function showLog(root, { name, kinds, signal }) {
  let kind = "";
  let first = 0; // Records shown: [first, end).
  let end = 0;
  let isShown = false; // The newest records of this kind.
  let busy = null; // Aborts the requests in progress.
  let isBehind = false; // There were changes during them.
  const offered = new Set();
  const error = errorLine();
  const select = h("select", { "aria-label": "Kind", onchange: () => {
    kind = select.value;
    begin();
  } }, h("option", { value: "" }, "all kinds"));
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
  const read = (offset, limit) => get("run/log", { name, kind, offset, limit }, busy.signal);
  async function guarded(call) {
    if (busy) return;
    const own = busy = new AbortController();
    signal.addEventListener("abort", () => own.abort(), { signal: own.signal });
    try {
      await call();
      if (own === busy) error.show("");
    } catch (failure) {
      error.report(failure, own.signal);
    }
    const isLast = own === busy && !signal.aborted;
    own.abort(); // Removes its listener.
    if (!isLast) return;
    busy = null;
    if (isBehind) readNew();
  }
  function showStatus() {
    earlier.hidden = first === 0;
    status.textContent = end === 0 ? "no records" : `${formatNumber(first + 1)} to ${formatNumber(end)}`;
  }
  // Replaces what is shown, also while something else is loaded.
  function begin() {
    busy?.abort();
    busy = null;
    isShown = false;
    guarded(async () => {
      const { total } = await read(0, 1);
      const from = Math.max(0, total - PAGE);
      const { records } = await read(from, PAGE);
      [first, end, isShown] = [from, from + records.length, true];
      replace(body, records.map(recordElement));
      showStatus();
      toEnd();
    });
  }
  const readEarlier = () => guarded(async () => {
    const from = Math.max(0, first - PAGE);
    const { records } = await read(from, first - from);
    const below = scroller.scrollHeight - scroller.scrollTop;
    body.prepend(...records.map(recordElement));
    scroller.scrollTop = scroller.scrollHeight - below;
    first = from;
    showStatus();
  });
  function readNew() {
    isBehind = busy !== null;
    if (isBehind) return;
    if (!isShown) {
      begin();
      return;
    }
    guarded(async () => {
      for (;;) {
        const { total, records } = await read(end, PAGE);
        if (total < end) {
          begin(); // The log was replaced.
          return;
        }
        const follows = isAtEnd();
        body.append(...records.map(recordElement));
        end += records.length;
        if (follows) {
          for (; end - first > MOST; ++first) body.firstChild.remove();
          toEnd();
        }
        showStatus();
        if (records.length === 0 || end >= total) return;
      }
    });
  }
  function offer(all) {
    for (const text of all.filter((one) => !offered.has(one))) {
      offered.add(text);
      select.append(h("option", { value: text }, text));
    }
  }
  offer(kinds);
  begin();
  return (run) => {
    offer(run.kinds);
    readNew();
  };
}
