// Adding a label by a part of its name: a combobox over the vocabulary.

import { get, project } from "./api.js";
import { $, announce, make, pausing } from "./dom.js";
import { rarityMark } from "./results.js";
import { t } from "./words.js";

/** Looks labels up in the model that `asked()` names, {model, language}, and calls `chosen(label)`. */
export function typeahead(asked, chosen) {
  const field = $("#add");
  const list = $("#add-list");
  let found = [];
  let active = -1;
  let looking = null;

  const close = () => {
    list.hidden = true;
    found = [];
    active = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };
  const choose = (place) => {
    const label = found[place];
    if (!label) return;
    field.value = "";
    close();
    chosen(label);
  };
  const point = (place) => {
    active = found.length ? (place + found.length) % found.length : -1;
    [...list.children].forEach((option, i) => option.setAttribute("aria-selected", String(i === active)));
    if (active < 0) return field.removeAttribute("aria-activedescendant");
    field.setAttribute("aria-activedescendant", `add-${active}`);
    list.children[active].scrollIntoView({ block: "nearest" });
  };
  const look = pausing(async () => {
    const q = field.value.trim();
    looking?.abort();
    if (!q) return close();
    looking = new AbortController();
    const { model, language } = asked();
    const query = new URLSearchParams({ q, limit: "12", ...(language ? { language } : {}) });
    try {
      found = (await get(`${project(model, "labels")}?${query}`, { signal: looking.signal })).results;
    } catch (error) {
      if (error.name !== "AbortError") announce(error.message, true);
      return;
    }
    const options = found.map((label, place) =>
      make("li", { id: `add-${place}`, role: "option", "aria-selected": "false", mousedown: (event) => event.preventDefault(), click: () => choose(place) }, make("span", { class: "label" }, label.label), make("span", { class: "soft" }, label.notation ?? ""), rarityMark(label)),
    );
    list.replaceChildren(...(options.length ? options : [make("li", { role: "option", "aria-disabled": "true", "aria-selected": "false", class: "soft" }, t("nothing_found"))]));
    list.hidden = false;
    list.scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-expanded", "true");
    point(0);
  }, 120);

  field.addEventListener("input", look);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && list.hidden) look.now();
    else if (event.key === "ArrowDown") point(active + 1);
    else if (event.key === "ArrowUp" && !list.hidden) point(active - 1);
    else if (event.key === "Enter" && !list.hidden) choose(active);
    else if (event.key === "Escape" && (field.value || !list.hidden)) {
      field.value = "";
      close();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}
