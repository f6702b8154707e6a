// Tabs: views of which one is visible.

import { h, replace } from "./dom.js";
import { amend } from "./routes.js";

export class Tabs {
  /** `views`: pairs of name and text, the first with an empty name. `show(name)` is called when the user switches. */
  constructor(views, show) {
    this.views = views;
    this.show = show;
    this.element = h("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  }

  /** A signal for the view that begins now, aborted with the page's `signal` or when the next view begins. */
  begin(signal) {
    this.end?.abort();
    const end = new AbortController();
    this.end = end;
    signal.addEventListener("abort", () => end.abort(), { signal: end.signal });
    return end.signal;
  }

  /** Activates a tab, also in the URL; returns its name, or that of the first tab for an unknown name. */
  select(wanted) {
    const name = this.views.some(([other]) => other === wanted) ? wanted : this.views[0][0];
    amend({ view: name });
    const hadFocus = this.element.contains(document.activeElement);
    replace(this.element, this.views.map(([other, text]) => h("button", {
      type: "button", role: "tab", "data-view": other, "aria-selected": String(other === name), tabindex: other === name ? 0 : -1,
      onclick: () => this.show(other), onkeydown: (event) => this.key(event, name),
    }, text)));
    const selected = this.element.querySelector("[aria-selected=true]");
    if (hadFocus) selected.focus();
    selected.scrollIntoView({ block: "nearest", inline: "nearest" });
    return name;
  }

  key(event, name) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = this.views.findIndex(([other]) => other === name);
    this.show(this.views[(at + step + this.views.length) % this.views.length][0]);
  }
}
