// Texts of the filter language of `gallop runs list --filter`.

const NAMES_OF_ONE = 50;

/** A text in quotes. The language has no way to write one with both kinds of quotes: undefined. */
function quoted(text) {
  if (!text.includes('"')) return `"${text}"`;
  return text.includes("'") ? undefined : `'${text}'`;
}

/** A name as it stands in a formula. */
export function nameInFormula(column) {
  return /^[A-Za-z_][\w.]*$/.test(column) ? column : `\`${column}\``;
}

const isNumber = (text) => /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text);

/** Runs whose column has this value; empty: also those that have none, which are not even equal to themselves. */
export function equalTo(column, value) {
  const name = nameInFormula(column);
  if (value === null || value === undefined || value === "") return `(not (${name} == ${name}) or ${name} == "")`;
  const text = String(value);
  return `${name} == ${column !== "name" && isNumber(text) ? text : quoted(text) ?? '""'}`;
}

/** Those that two filters choose. */
export function both(one, other) {
  if (!one.trim() || !other.trim()) return one.trim() || other.trim();
  return `(${one}) and ${other}`;
}

/** Runs of these names. */
export function anyOf(names) {
  return names.map((name) => equalTo("name", name)).join(" or ");
}

/** Filters that choose the runs of these names between them, each short enough to be asked for. */
export function filtersOf(names) {
  const filters = [];
  for (let i = 0; i < names.length; i += NAMES_OF_ONE) filters.push(anyOf(names.slice(i, i + NAMES_OF_ONE)));
  return filters;
}
