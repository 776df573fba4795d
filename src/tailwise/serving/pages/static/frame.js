// What every page has: the bar on top, the interface's language, the list of keys.

import { ROOT, get } from "./api.js";
import { $, isTyping, make } from "./dom.js";
import { language, languages, speak, t, translate } from "./words.js";

/** Fills the bar; `here` is the page's name. Resolves to {projects, audits}. */
export async function frame(here) {
  translate();
  const [{ projects }, { audits }] = await Promise.all([
    get("v1/projects").catch(() => ({ projects: [] })),
    get("v1/audits").catch(() => ({ audits: [] })),
  ]);
  const draw = () => drawBar(here, projects, audits);
  draw();
  document.addEventListener("language", draw);
  return { projects, audits };
}

/** The model that is in use: the one of the address, else the one used last, else the first. */
export function currentModel(projects) {
  const asked = location.pathname.match(/\/models\/([^/]+)$/)?.[1];
  const wished = asked ? decodeURIComponent(asked) : new URLSearchParams(location.search).get("model") || sessionStorage.getItem("tailwise-model");
  return projects.find((project) => project.project_id === wished)?.project_id ?? (asked ? decodeURIComponent(asked) : projects[0]?.project_id);
}

function drawBar(here, projects, audits) {
  const model = currentModel(projects);
  const link = (name, path, key, more = "") =>
    make("li", {}, make("a", { href: new URL(path, ROOT), "aria-current": here === name ? "page" : null }, t(key), more));
  const links = [
    link("suggest", "", "suggest"),
    model && link("model", `models/${encodeURIComponent(model)}`, "model"),
    ...audits.map(({ id }) => {
      const item = link("review", `review/${encodeURIComponent(id)}`, "review", audits.length > 1 ? ` ${id}` : "");
      if (here === "review" && !location.pathname.endsWith(`/${encodeURIComponent(id)}`)) item.firstChild.removeAttribute("aria-current");
      return item;
    }),
    link("docs", "docs", "interface"),
  ];
  const chooser =
    here !== "review" &&
    projects.length > 1 &&
    make(
      "select",
      { id: "model", "aria-label": t("choose_model"), change: (event) => chooseModel(here, event.target.value) },
      projects.map(({ project_id: id, name }) => selected(make("option", { value: id }, name || id), id === model)),
    );
  const only = here !== "review" && projects.length === 1 && make("span", { class: "of" }, projects[0].name || projects[0].project_id);
  const tongue = make(
    "select",
    { id: "interface", "aria-label": t("choose_language"), change: (event) => speak(event.target.value) },
    languages.map((code) => selected(make("option", { value: code, lang: code }, { en: "English", de: "Deutsch" }[code]), code === language)),
  );
  const home = make("a", { class: "home", href: ROOT, "aria-label": "tailwise" }, make("img", { src: new URL("static/icon.svg", ROOT), alt: "", width: 20, height: 20 }), "tailwise");
  $("#bar").replaceChildren(home, ...(chooser || only ? [chooser || only] : []), make("nav", { "aria-label": t("main_menu") }, make("ul", {}, links)), make("span", { class: "spring" }), ...(here === "suggest" ? [make("button", { type: "button", class: "quiet", id: "help", click: showKeys }, t("keys"), " ", make("kbd", {}, "?"))] : []), tongue);
}

function selected(option, yes) {
  option.selected = yes;
  return option;
}

function chooseModel(here, id) {
  sessionStorage.setItem("tailwise-model", id);
  location.assign(here === "model" ? new URL(`models/${encodeURIComponent(id)}`, ROOT) : new URL(`?model=${encodeURIComponent(id)}`, ROOT));
}

const KEYS = [
  ["Ctrl + Enter", "key_suggest"],
  ["T", "key_text"],
  ["L", "key_results"],
  ["↑ ↓", "key_updown"],
  ["Space", "key_take"],
  ["Enter", "key_explain"],
  ["X", "key_exclude"],
  ["/", "key_add"],
  ["C", "key_copy"],
  ["[ ]", "key_slider"],
  ["Alt + ↑ ↓", "key_records"],
  ["Esc", "key_escape"],
  ["?", "key_help"],
];

/** Shows which keys there are. */
export function showKeys() {
  if ($("dialog[open]")) return;
  const rows = KEYS.map(([keys, what]) => [make("dt", {}, keys.split(" ").map((key) => (key === "+" ? " + " : make("kbd", {}, key)))), make("dd", {}, t(what))]);
  const dialog = make(
    "dialog",
    { "aria-labelledby": "keys-h", close: () => dialog.remove(), class: "keys" },
    make("form", { method: "dialog" }, make("h2", { id: "keys-h" }, t("keys")), make("dl", {}, rows), make("button", { class: "main", autofocus: true }, t("close"))),
  );
  document.body.append(dialog);
  dialog.showModal();
}

/** Calls `commands[key]` for keys that are not typed into a field; without modifiers, and not while a dialog is open. */
export function onKeys(commands) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event) || $("dialog[open]")) return;
    const command = commands[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!command || command(event) === false) return;
    event.preventDefault();
  });
}
