// Asks the server. Numbers that JSON has not come as texts: numberOf() reads both.

/** What the server says is wrong, in one line. `status` is 0 where it did not answer. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Tells of "lost" when the server does not answer. */
export const connection = new EventTarget();

/** The address of an answer; what is empty is left out. */
export function address(path, query = {}) {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false)
    .map(([name, value]) => `${name}=${encodeURIComponent(value === true ? 1 : value)}`);
  return `/api/${path}${pairs.length ? `?${pairs.join("&")}` : ""}`;
}

async function ask(url, init) {
  let response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    connection.dispatchEvent(new Event("lost"));
    throw new ApiError("the server does not answer", 0);
  }
  const answer = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return {};
  });
  if (!response.ok) throw new ApiError(answer.error ?? `the server answers ${response.status}`, response.status);
  return answer;
}

export function get(path, query, signal) {
  return ask(address(path, query), { signal });
}

let session;

/** What the server says of itself: token, version, folder, number of runs. */
export async function getSession(fresh = false) {
  if (!session || fresh) session = await get("session");
  return session;
}

/** Changes something. A server that was started again has another token: that is asked for once more. */
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

/** A number of an answer; NaN where it is none. */
export function numberOf(value) {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || value.trim() === "") return NaN;
  return NOT_FINITE[value.toLowerCase()] ?? Number(value);
}

/** Whether an error only says that the answer is no longer awaited. */
export const isAbort = (error) => error.name === "AbortError";
