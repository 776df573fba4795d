// Making and finding elements.

export const $ = (selector, root = document) => root.querySelector(selector);

/** An element with attributes (functions are listeners, false and null are left out) and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Runs `work` once calls have paused for `wait` milliseconds; `.now()` runs it at once. */
export function pausing(work, wait) {
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
  later.now = () => {
    clearTimeout(timer);
    return work();
  };
  return later;
}

/** Tells what happened, to eyes and to screen readers. */
export function announce(text, bad = false) {
  let place = $("#told");
  if (!place) {
    place = make("div", { id: "told", class: "told", role: "status", "aria-live": "polite" });
    document.body.append(place);
  }
  place.textContent = text;
  place.classList.toggle("bad", bad);
  place.classList.add("shown");
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => place.classList.remove("shown"), bad ? 8000 : 3000);
}

/** Whether a key belongs to a field that takes text, so that it is no command. */
export function isTyping(event) {
  const { target } = event;
  if (target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName)) return true;
  return target.tagName === "INPUT" && !["checkbox", "radio", "range", "file", "button"].includes(target.type);
}
