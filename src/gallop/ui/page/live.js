// Receives from the server what has changed, and shows when the server is gone and when it is back.

import { connection, getSession } from "./api.js";

/** Tells of "runs" (detail: {changed, removed}: lists of names), of "sweeps" (the same) and of "back": all may have changed. */
export const live = new EventTarget();

const RETRY_MS = 1500;
const TOGETHER_MS = 300;
const GONE = "The server does not answer; what is shown may be old. Trying again.";
const REFUSED = "Changes are not followed: the server has no place for one more page. Trying again.";
// Browsers open few connections to one server, for all their pages together: a page that is not visible gives its own up.
const HIDDEN_MS = 5000;
let source = null;
let isLost = false;
let isBehind = false; // Something may have changed that was not announced.
let timer = 0;

function banner(text) {
  const element = document.getElementById("banner");
  if (element.textContent !== text) element.textContent = text;
  element.hidden = !text;
}

function lost(text = GONE) {
  isLost = isBehind = true;
  banner(text);
  clearTimeout(timer);
  timer = setTimeout(connect, RETRY_MS);
}

async function found() {
  clearTimeout(timer);
  if (isLost) await getSession(true).catch(() => {});
  isLost = false;
  banner("");
  if (!isBehind) return;
  isBehind = false;
  live.dispatchEvent(new Event("back"));
}

function connect() {
  source?.close();
  source = new EventSource("/api/events");
  source.onopen = found;
  source.onerror = async ({ target }) => {
    target.close();
    const answers = await getSession(true).then(() => true, () => false);
    lost(answers ? REFUSED : GONE);
  };
  for (const kind of ["runs", "sweeps"]) {
    source.addEventListener(kind, (event) => {
      const { changed = [], removed = [] } = JSON.parse(event.data);
      live.dispatchEvent(new CustomEvent(kind, { detail: { changed, removed } }));
    });
  }
}

function disconnect() {
  source?.close();
  source = null;
  clearTimeout(timer);
  isBehind = true;
}

export function startLive() {
  connection.addEventListener("lost", () => lost());
  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(disconnect, HIDDEN_MS);
    else if (!source) connect();
  });
  // A page that the browser keeps for "back" would keep its connection too.
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) connect();
  });
  connect();
}

/**
 * Calls with the names that changed ({changed, removed}, sets; null for all), a few at once, and not while the
 * page is hidden: then once it is seen again. `kind`: "runs" or "sweeps".
 */
export function onChange(signal, call, kind = "runs") {
  let waiting = { changed: new Set(), removed: new Set(), all: false };
  let timer = 0;
  function tell() {
    timer = 0;
    if (signal.aborted || document.hidden) return;
    const { changed, removed, all } = waiting;
    if (!all && changed.size + removed.size === 0) return;
    waiting = { changed: new Set(), removed: new Set(), all: false };
    call(all ? null : { changed, removed });
  }
  const soon = () => {
    timer ||= setTimeout(tell, TOGETHER_MS);
  };
  live.addEventListener(kind, ({ detail }) => {
    for (const name of detail.changed) waiting.changed.add(name);
    for (const name of detail.removed) waiting.removed.add(name);
    soon();
  }, { signal });
  live.addEventListener("back", () => {
    waiting.all = true;
    tell();
  }, { signal });
  document.addEventListener("visibilitychange", tell, { signal });
}
