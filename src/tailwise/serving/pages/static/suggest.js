// The page at "/": a text or a table of texts on one side, suggestions on the other.

import { get, post, project } from "./api.js";
import { $, announce, make, pausing } from "./dom.js";
import { explanation } from "./explaining.js";
import { FORMATS, copyText } from "./formats.js";
import { currentModel, frame, onKeys, showKeys } from "./frame.js";
import { align, mark } from "./marks.js";
import { Settings, add, exclude, isTaken, newRecord, shownLabels, suggest, takenLabels } from "./records.js";
import { drawResults, listKeys, rarityLegend } from "./results.js";
import { Sheet } from "./sheet.js";
import { isTable, parseTable, readText } from "./tables.js";
import { typeahead } from "./typeahead.js";
import { language, languageName, number, t } from "./words.js";

const NUMBERS = [1, 3, 5, 10, 20];
const LIVE = 200_000; // characters up to which suggestions follow while typing
const KEPT = { text: "tailwise-text", format: "tailwise-format", names: "tailwise-names", howMany: "tailwise-how-many" };

const settings = new Settings();
let card = null;
let record = newRecord("");
let sheet = null;
let opened = null; // {uri, element} of the explained label
let asking = null;

const field = $("#text");

async function ask() {
  asking?.abort();
  const mine = (asking = new AbortController());
  const about = record;
  if (!record.text.trim()) {
    record.results = null;
    return draw();
  }
  $("#results").setAttribute("aria-busy", "true");
  try {
    await suggest(about, settings, { signal: mine.signal });
  } catch (error) {
    if (error.name !== "AbortError" && !mine.signal.aborted) announce(error.message, true);
    return undefined;
  } finally {
    if (asking === mine) $("#results").removeAttribute("aria-busy");
  }
  if (about === record) draw();
  return undefined;
}

const askSoon = pausing(ask, 350);
const askLive = pausing(() => (sheet && !$("#table-view").hidden ? sheet.run() : ask()), 40);

function draw() {
  const items = shownLabels(record);
  if (opened && !items.some(({ uri }) => uri === opened.uri)) unmark();
  drawResults($("#results"), items, (item) => isTaken(record, item, settings), opened, on);
  const asked = Boolean(record.text.trim());
  $("#empty").hidden = items.length > 0;
  $("#legend").hidden = !items.length;
  $("#empty").textContent = t(!asked ? "empty" : record.results ? "none_found" : "working");
  $("#more").hidden = !record.results || record.results.length < settings.limit;
  $("#excluded").hidden = !record.excluded.size;
  $("#excluded-list").replaceChildren(
    ...[...record.excluded].map(([uri, label]) => make("button", { type: "button", class: "tag", "aria-label": t("restore", { label }), title: t("restore", { label }), click: () => restore(uri) }, label, " ↺")),
  );
  drawText();
  drawCopy();
}

function drawText() {
  const words = record.text.trim() ? record.text.trim().split(/\s+/).length : 0;
  const hint = card?.fields?.length > 1 ? t("fields_hint", { field: card.fields[0] }) : "";
  const told = [words && t("words", { n: words }), hint, record.text.length >= LIVE && t("long_text")];
  $("#text-state").textContent = told.filter(Boolean).join(" · ");
  $("#clear").hidden = !record.text;
}

function drawCopy() {
  const taken = takenLabels(record, settings);
  $("#taken").textContent = t("taken", { n: taken.length });
  $("#copy").disabled = !taken.length;
  $("#preview-text").textContent = taken.length ? FORMATS[$("#format").value](taken) : t("nothing_to_copy");
}

const on = {
  take(item, yes) {
    record.decided.set(item.uri, yes);
    draw();
  },
  async explain(item) {
    if (opened?.uri === item.uri) {
      unmark();
      return draw();
    }
    const mine = (opened = { uri: item.uri, element: make("p", { class: "why soft" }, t("working")) });
    mark();
    draw();
    try {
      const element = await explanation(settings.model, record.text, item.uri, settings.language);
      if (opened !== mine) return undefined;
      mine.element = element;
    } catch (error) {
      if (opened === mine) unmark();
      announce(error.message, true);
    }
    return draw();
  },
  exclude(which) {
    const item = shownLabels(record).find(({ uri }) => uri === (which.uri ?? which));
    if (!item) return;
    exclude(record, item);
    announce(t("was_excluded", { label: item.label }));
    draw();
    ask();
  },
};

function unmark() {
  opened = null;
  mark();
}

function restore(uri) {
  record.excluded.delete(uri);
  draw();
  ask();
  $("#results").focus();
}

function chosen(label) {
  add(record, label);
  announce(t("added", { label: label.label }));
  draw();
}

async function copy() {
  const taken = takenLabels(record, settings);
  if (!taken.length) return announce(t("nothing_to_copy"), true);
  const done = await copyText(FORMATS[$("#format").value](taken));
  if (!done) $("#preview").open = true;
  return announce(done ? t("copied", { n: taken.length }) : t("copy_failed"), !done);
}

/** Shows a record: its text on the left, its labels on the right. */
function show(which) {
  asking?.abort();
  record = which;
  unmark();
  field.value = record.text;
  field.scrollTop = 0;
  $("#table-view").hidden = true;
  $("#desk").hidden = false;
  $(".labels .head").after($("#knobs"));
  const place = sheet?.records.indexOf(record) ?? -1;
  $("#steps").hidden = place < 0;
  if (place >= 0) {
    $("#step-place").textContent = t("step_place", { place: place + 1, n: sheet.records.length });
    $("#step-back").disabled = place === 0;
    $("#step-on").disabled = place === sheet.records.length - 1;
  }
  draw();
  if (record.text && !record.results) ask();
}

function step(by) {
  const to = sheet?.records[sheet.records.indexOf(record) + by];
  if (to) show(to);
  return Boolean(to);
}

function showTable() {
  $("#desk").hidden = true;
  $("#table-view").hidden = false;
  $("#table-view .head").after($("#knobs"));
  sheet.draw();
  $("#table-h").focus();
}

function closeTable() {
  sheet.stop();
  sheet = null;
  show(newRecord(""));
  field.focus();
}

async function read(file) {
  const text = await readText(file);
  if (!text.trim()) return announce(t("empty_file", { file: file.name }), true);
  sheet?.stop();
  if (!isTable(file)) {
    sheet = null;
    return show(newRecord(text));
  }
  try {
    sheet = new Sheet(file.name, parseTable(text), card.fields ?? [], settings, (place) => show(sheet.records[place]));
  } catch (error) {
    return announce(t("no_csv", { file: file.name, why: error.message }), true);
  }
  showTable();
  return sheet.run();
}

function typed() {
  record.text = field.value;
  if (record.text.length < LIVE) sessionStorage.setItem(KEPT.text, record.text);
  if (opened) {
    unmark();
    draw();
  }
  drawText();
  if (record.text.length < LIVE) askSoon();
}

function setUpText() {
  field.addEventListener("input", typed);
  field.addEventListener("scroll", align);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) askSoon.now();
    else if (event.key === "Escape") $("#results").focus();
    else return;
    event.preventDefault();
  });
  $("#clear").addEventListener("click", () => {
    sessionStorage.removeItem(KEPT.text);
    show(newRecord(""));
    field.focus();
  });
  $("#file").addEventListener("change", ({ target }) => {
    if (target.files.length) read(target.files[0]);
    target.value = "";
  });
  let depth = 0;
  const over = (by) => (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    depth = Math.max(0, depth + by);
    $("#drop").hidden = depth === 0;
  };
  addEventListener("dragenter", over(1));
  addEventListener("dragleave", over(-1));
  addEventListener("dragover", over(0));
  addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    depth = 0;
    $("#drop").hidden = true;
    if (!file) return;
    event.preventDefault();
    read(file);
  });
}

function setUpKnobs() {
  const tail = $("#tail");
  const told = () => tail.setAttribute("aria-valuetext", t("tail_value", { percent: Math.round(100 * tail.value) }));
  tail.addEventListener("input", () => {
    settings.tail = Number(tail.value);
    told();
    askLive();
  });
  told();
  $("#how-many").addEventListener("change", ({ target }) => {
    settings.howMany = target.value;
    localStorage.setItem(KEPT.howMany, target.value);
    askLive();
  });
  $("#names").addEventListener("change", ({ target }) => {
    settings.language = target.value;
    localStorage.setItem(KEPT.names, target.value);
    unmark();
    askLive();
  });
  $("#more").addEventListener("click", () => {
    settings.shown += 10;
    ask();
  });
  $("#format").addEventListener("change", ({ target }) => {
    localStorage.setItem(KEPT.format, target.value);
    drawCopy();
  });
  $("#copy").addEventListener("click", copy);
  $("#table-close").addEventListener("click", closeTable);
  $("#to-table").addEventListener("click", showTable);
  $("#download").addEventListener("click", () => sheet.download());
  $("#step-back").addEventListener("click", () => step(-1));
  $("#step-on").addEventListener("click", () => step(1));
  $("#similar").addEventListener("toggle", drawSimilar);
  listKeys($("#results"), on);
  typeahead(() => settings, chosen);
}

async function drawSimilar() {
  const place = $("#similar-list");
  if (!$("#similar").open) return place.replaceChildren();
  if (!record.text.trim()) return place.replaceChildren(make("p", { class: "soft" }, t("empty")));
  try {
    const { results } = await post(project(settings.model, "similar"), { text: record.text, limit: 5 });
    return place.replaceChildren(...results.map(({ text, labels }) => make("blockquote", {}, make("p", {}, text), make("p", {}, labels.map(({ label }) => make("span", { class: "tag" }, label))))));
  } catch (error) {
    return place.replaceChildren(make("p", { class: "soft" }, error.message));
  }
}

function option(value, text, chosen) {
  const made = make("option", { value }, text);
  made.selected = value === chosen;
  return made;
}

/** Fills the choices, in the language of the interface. */
function drawKnobs() {
  const ways = [...(card.assign ? [["f1", t("take_f1")], ["precision>=0.8", t("take_sure")]] : []), ...NUMBERS.map((n) => [String(n), t("take_n", { n })])];
  if (!ways.some(([value]) => value === settings.howMany)) settings.howMany = card.assign ? "f1" : "5";
  $("#how-many").replaceChildren(...ways.map(([value, text]) => option(value, text, settings.howMany)));
  $("#names").replaceChildren(...(card.languages ?? []).map((code) => option(code, languageName(code), settings.language)));
  $("#legend").replaceChildren(t("legend"), " ", ...rarityLegend());
  $("#names-knob").hidden = (card.languages ?? []).length < 2;
  $("#tail-knob").hidden = !card.tail;
  $("#similar").hidden = !card.similar;
  const format = $("#format").value || localStorage.getItem(KEPT.format) || "list";
  $("#format").replaceChildren(...Object.keys(FORMATS).map((name) => option(name, t(`format_${name}`), name in FORMATS ? format : "list")));
}

onKeys({
  "/": () => $("#add").focus(),
  "?": showKeys,
  t: () => field.focus(),
  l: () => ($("#results .label") ?? $("#results")).focus(),
  c: copy,
  "[": () => slide(-1),
  "]": () => slide(1),
  Escape: () => {
    if (!opened) return false;
    unmark();
    draw();
    return true;
  },
});

function slide(by) {
  if (!card?.tail) return;
  $("#tail").value = Number($("#tail").value) + by * 0.1;
  $("#tail").dispatchEvent(new Event("input"));
}

document.addEventListener("keydown", (event) => {
  if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key) || $("#desk").hidden) return;
  if (sheet) {
    step(event.key === "ArrowUp" ? -1 : 1);
    event.preventDefault();
  }
});

document.addEventListener("language", () => {
  if (!card) return;
  drawKnobs();
  if (opened) unmark();
  if (sheet && !$("#table-view").hidden) sheet.draw();
  else show(record);
});

async function begin() {
  const { projects } = await frame("suggest");
  settings.model = currentModel(projects);
  if (!settings.model) return announce(t("no_models"), true);
  card = await get(project(settings.model, "card"));
  document.title = `${card.name ?? card.id} · tailwise`;
  const names = [localStorage.getItem(KEPT.names), language];
  settings.language = names.find((code) => card.languages?.includes(code)) ?? card.languages?.[0] ?? null;
  settings.howMany = localStorage.getItem(KEPT.howMany) || "f1";
  drawKnobs();
  setUpKnobs();
  setUpText();
  show(newRecord(field.value || sessionStorage.getItem(KEPT.text) || ""));
  document.body.dataset.ready = "yes";
  return undefined;
}

begin().catch((error) => announce(error.message, true));
