// The runs selected for comparison, in the order of their selection.

const KEY = "gallop.chosen";
const names = new Set(JSON.parse(sessionStorage.getItem(KEY) ?? "[]"));

/** Dispatches "change". */
export const chosen = new EventTarget();

function changed() {
  sessionStorage.setItem(KEY, JSON.stringify([...names]));
  chosen.dispatchEvent(new Event("change"));
}

export const chosenNames = () => [...names];
export const isChosen = (name) => names.has(name);

export function choose(list, on = true) {
  const before = names.size;
  for (const name of list) {
    if (on) names.add(name);
    else names.delete(name);
  }
  if (names.size !== before) changed();
}

export function chooseNone() {
  names.clear();
  changed();
}
