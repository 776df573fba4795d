// The list of suggestions: one line a label, and how it moves when the ranking changes.

import { authority } from "./authorities.js";
import { make } from "./dom.js";
import { number, t } from "./words.js";

const BARS = { head: 3, torso: 2, tail: 1, unseen: 0 };
const SVG = "http://www.w3.org/2000/svg";

export const percent = (score) => (score > 0 && score < 0.01 ? "<1" : number(Math.round(100 * Math.min(1, Math.max(0, score)))));

/** How often labels came in training, as three small bars. */
export function rarityIcon(rarity) {
  const icon = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 14", width: 16, height: 14, "aria-hidden": "true", class: `rare-${rarity}` })) icon.setAttribute(key, value);
  for (let bar = 0; bar < 3; bar++) {
    const box = document.createElementNS(SVG, "rect");
    const height = 4 + 5 * bar;
    for (const [key, value] of Object.entries({ x: 6 * bar, y: 14 - height, width: 4, height, class: bar < BARS[rarity] ? "full" : "hollow" })) box.setAttribute(key, value);
    icon.append(box);
  }
  return icon;
}

const rarityName = (rarity) => t(rarity === "tail" ? "tail_label" : rarity);

/** How rare a label is: the bars, and the number of its training records. */
export function rarityMark({ rarity, count }) {
  const name = rarityName(rarity);
  const told = rarity === "unseen" ? name : t("rarity", { rarity: name, n: count });
  return make("span", { class: "rarity", "data-rarity": rarity, title: told }, rarityIcon(rarity), make("span", { class: "unseen" }, told), make("span", { "aria-hidden": "true" }, count === undefined ? "" : number(count)));
}

/** What the marks mean. */
export const rarityLegend = () => Object.keys(BARS).map((rarity) => make("span", {}, rarityIcon(rarity), " ", rarityName(rarity)));

function scoreBar(item) {
  if (item.score === undefined || item.score === null) return make("span", { class: "score own" }, t("yours"));
  const told = percent(item.score);
  const bar = make("span", { class: "bar-of", "aria-hidden": "true" }, make("span"));
  bar.firstChild.style.width = `${100 * Math.min(1, Math.max(0, item.score))}%`;
  return make("span", { class: "score" }, bar, make("span", { class: "percent", "aria-hidden": "true" }, told, " %"), make("span", { class: "unseen" }, t("probability", { percent: told })));
}

/** One suggestion; `on` has the functions take, explain and exclude. */
function suggestion(item, taken, open, on) {
  const { label, uri, notation } = item;
  const link = item.link || authority(uri).link;
  const box = make("input", { type: "checkbox", "aria-label": t("take", { label }), change: () => on.take(item, box.checked) });
  box.checked = taken;
  const facts = [notation && notation !== label && make("span", { class: "notation" }, notation), link ? make("a", { href: link, target: "_blank", rel: "noopener noreferrer", title: t("open_vocabulary", { label }) }, shorter(uri)) : uri !== label && make("span", {}, shorter(uri))];
  return make(
    "li",
    { "data-uri": uri, class: [taken && "taken", item.added && "added"].filter(Boolean).join(" ") || null },
    box,
    scoreBar(item),
    make("span", { class: "name" }, make("button", { type: "button", class: "label", "aria-expanded": String(open), title: t("explain", { label }), click: () => on.explain(item) }, label), make("span", { class: "facts" }, facts)),
    rarityMark(item),
    make("button", { type: "button", class: "quiet exclude", "aria-label": t("exclude", { label }), title: t("exclude_short"), click: () => on.exclude(item) }, "×"),
  );
}

const shorter = (uri) => uri.replace(/^https?:\/\/(www\.)?/, "");

/** Draws the list; lines that were there move to their new places, and the focus stays on its label. */
export function drawResults(list, items, isTaken, opened, on) {
  const focused = list.contains(document.activeElement) ? [document.activeElement.closest("li")?.dataset.uri, document.activeElement.className, document.activeElement.type] : null;
  const before = new Map([...list.children].map((line) => [line.dataset.uri, line.getBoundingClientRect().top]));
  list.replaceChildren(
    ...items.map((item, place) => {
      const line = suggestion(item, isTaken(item, place), opened?.uri === item.uri, on);
      if (opened?.uri === item.uri && opened.element) line.append(opened.element);
      return line;
    }),
  );
  if (focused) {
    const line = list.querySelector(`li[data-uri="${CSS.escape(focused[0] ?? "")}"]`);
    [...(line?.querySelectorAll("button, input, a") ?? [])].find((one) => one.className === focused[1] && one.type === focused[2])?.focus();
  }
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const line of list.children) {
    const from = before.get(line.dataset.uri);
    const moved = from === undefined ? 0 : from - line.getBoundingClientRect().top;
    if (moved) line.animate([{ transform: `translateY(${moved}px)` }, { transform: "none" }], { duration: 160, easing: "ease-out" });
  }
}

/** Arrow keys go from label to label; Space takes, X and Delete exclude. */
export function listKeys(list, on) {
  list.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const line = event.target.closest("li[data-uri]");
    const lines = [...list.querySelectorAll("li[data-uri]")];
    const go = (to) => to?.querySelector(".label").focus();
    const onLabel = event.target.classList.contains("label") || event.target.type === "checkbox" || event.target === list;
    if (event.key === "ArrowDown") go(lines[lines.indexOf(line) + 1]);
    else if (event.key === "ArrowUp") go(lines[lines.indexOf(line) - 1]);
    else if (event.key === "Home") go(lines[0]);
    else if (event.key === "End") go(lines.at(-1));
    else if (event.key === " " && event.target.classList.contains("label")) line.querySelector("input").click();
    else if ((event.key === "x" || event.key === "X" || event.key === "Delete") && line && onLabel) {
      const next = lines[lines.indexOf(line) + 1] ?? lines[lines.indexOf(line) - 1];
      go(next);
      on.exclude(line.dataset.uri);
    } else return;
    event.preventDefault();
  });
}
