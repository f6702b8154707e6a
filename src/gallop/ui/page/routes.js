// URLs within the page: "#/compare?runs=a,b&view=scatter".

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Parses to {path, query}; the values of the query are lists of strings. */
export function parse(hash) {
  const [path, rest = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  const query = {};
  for (const pair of rest.split("&").filter(Boolean)) {
    const [name, value = ""] = pair.split(/=(.*)/s);
    query[decoded(name)] = value.split(",").filter(Boolean).map(decoded);
  }
  return { path, query };
}

/** The first value of a name. */
export const one = (query, name, otherwise = "") => query[name]?.[0] ?? otherwise;

/** The inverse of parse(); empty values are omitted. */
export function link(path, query = {}) {
  const pairs = Object.entries(query)
    .map(([name, value]) => [name, [value].flat().filter((text) => text !== undefined && text !== null && text !== "")])
    .filter(([, list]) => list.length > 0)
    .map(([name, list]) => `${name}=${list.map((text) => encodeURIComponent(text)).join(",")}`);
  return `#/${path}${pairs.length ? `?${pairs.join("&")}` : ""}`;
}

/** Changes parts of the current URL without a history entry. */
export function amend(changes) {
  const { path, query } = parse(location.hash);
  history.replaceState(null, "", link(path, { ...query, ...changes }));
}

export const runLink = (name) => link("run", { name });
export const sweepLink = (name) => link("sweep", { name });
export const searchLink = (name) => link("search", { name });
