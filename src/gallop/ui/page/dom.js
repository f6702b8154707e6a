// Creates elements. All content becomes text nodes, never markup, so that names of runs cannot inject HTML.

const SVG = "http://www.w3.org/2000/svg";
const listening = new WeakSet(); // Elements with listeners.

function set(element, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name.startsWith("on")) {
    element.addEventListener(name.slice(2), value);
    listening.add(element);
  } else if (name === "style") {
    for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
  } else if (name === "value" || name === "checked" || name === "indeterminate") {
    element[name] = value;
  } else {
    element.setAttribute(name, value === true ? "" : value);
  }
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
}

/** An element: attributes by name, "onclick" and the like are listeners, `style` is an object of properties. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replaces the children of an element. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

// Attributes that identify what a click does: elements with different ones are different.
const MEANING = ["href", "aria-label", "data-key"];
const STATES = ["checked", "indeterminate"];

// Listeners close over data of their element, so that an element with listeners must be replaced.
function canStay(there, wanted) {
  if (there.nodeName !== wanted.nodeName) return false;
  if (there.nodeType !== Node.ELEMENT_NODE) return true;
  return !listening.has(there) && !listening.has(wanted) && MEANING.every((name) => there.getAttribute(name) === wanted.getAttribute(name));
}

function become(there, wanted) {
  if (there.nodeType !== Node.ELEMENT_NODE) {
    if (there.data !== wanted.data) there.data = wanted.data;
    return;
  }
  for (const { name } of [...there.attributes]) if (!wanted.hasAttribute(name)) there.removeAttribute(name);
  for (const { name, value } of wanted.attributes) {
    if (there.getAttribute(name) === value) continue;
    if (name === "style") there.style.cssText = value; // The content security policy forbids the attribute.
    else there.setAttribute(name, value);
  }
  for (const name of STATES) if (there[name] !== wanted[name]) there[name] = wanted[name];
  renewChildren(there, [...wanted.childNodes]);
}

function renewChildren(element, wanted) {
  const before = [...element.childNodes];
  for (const [i, child] of wanted.entries()) {
    if (i >= before.length) element.append(child);
    else if (canStay(before[i], child)) become(before[i], child);
    else before[i].replaceWith(child);
  }
  for (const child of before.slice(wanted.length)) child.remove();
}

/**
 * Like replace(), for repeated rendering: existing elements are kept and updated. If an element is removed between
 * press and release of a button, browsers do not report the click.
 */
export function renew(element, ...children) {
  const wanted = document.createDocumentFragment();
  append(wanted, children);
  renewChildren(element, [...wanted.childNodes]);
  return element;
}

/** Debounces a function. */
export function debounced(milliseconds, call) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
}

/** Calls before the next frame, once regardless of the number of requests. */
export function oncePerFrame(call) {
  let isQueued = false;
  return () => {
    if (isQueued) return;
    isQueued = true;
    requestAnimationFrame(() => {
      isQueued = false;
      call();
    });
  };
}

/** Calls with the content width of an element, now and whenever it changes. */
export function onWidth(element, signal, call) {
  let width = 0;
  const observer = new ResizeObserver(([{ contentRect }]) => {
    if (Math.abs(contentRect.width - width) < 1) return;
    width = contentRect.width;
    call(width);
  });
  observer.observe(element);
  signal.addEventListener("abort", () => observer.disconnect());
}

/** The <option> elements of a <select>: pairs of value and text. */
export function options(pairs, value) {
  return pairs.map(([name, text]) => h("option", { value: name, selected: name === value }, text));
}

/** A modal dialog. Escape, a click beside it or its button close it. */
export function dialog(title, ...children) {
  const element = h("dialog", { "aria-label": title, onclick: (event) => event.target === element && element.close() },
    h("div", { class: "dialog" },
      h("div", { class: "dialog-head" },
        h("h2", {}, title),
        h("button", { class: "quiet", type: "button", "aria-label": "Close", onclick: () => element.close() }, "×")),
      children));
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}
