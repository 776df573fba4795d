// Interface texts in English and German: `t("key", {n: 3})`, and elements that say which text they show (data-t).

import de from "./words-de.js";
import en from "./words-en.js";

const TEXTS = { en, de };
const KEPT = "tailwise-interface";
const ATTRIBUTES = ["aria-label", "placeholder", "title"];

const wished = localStorage.getItem(KEPT) || navigator.language.slice(0, 2);
export let language = wished in TEXTS ? wished : "en";

/** The text of a key; `n` picks the form for one or for many where there are two. */
export function t(key, values = {}) {
  let text = TEXTS[language][key] ?? en[key] ?? key;
  if (Array.isArray(text)) text = text[values.n === 1 ? 0 : 1];
  return text.replace(/\{(\w+)\}/g, (whole, name) => {
    const value = values[name] ?? whole;
    return typeof value === "number" ? number(value) : value;
  });
}

export const number = (value, options) => value.toLocaleString(language, options);

export const moment = (iso) => new Date(iso).toLocaleString(language, { dateStyle: "short", timeStyle: "short" });

/** A language's name in the language of the interface: "en" → "English". */
export function languageName(code) {
  try {
    return new Intl.DisplayNames([language], { type: "language" }).of(code);
  } catch {
    return code;
  }
}

/** Writes the texts of all elements that name one. */
export function translate(root = document) {
  document.documentElement.lang = language;
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const name of ATTRIBUTES)
    for (const element of root.querySelectorAll(`[data-t-${name}]`)) element.setAttribute(name, t(element.getAttribute(`data-t-${name}`)));
}

export const languages = Object.keys(TEXTS);

/** Changes the interface's language; pages that build texts themselves listen for "language". */
export function speak(code) {
  language = code;
  localStorage.setItem(KEPT, code);
  translate();
  document.dispatchEvent(new Event("language"));
}
