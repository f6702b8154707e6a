// A profile in files of the command 'gallop profile'. The browser reads them; nothing is uploaded.

import { h, replace } from "./dom.js";
import { errorLine } from "./errors.js";
import { drawTimeline, profileBoxes, timelineBox } from "./profile_boxes.js";

async function contentOf(file) {
  const stream = file.name.endsWith(".gz") ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  try {
    return await new Response(stream).json();
  } catch {
    throw new Error(`${file.name} is not valid JSON.`);
  }
}

const isProfile = (content) => Array.isArray(content?.phases) && Array.isArray(content.layers) && Array.isArray(content.operators);
const isTrace = (content) => Array.isArray(content?.traceEvents);
const rankOf = (trace) => trace.distributedInfo?.rank ?? 0;

const HINT = [h("h2", {}, "Open a profile"), h("p", {}, "Choose the files of a profile, or drop them here: the profile and, for the timeline, its trace."),
  h("pre", { class: "command" }, "gallop profile RECIPE --json --trace trace.json > profile.json"),
  h("p", { class: "muted" }, "The browser reads them; nothing is uploaded.")];

class ProfileFiles {
  constructor(root, signal) {
    this.signal = signal;
    this.profile = null;
    this.traces = [];
    this.error = errorLine();
    this.names = h("span", { class: "muted" });
    this.place = h("div", {}, h("div", { class: "empty" }, HINT));
    const input = h("input", { type: "file", id: "profile-files", multiple: true, accept: ".json,.gz,application/json,application/gzip",
      onchange: () => this.open([...input.files]) });
    replace(root, h("div", { class: "page-head" }, h("h1", {}, "Profile"), h("label", { class: "field" }, h("span", {}, "Files"), input), this.names), this.error, this.place);
    document.addEventListener("dragover", (event) => event.preventDefault(), { signal });
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      this.open([...event.dataTransfer.files]);
    }, { signal });
  }

  // A profile takes the place of the one before, and so do traces.
  async open(files) {
    this.error.show("");
    let profile = null;
    const traces = [];
    try {
      for (const file of files) {
        const content = await contentOf(file);
        if (isProfile(content)) profile = content;
        else if (isTrace(content)) traces.push(content);
        else throw new Error(`${file.name} is neither a profile of 'gallop profile --json' nor a trace.`);
      }
      if (this.signal.aborted || files.length === 0) return;
      this.draw(profile ?? this.profile, traces.length > 0 ? traces.sort((a, b) => rankOf(a) - rankOf(b)) : this.traces);
      this.names.textContent = files.map(({ name }) => name).join(", ");
    } catch (failure) {
      this.error.show(failure.message);
    }
  }

  // What is shown stays if the files cannot be drawn, as those of another version.
  draw(profile, traces) {
    const end = new AbortController();
    this.signal.addEventListener("abort", () => end.abort(), { signal: end.signal });
    const timeline = traces.length > 0 ? h("div", {}) : null;
    let boxes;
    try {
      boxes = profile ? profileBoxes(profile, timeline, end.signal) : h("div", { class: "boxes profile" }, timelineBox(timeline));
      if (timeline) drawTimeline(timeline, traces.map((trace, rank) => ({ trace, offset: profile?.ranks?.[rank]?.trace_offset_ms ?? 0 })), end.signal);
    } catch (failure) {
      end.abort();
      throw new Error(`This version cannot read these files as a profile: ${failure.message}`);
    }
    this.end?.abort();
    Object.assign(this, { end, profile, traces });
    replace(this.place, boxes);
  }
}

/** Shows files that the user opens until the signal is aborted. */
export function showProfileFiles(root, route, session, signal) {
  new ProfileFiles(root, signal);
}
