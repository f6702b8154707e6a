// A virtualized list: only visible rows are rendered.

import { h, oncePerFrame } from "./dom.js";

const BESIDE = 6; // Extra rows above and below the visible ones.

export class VirtualList {
  /**
   * `scroller` scrolls; `body` within it is as high as all rows. `render(element, item, index)` fills a row; item is
   * undefined until it is loaded. `keyOf(item)` identifies items: a row that moves keeps its element, and an element
   * that is reused for another item is empty when it is passed to `render`. `headHeight`: height of what covers the top
   * of the scroller.
   */
  constructor({ scroller, body, rowHeight, headHeight, source, keyOf, render }) {
    Object.assign(this, { scroller, body, rowHeight, headHeight, source, keyOf, render });
    this.slots = []; // {element, index, item, key, isOld}
    this.shown = new Map(); // Slots by index.
    this.draw = oncePerFrame(() => this.drawNow());
    scroller.addEventListener("scroll", this.draw, { passive: true });
    this.observer = new ResizeObserver(this.draw);
    this.observer.observe(scroller);
  }

  get seenRows() {
    return Math.max(1, Math.floor((this.scroller.clientHeight - this.headHeight) / this.rowHeight));
  }

  firstSeen() {
    return Math.floor(this.scroller.scrollTop / this.rowHeight);
  }

  setSource(source) {
    this.source = source;
    this.drawNow();
  }

  /** Renders every row again, after a change of state outside the items. */
  invalidate() {
    for (const slot of this.slots) slot.isOld = true;
    this.draw();
  }

  drawNow() {
    const { source, rowHeight, scroller, body } = this;
    const wanted = Math.ceil(scroller.clientHeight / rowHeight) + 2 * BESIDE + 1;
    if (this.slots.length < wanted) this.makeSlots(wanted);
    const first = Math.max(0, this.firstSeen() - BESIDE);
    source.need(first, first + wanted - 1);
    body.style.setProperty("height", `${source.length * rowHeight}px`);
    const rows = [];
    for (let index = first; index < Math.min(first + this.slots.length, source.length); ++index) {
      const item = source.at(index);
      rows.push({ index, item, key: item === undefined ? index : this.keyOf(item) });
    }
    this.place(rows);
    for (const { index, item, key } of rows) {
      const slot = this.shown.get(index);
      if (slot.key !== key) slot.element.replaceChildren();
      else if (!slot.isOld && slot.index === index && slot.item === item) continue;
      Object.assign(slot, { index, item, key, isOld: false });
      slot.element.style.setProperty("transform", `translateY(${index * rowHeight}px)`);
      this.render(slot.element, item, index);
    }
  }

  // Gives each row the slot with its key, or an unused one.
  place(rows) {
    const known = new Map(this.slots.map((slot) => [slot.key, slot]));
    const free = new Set(this.slots);
    this.shown.clear();
    for (const { index, key } of rows) {
      const slot = known.get(key);
      if (free.delete(slot)) this.shown.set(index, slot);
    }
    for (const { index } of rows) {
      if (this.shown.has(index)) continue;
      const [slot] = free;
      free.delete(slot);
      this.shown.set(index, slot);
    }
    for (const slot of this.slots) slot.element.hidden = free.has(slot);
  }

  makeSlots(count) {
    this.slots = Array.from({ length: count }, () => ({ element: h("div", { role: "row" }), index: -1, key: null }));
    this.body.replaceChildren(...this.slots.map((slot) => slot.element));
  }

  /** The element of a row; undefined if it is not rendered. */
  elementAt(index) {
    return this.shown.get(index)?.element;
  }

  /** Scrolls as little as needed to show a row. */
  show(index) {
    const top = index * this.rowHeight;
    const height = this.scroller.clientHeight - this.headHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowHeight > this.scroller.scrollTop + height) {
      this.scroller.scrollTop = top + this.rowHeight - height;
    }
    this.drawNow();
  }

  close() {
    this.observer.disconnect();
  }
}
