// Sources of rows for a VirtualList. A source has `length`, at(index) (undefined if not loaded yet), need(first, last),
// rows(first, last, signal), which also loads, refresh(), and dispatches "change" and "error" (detail: the error).

import { isAbort } from "./api.js";

// The new items; unchanged ones are the previous objects, so that they are not redrawn.
function kept(before, items) {
  if (!before) return items;
  return items.map((item, i) => (before[i] && JSON.stringify(before[i]) === JSON.stringify(item) ? before[i] : item));
}

/** Rows that are fetched page by page. `fetchPage(offset, limit, signal)` resolves to {total, items, ...}. */
export class PagedSource extends EventTarget {
  constructor(fetchPage, pageSize = 100) {
    super();
    this.fetchPage = fetchPage;
    this.pageSize = pageSize;
    this.length = 0;
    this.isLoaded = false;
    this.answer = null;
    this.pages = new Map(); // By number: {items, isStale}.
    this.pending = new Set(); // Pages in flight, and those that failed.
    this.abort = new AbortController();
  }

  at(index) {
    return this.pages.get(Math.floor(index / this.pageSize))?.items[index % this.pageSize];
  }

  need(first, last) {
    const end = Math.max(first, Math.min(last, this.isLoaded ? this.length - 1 : last));
    for (let page = Math.floor(first / this.pageSize); page <= Math.floor(end / this.pageSize); ++page) {
      const known = this.pages.get(page);
      if ((!known || known.isStale) && !this.pending.has(page)) this.load(page);
    }
  }

  /** Resolves to all rows of a range; those that are not loaded or outdated are fetched. */
  async rows(first, last, signal) {
    const itemsOf = async (page) => {
      const known = this.pages.get(page);
      return known && !known.isStale ? known.items : (await this.fetchPage(page * this.pageSize, this.pageSize, signal)).items;
    };
    const pages = [];
    for (let page = Math.floor(first / this.pageSize); page * this.pageSize <= last; ++page) pages.push(itemsOf(page));
    const begin = first % this.pageSize;
    return (await Promise.all(pages)).flat().slice(begin, begin + last + 1 - first);
  }

  async load(page) {
    const { signal } = this.abort;
    this.pending.add(page);
    try {
      const answer = await this.fetchPage(page * this.pageSize, this.pageSize, signal);
      if (signal.aborted) return;
      this.pages.set(page, { items: kept(this.pages.get(page)?.items, answer.items), isStale: false });
      this.length = answer.total;
      this.isLoaded = true;
      this.answer = answer;
      this.pending.delete(page);
      this.dispatchEvent(new CustomEvent("change", { detail: { page } }));
    } catch (error) {
      if (!isAbort(error)) this.dispatchEvent(new CustomEvent("error", { detail: error }));
    }
  }

  /** Current pages are shown until the new ones arrive. */
  refresh() {
    this.abort.abort();
    this.abort = new AbortController();
    this.pending.clear();
    for (const page of this.pages.values()) page.isStale = true;
  }

  close() {
    this.abort.abort();
  }

  /** The index of a loaded row; -1 if there is none. */
  indexOf(matches) {
    for (const [page, { items, isStale }] of this.pages) {
      if (isStale) continue;
      const index = items.findIndex(matches);
      if (index >= 0) return page * this.pageSize + index;
    }
    return -1;
  }
}

/**
 * Expandable groups: a row {group} for each, and the rows of `makeSource(group)` below it while it is expanded.
 * `fetchGroups(signal)` resolves to a list of {value, count, runs}.
 */
export class GroupedSource extends EventTarget {
  constructor(fetchGroups, makeSource) {
    super();
    this.fetchGroups = fetchGroups;
    this.makeSource = makeSource;
    this.groups = [];
    this.open = new Map(); // Sources of expanded groups, by value.
    this.isLoaded = false;
    this.isStale = true;
    this.abort = new AbortController();
  }

  get length() {
    return this.groups.reduce((sum, group) => sum + 1 + this.rowsOf(group), 0);
  }

  rowsOf(group) {
    const source = this.open.get(group.value);
    if (!source) return 0;
    return source.isLoaded ? source.length : group.count;
  }

  // Yields for each expanded group: (group, its row, its source).
  *parts() {
    let row = 0;
    for (const group of this.groups) {
      const count = this.rowsOf(group);
      yield { group, row, count, source: this.open.get(group.value) };
      row += 1 + count;
    }
  }

  at(index) {
    for (const { group, row, count, source } of this.parts()) {
      if (index === row) return { group, isOpen: Boolean(source) };
      if (index <= row + count) return source.at(index - row - 1);
    }
    return undefined;
  }

  need(first, last) {
    if (this.isStale) this.load();
    for (const { row, count, source } of this.parts()) {
      const begin = Math.max(first - row - 1, 0);
      const end = Math.min(last - row - 1, count - 1);
      if (source && begin <= end) source.need(begin, end);
    }
  }

  async rows(first, last, signal) {
    const parts = [...this.parts()].map(({ group, row, count, source }) => {
      const begin = Math.max(first - row - 1, 0);
      const end = Math.min(last - row - 1, count - 1);
      return [first <= row && row <= last ? { group } : [], source && begin <= end ? source.rows(begin, end, signal) : []];
    });
    return (await Promise.all(parts.flat())).flat();
  }

  async load() {
    const { signal } = this.abort;
    this.isStale = false;
    try {
      this.groups = await this.fetchGroups(signal);
      this.isLoaded = true;
      this.dispatchEvent(new CustomEvent("change", { detail: {} }));
    } catch (error) {
      if (!isAbort(error)) this.dispatchEvent(new CustomEvent("error", { detail: error }));
    }
  }

  toggle(group) {
    const source = this.open.get(group.value);
    if (source) {
      source.close();
      this.open.delete(group.value);
    } else {
      const made = this.makeSource(group);
      for (const kind of ["change", "error"]) {
        made.addEventListener(kind, ({ detail }) => this.dispatchEvent(new CustomEvent(kind, { detail })));
      }
      this.open.set(group.value, made);
    }
    this.dispatchEvent(new CustomEvent("change", { detail: {} }));
  }

  refresh() {
    this.abort.abort();
    this.abort = new AbortController();
    this.isStale = true;
    for (const source of this.open.values()) source.refresh();
  }

  close() {
    this.abort.abort();
    for (const source of this.open.values()) source.close();
  }

  indexOf(matches) {
    for (const { group, row, source } of this.parts()) {
      if (matches({ group })) return row;
      const index = source ? source.indexOf(matches) : -1;
      if (index >= 0) return row + 1 + index;
    }
    return -1;
  }
}
