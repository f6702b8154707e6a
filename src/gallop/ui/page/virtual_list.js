// A list of any length of which only the rows are made that can be seen.

import { h, oncePerFrame } from "./dom.js";

const BESIDE = 6; // Rows above and below the seen ones.

export class VirtualList {
  /**
   * `scroller` scrolls, `body` within it is as high as all rows. `render(element, item, index)` fills a row;
   * item is undefined where it is still to come. `headHeight`: of what covers the top of the scroller.
   */
  constructor({ scroller, body, rowHeight, headHeight, source, render }) {
    Object.assign(this, { scroller, body, rowHeight, headHeight, source, render });
    this.slots = []; // Elements, the row of index i in the slot i % slots.length.
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

  /** Fills every row again, as what it depends on besides its item has changed. */
  invalidate() {
    for (const slot of this.slots) slot.key = null;
    this.draw();
  }

  drawNow() {
    const { source, rowHeight, scroller, body } = this;
    const wanted = Math.ceil(scroller.clientHeight / rowHeight) + 2 * BESIDE + 1;
    if (this.slots.length < wanted) this.makeSlots(wanted);
    const first = Math.max(0, this.firstSeen() - BESIDE);
    source.need(first, first + wanted - 1);
    body.style.setProperty("height", `${source.length * rowHeight}px`);
    for (let index = first; index < first + this.slots.length; ++index) {
      const slot = this.slots[index % this.slots.length];
      const isThere = index < source.length;
      slot.element.hidden = !isThere;
      const item = isThere ? source.at(index) : undefined;
      if (!isThere || (slot.key !== null && slot.index === index && slot.key === item)) continue;
      slot.index = index;
      slot.key = item;
      slot.element.style.setProperty("transform", `translateY(${index * rowHeight}px)`);
      this.render(slot.element, item, index);
    }
  }

  makeSlots(count) {
    this.slots = Array.from({ length: count }, () => ({ element: h("div", { role: "row" }), index: -1, key: null }));
    this.body.replaceChildren(...this.slots.map((slot) => slot.element));
  }

  /** The element of a row; undefined where it is not made. */
  elementAt(index) {
    const slot = this.slots[index % this.slots.length];
    return slot?.index === index && !slot.element.hidden ? slot.element : undefined;
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
