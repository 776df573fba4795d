// The page of a model: what it was trained on, and how good it is by the report's own parts.

import { get, project } from "./api.js";
import { $, announce, make } from "./dom.js";
import { currentModel, frame } from "./frame.js";
import { rarityIcon } from "./results.js";
import { translateReport } from "./report-words.js";
import { language, languageName, moment, number, t } from "./words.js";

let card = null;

function draw() {
  const { trained = {}, evaluation } = card;
  $("#name").textContent = card.name ?? card.id;
  document.title = `${card.name ?? card.id} · tailwise`;
  $("#what summary").textContent = card.model.split("(")[0];
  $("#what pre").textContent = card.model;
  const yes = (value) => t(value ? "yes_word" : "no_word");
  const facts = [
    ["fact_rows", trained.rows],
    ["fact_labels", trained.labels],
    ...Object.entries(trained.labels_by_rarity ?? {}).map(([rarity, n]) => [rarity === "tail" ? "tail_label" : rarity, n, rarityIcon(rarity)]),
    ["fact_per_row", trained.rows && number(trained.label_rows / trained.rows, { maximumFractionDigits: 1 })],
    ["fact_when", trained.when && moment(trained.when)],
    ["fact_effort", trained.effort],
    ["fact_columns", card.fields?.join(", ")],
    ["fact_features", trained.columns],
    ["fact_languages", card.languages?.map(languageName).join(", ")],
    ["fact_tail", yes(card.tail)],
    ["fact_learn", yes(card.learn)],
    ["fact_version", trained.tailwise_version],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "");
  $("#facts").replaceChildren(make("dl", { class: "facts" }, facts.map(([key, value, icon]) => make("div", {}, make("dt", {}, icon && [icon, " "], t(key)), make("dd", {}, typeof value === "number" ? number(value) : value)))));
  $("#evaluation").replaceChildren(...(evaluation ? judged(evaluation) : [make("p", {}, t("not_evaluated")), make("pre", { tabindex: 0 }, `tailwise report ${card.id} DATA -o report.html --keep`)]));
}

function judged({ data, rows, made, current, sections }) {
  const parts = sections.map(({ id, title, html }) => {
    const part = make("section", { id, "aria-labelledby": `${id}-h` }, make("h2", { id: `${id}-h` }, title));
    const content = new DOMParser().parseFromString(html, "text/html").body;
    part.append(...content.childNodes);
    if (language === "de") translateReport(part);
    return part;
  });
  return [make("p", { class: "soft" }, t("evaluated_on", { n: rows, data, when: moment(made) }), current ? null : make("strong", {}, ` ${t("not_current")}`)), ...parts];
}

document.addEventListener("language", () => card && draw());

async function begin() {
  const { projects } = await frame("model");
  card = await get(project(currentModel(projects), "card"));
  draw();
  document.body.dataset.ready = "yes";
}

begin().catch((error) => announce(error.message, true));
