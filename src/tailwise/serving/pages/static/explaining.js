// Why a label was suggested: the words are marked in the text, and all that spoke for it stands below its name.

import { post, project } from "./api.js";
import { make } from "./dom.js";
import { mark, strongestOf } from "./marks.js";
import { t } from "./words.js";

const HARDLY = 0.02; // of the strongest contribution; what is weaker is not told
const GROUPS = [
  ["word", "why_words"],
  ["name", "why_names"],
  ["neighbour", "why_neighbours"],
  ["other", "why_other"],
];

/** The explanation of a label as an element; marks the words. */
export async function explanation(model, text, uri, language) {
  const { parts } = await post(project(model, "explain"), { text, uri, language, limit: 12 });
  const strongest = strongestOf(parts);
  const marked = mark(parts);
  const groups = GROUPS.map(([kind, key]) => [key, kind, parts.filter((part) => part.part === kind && Math.abs(part.contribution) >= HARDLY * strongest)]).filter(([, , found]) => found.length);
  return make(
    "div",
    { class: "why" },
    make("p", { class: "soft" }, marked ? t("why_marked", { n: marked }) : t("why_nothing")),
    groups.map(([key, kind, found]) => [make("h3", {}, t(key)), make("ul", { class: kind }, found.map((part) => reason(part, strongest)))]),
  );
}

function reason({ text, contribution }, strongest) {
  const meter = make("span", { class: "meter", "aria-hidden": "true" }, make("span"));
  meter.firstChild.style.width = `${(100 * Math.abs(contribution)) / strongest}%`;
  const against = contribution < 0;
  return make("li", { class: against ? "against" : null, title: contribution.toPrecision(3) }, meter, make("span", {}, text, against ? make("small", {}, ` ${t("against")}`) : null));
}
