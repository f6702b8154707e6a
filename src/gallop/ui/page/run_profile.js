// The profiles of a run's steps.

import { get, getCompressed } from "./api.js";
import { h, options, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { formatNumber } from "./format.js";
import { drawTimeline, profileBoxes } from "./profile_boxes.js";
import { amend, link, one, parse } from "./routes.js";
import { showKept } from "./run_kept.js";

// A profile until the signal is aborted. Traces are large, and come later.
class ProfileView {
  constructor(root, name, signal) {
    Object.assign(this, { root, name, signal });
    this.error = errorLine();
    this.place = h("div", {});
    replace(root, this.error, this.place);
  }

  async show(step) {
    this.step = step;
    this.end?.abort();
    const end = this.end = new AbortController();
    this.signal.addEventListener("abort", () => end.abort(), { signal: end.signal });
    try {
      const profile = await get("run/profile", { name: this.name, step }, end.signal);
      this.error.show("");
      this.draw(profile, end.signal);
      await this.drawTimeline(profile, end.signal);
    } catch (failure) {
      // What the server could not send is requested again after the next change; damaged files stay damaged.
      if (!end.signal.aborted && failure.status !== 422) this.step = null;
      this.error.report(failure, end.signal);
    }
  }

  draw(profile, signal) {
    this.timeline = h("div", {}, h("p", { class: "muted" }, "Loading the trace …"));
    replace(this.place, profileBoxes(profile, this.timeline, signal));
  }

  async drawTimeline({ ranks }, signal) {
    const count = ranks?.length ?? 1;
    let traces;
    try {
      traces = await Promise.all(Array.from({ length: count }, async (_, rank) => ({
        trace: await getCompressed("run/profile/trace", { name: this.name, step: this.step, rank: String(rank) }, signal),
        offset: ranks?.[rank].trace_offset_ms ?? 0,
      })));
    } catch (failure) {
      if (!signal.aborted) replace(this.timeline, h("p", { class: "muted" }, "The trace cannot be read."));
      throw failure;
    }
    if (!signal.aborted) drawTimeline(this.timeline, traces, signal);
  }
}

/** Shows the profiles until the signal is aborted; returns a function that updates them. */
export function showProfiles(root, { name, signal }) {
  const select = h("select", { id: "profile-step", onchange: () => {
    amend({ step: select.value });
    view.show(Number(select.value));
  } });
  const body = h("div", {});
  const view = new ProfileView(body, name, signal);
  // The newest profile stays shown until another is chosen.
  const shownOf = (steps) => {
    const wanted = Number(one(parse(location.hash).query, "step", ""));
    return steps.includes(wanted) ? wanted : steps.at(-1);
  };
  const content = ({ steps }) => {
    replace(select, options(steps.map((step) => [String(step), formatNumber(step)]).reverse(), String(shownOf(steps))));
    return [h("div", { class: "toolbar" }, h("label", { class: "field" }, h("span", {}, "Profile up to step"), select)), body];
  };
  return showKept(root, {
    path: "run/profiles", name, signal, content,
    kept: ({ steps }) => {
      const shown = shownOf(steps);
      if (shown !== view.step) view.show(shown);
    },
    nothing: ["No profiles", h("p", {}, "To profile some steps of a run, train with:"), h("pre", { class: "command" }, "profile.every='1000 steps'"),
      h("p", {}, "Those of the command ", h("code", {}, "gallop profile"), " can be ", h("a", { href: link("profile") }, "opened as files"), ".")],
  });
}
