// The editable tags and note of a run.

import { post } from "./api.js";
import { debounced, h, replace } from "./dom.js";
import { errorLine } from "./errors.js";

const SAVED_AFTER_MS = 600;

export class Labels {
  constructor(run) {
    this.run = run;
    this.saved = run.note;
    this.list = h("ul", { class: "tags", "aria-label": "Tags" });
    this.error = errorLine();
    this.status = h("span", { class: "muted", role: "status" });
    this.note = h("textarea", { id: "note", rows: 3, placeholder: "A note about this run", "aria-label": "Note", value: run.note });
    const save = debounced(SAVED_AFTER_MS, () => this.save());
    this.note.addEventListener("input", () => {
      this.status.textContent = "";
      save();
    });
    this.draw();
  }

  children() {
    const field = h("input", { type: "text", id: "tag", placeholder: "key=value", "aria-label": "New tag", autocomplete: "off" });
    const add = async (event) => {
      event.preventDefault();
      const [key, value = ""] = field.value.trim().split(/=(.*)/s);
      if (key && await this.setTag(key, value)) field.value = "";
    };
    return [this.list, h("form", { class: "add-tag", onsubmit: add }, field, h("button", { type: "submit" }, "Add tag")), this.note, this.status,
      this.error];
  }

  /** Shows changes by others, unless the user is editing. */
  update(run) {
    this.run = run;
    this.draw();
    if (document.activeElement === this.note || this.note.value !== this.saved) return;
    this.note.value = run.note;
    this.saved = run.note;
  }

  draw() {
    const tags = Object.entries(this.run.tags);
    if (String(tags) === this.shown) return;
    this.shown = String(tags);
    replace(this.list, tags.map(([key, value]) => h("li", {},
      h("span", { class: "ellipsis", title: value ? `${key}=${value}` : key }, key, value && [h("span", { class: "muted" }, "="), value]),
      h("button", { type: "button", class: "quiet", "aria-label": `Remove the tag ${key}`, onclick: () => this.setTag(key, null) }, "×"))));
  }

  /** A value of null removes the tag. */
  async setTag(key, value) {
    if (!await this.change("tag", { key, value })) return false;
    const { [key]: _, ...others } = this.run.tags;
    this.run.tags = value === null ? others : { ...others, [key]: value };
    this.draw();
    return true;
  }

  async save() {
    const text = this.note.value;
    if (text === this.saved || !await this.change("note", { text })) return;
    this.saved = text;
    this.status.textContent = "saved";
  }

  async change(what, body) {
    try {
      await post(what, { run: this.run.name, ...body });
      this.error.show("");
      return true;
    } catch (error) {
      this.error.show(error.message);
      return false;
    }
  }
}
