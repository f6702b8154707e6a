// The spans of a trace in the Chrome trace event format, in lanes: a group for each thread of each rank, and a lane in
// it for each depth of nesting.

const THREAD_ORDER = ["main", "loader"];

/** "main", "loader 2" of "thread 1234 (main)" and the like. */
const kindOf = (name) => /\((.*)\)$/.exec(name)?.[1] ?? name;

function orderOf(kind) {
  const at = THREAD_ORDER.indexOf(kind);
  return at < 0 ? THREAD_ORDER.length : at;
}

// Lanes of a thread's spans; each span is within one of the lane above.
function lanesOf(spans) {
  spans.sort((a, b) => a.begin - b.begin || b.end - a.end);
  const open = [];
  const lanes = [];
  for (const span of spans) {
    while (open.length > 0 && open.at(-1).end <= span.begin) open.pop();
    (lanes[open.length] ??= []).push(span);
    open.push(span);
  }
  return lanes;
}

/**
 * `traces`: by rank, {trace, offset} with the offset in milliseconds. Returns {groups: [{label, lanes}], begin, end}; a
 * span is {name, begin, end, args, kind} in milliseconds.
 */
export function spansOf(traces) {
  const groups = [];
  let begin = Infinity, end = -Infinity;
  traces.forEach(({ trace, offset }, rank) => {
    const threads = new Map();
    for (const event of trace.traceEvents) {
      if (event.ph === "M" && event.name === "thread_name") threads.set(event.tid, { kind: kindOf(event.args.name), spans: [] });
      if (event.ph !== "X") continue;
      const from = event.ts / 1000 + offset;
      const span = { name: event.name, begin: from, end: from + event.dur / 1000, args: event.args ?? {}, kind: event.cat };
      threads.get(event.tid)?.spans.push(span);
      if (event.name.startsWith("ProfilerStep#")) {
        begin = Math.min(begin, span.begin);
        end = Math.max(end, span.end);
      }
    }
    const sorted = [...threads.values()].filter(({ spans }) => spans.length > 0).sort((a, b) => orderOf(a.kind) - orderOf(b.kind));
    const counts = new Map();
    for (const { kind, spans } of sorted) {
      const number = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, number);
      const isOne = sorted.filter((other) => other.kind === kind).length === 1;
      const label = isOne ? kind : `${kind} ${number}`;
      groups.push({ label: traces.length > 1 ? `rank ${rank} ${label}` : label, lanes: lanesOf(spans) });
    }
  });
  return { groups, begin, end };
}
