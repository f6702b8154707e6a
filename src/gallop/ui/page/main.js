// Shows the view for the current URL.

import { getSession } from "./api.js";
import { choose } from "./chosen.js";
import { showCompare } from "./compare.js";
import { h, replace } from "./dom.js";
import { keepTimes } from "./format.js";
import { onKeys, openKeys } from "./keys.js";
import { live, startLive } from "./live.js";
import { showProfileFiles } from "./profile_files.js";
import { link, one, parse } from "./routes.js";
import { showRun } from "./run.js";
import { showRuns } from "./runs_table.js";
import { showSearch } from "./search.js";
import { showSearches } from "./searches.js";
import { showSweep } from "./sweep.js";
import { showSweeps } from "./sweeps.js";
import { startTheme, switchTheme } from "./theme.js";

const VIEWS = {
  "": showRuns, compare: showCompare, run: showRun, sweeps: showSweeps, sweep: showSweep, searches: showSearches, search: showSearch,
  profile: showProfileFiles,
};
const TITLES = { "": "Runs", compare: "Compare", sweeps: "Sweeps", searches: "Optimize", profile: "Profile" };
const RETRY_MS = 1500;
let shown = new AbortController();

function drawHeader(session) {
  const button = h("button", { type: "button", class: "quiet", title: "Light or dark (t)", "aria-label": "Light or dark", onclick: switchTheme }, "◐");
  replace(document.getElementById("header"),
    h("a", { class: "brand", href: link("") }, "gallop"),
    h("span", { class: "folder ellipsis", title: session.folder }, session.folder),
    h("nav", { "aria-label": "Views" }, h("a", { href: link(""), id: "to-runs" }, "Runs"),
      h("a", { href: link("sweeps"), id: "to-sweeps" }, "Sweeps"),
      h("a", { href: link("searches"), id: "to-searches" }, "Optimize"),
      h("a", { href: link("profile"), id: "to-profile", title: "Open the files of a profile" }, "Profile")),
    h("span", { class: "spacer" }),
    h("span", { class: "muted version" }, session.version),
    button,
    h("button", { type: "button", class: "quiet", title: "Keys (?)", "aria-label": "Keys", onclick: openKeys }, "?"));
}

function show(session) {
  shown.abort();
  shown = new AbortController();
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  const route = parse(location.hash);
  const root = document.getElementById("view");
  root.className = "";
  root.scrollTop = 0;
  replace(root);
  const view = Object.hasOwn(VIEWS, route.path) ? VIEWS[route.path] : null;
  for (const [id, path] of [["to-runs", ""], ["to-sweeps", "sweeps"], ["to-searches", "searches"], ["to-profile", "profile"]]) {
    const item = document.getElementById(id);
    if (route.path === path) item.setAttribute("aria-current", "page");
    else item.removeAttribute("aria-current");
  }
  document.title = `${Object.hasOwn(TITLES, route.path) ? TITLES[route.path] : one(route.query, "name")} · Gallop`;
  if (!view) replace(root, h("div", { class: "empty" }, h("h2", {}, "Page not found"), h("a", { href: link("") }, "All runs")));
  else view(root, route, session, shown.signal);
}

async function start() {
  startTheme();
  keepTimes();
  let session;
  for (;;) {
    try {
      session = await getSession();
      break;
    } catch (error) {
      replace(document.getElementById("view"), h("div", { class: "empty" }, h("p", { class: "error" }, error.message)));
      await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }
  startLive();
  drawHeader(session);
  const { signal } = new AbortController();
  onKeys(signal, { "?": openKeys, t: switchTheme, g: () => (location.hash = link("")), s: () => (location.hash = link("sweeps")),
    o: () => (location.hash = link("searches")), p: () => (location.hash = link("profile")) });
  live.addEventListener("runs", ({ detail }) => {
    if (detail.removed.length > 0) choose(detail.removed, false);
  });
  addEventListener("hashchange", () => show(session));
  show(session);
}

start();
