// Formulas in the filter language of `gallop runs list --filter`.

const NAMES_OF_ONE = 50;

/** A quoted string; undefined for one with both kinds of quotes, which the language cannot express. */
function quoted(text) {
  if (!text.includes('"')) return `"${text}"`;
  return text.includes("'") ? undefined : `'${text}'`;
}

/** A name in a formula, quoted if needed. */
export function nameInFormula(column) {
  return /^[A-Za-z_][\w.]*$/.test(column) ? column : `\`${column}\``;
}

// Numbers that the server compares as such, unlike "+5" and those that are too large.
const isNumber = (text) => /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text) && Number.isFinite(Number(text));

/** Runs with this value in a column; an empty value also matches runs without one, which do not equal themselves. */
export function equalTo(column, value) {
  const name = nameInFormula(column);
  if (value === null || value === undefined || value === "") return `(not (${name} == ${name}) or ${name} == "")`;
  const text = String(value);
  return `${name} == ${column !== "name" && isNumber(text) ? text : quoted(text) ?? '""'}`;
}

/** The conjunction of two filters. */
export function both(one, other) {
  if (!one.trim() || !other.trim()) return one.trim() || other.trim();
  return `(${one}) and ${other}`;
}

/** Runs with these names. */
export function anyOf(names) {
  return names.map((name) => equalTo("name", name)).join(" or ");
}

/** Filters that together match the runs with these names, each short enough for a request. */
export function filtersOf(names) {
  const filters = [];
  for (let i = 0; i < names.length; i += NAMES_OF_ONE) filters.push(anyOf(names.slice(i, i + NAMES_OF_ONE)));
  return filters;
}
