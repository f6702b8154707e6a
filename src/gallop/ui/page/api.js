// The client of the server's API. Non-finite numbers, which JSON lacks, are strings: numberOf() reads both.

/** An error reported by the server, in one line. `status` is 0 if the server did not respond. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Dispatches "lost" when the server does not respond. */
export const connection = new EventTarget();

/** The URL of an API request; empty parameters are omitted. */
export function address(path, query = {}) {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
    .map(([name, value]) => `${name}=${encodeURIComponent(value === true ? 1 : value)}`);
  return `/api/${path}${pairs.length ? `?${pairs.join("&")}` : ""}`;
}

// The result of a call that waits for the server.
async function received(call) {
  try {
    return await call();
  } catch (error) {
    if (isAbort(error)) throw error;
    connection.dispatchEvent(new Event("lost"));
    throw new ApiError("the server does not respond", 0);
  }
}

async function jsonOf(response) {
  const answer = await response.json().catch((error) => {
    if (isAbort(error)) throw error;
    return {};
  });
  if (!response.ok) throw new ApiError(answer.error ?? `the server responded with status ${response.status}`, response.status);
  return answer;
}

async function ask(url, init) {
  return jsonOf(await received(() => fetch(url, init)));
}

/** A response that is a gzip file of JSON, a trace. */
export async function getCompressed(path, query, signal) {
  const response = await received(() => fetch(address(path, query), { signal }));
  if (!response.ok) await jsonOf(response); // Throws the server's error.
  const file = await received(() => response.blob());
  try {
    return await new Response(file.stream().pipeThrough(new DecompressionStream("gzip"))).json();
  } catch {
    throw new ApiError("the trace is damaged or incomplete", 422);
  }
}

export function get(path, query, signal) {
  return ask(address(path, query), { signal });
}

let session;

/** The server's session: token, version, folder, number of runs. */
export async function getSession(fresh = false) {
  if (!session || fresh) session = await get("session");
  return session;
}

/** Sends a POST request. After a restart the server has a new token, which is then fetched for one retry. */
export async function post(path, body) {
  for (const fresh of [false, true]) {
    const { token } = await getSession(fresh);
    try {
      return await ask(address(path), {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Gallop-Token": token },
        body: JSON.stringify(body),
      });
    } catch (error) {
      if (fresh || error.status !== 403) throw error;
    }
  }
}

const NOT_FINITE = { nan: NaN, infinity: Infinity, inf: Infinity, "-infinity": -Infinity, "-inf": -Infinity };

/**
 * Numbers overlapping requests so that outdated responses can be dropped. Each call of the result begins a request and
 * returns a function that reports whether it is still the newest.
 */
export function newestRequest() {
  let last = 0;
  return () => {
    const own = ++last;
    return () => own === last;
  };
}

/** A number in a response; NaN if it is none. */
export function numberOf(value) {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || value.trim() === "") return NaN;
  const name = value.toLowerCase();
  return Object.hasOwn(NOT_FINITE, name) ? NOT_FINITE[name] : Number(value);
}

/** Whether an error only reports that the request was aborted. */
export const isAbort = (error) => error.name === "AbortError";
