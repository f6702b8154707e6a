// Receives server-sent change events, and shows when the connection is lost and restored.

import { connection, getSession } from "./api.js";

/**
 * Dispatches "runs" (detail: {changed, removed}: lists of names), "sweeps" and "searches" (the same) and "back": anything
 * may have changed.
 */
export const live = new EventTarget();

const RETRY_MS = 1500;
const TOGETHER_MS = 300;
const GONE = "The server does not respond; the page may be outdated. Reconnecting.";
const REFUSED = "No live updates: too many pages are open. Reconnecting.";
// Browsers limit the connections per server across all pages, so that a hidden page closes its own.
const HIDDEN_MS = 5000;
let source = null;
let isLost = false;
let isBehind = false; // A change may have been missed.
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
  for (const kind of ["runs", "sweeps", "searches"]) {
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
  // A page in the back/forward cache would keep its connection.
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted) connect();
  });
  connect();
}

/**
 * Calls `call` with the changed names ({changed, removed}, sets; null for all), batched, and not while the page is hidden,
 * but once it is visible again. `kind`: "runs", "sweeps" or "searches".
 */
export function onChange(signal, call, kind = "runs") {
  let waiting = { changed: new Set(), removed: new Set(), all: false };
  let timer = 0;
  function flush() {
    timer = 0;
    if (signal.aborted || document.hidden) return;
    const { changed, removed, all } = waiting;
    if (!all && changed.size + removed.size === 0) return;
    waiting = { changed: new Set(), removed: new Set(), all: false };
    call(all ? null : { changed, removed });
  }
  const soon = () => {
    timer ||= setTimeout(flush, TOGETHER_MS);
  };
  live.addEventListener(kind, ({ detail }) => {
    for (const name of detail.changed) waiting.changed.add(name);
    for (const name of detail.removed) waiting.removed.add(name);
    soon();
  }, { signal });
  live.addEventListener("back", () => {
    waiting.all = true;
    flush();
  }, { signal });
  document.addEventListener("visibilitychange", flush, { signal });
}
