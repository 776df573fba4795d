// A table of records: suggestions for every line, in the order of the lines, a few at a time.

import { $, announce, make } from "./dom.js";
import { csv, download } from "./formats.js";
import { newRecord, suggest, takenLabels } from "./records.js";
import { percent } from "./results.js";
import { textColumns, textOf } from "./tables.js";
import { number, t } from "./words.js";

const LINES = 50;
const AT_ONCE = 4;
const EXCERPT = 220;

/** The view of a table; `open(place)` shows one of its records. */
export class Sheet {
  constructor(file, table, fields, settings, open) {
    this.file = file;
    this.columns = table.columns;
    this.chosen = textColumns(table, fields);
    this.settings = settings;
    this.open = open;
    this.page = 0;
    this.records = table.rows.map((cells) => newRecord(textOf(cells, this.chosen), cells));
  }

  /** Asks about every record that has no answer to the present settings; a later call takes over. */
  async run() {
    this.stop();
    const { signal } = (this.running = new AbortController());
    for (const record of this.records) record.results = record.failed = null;
    this.draw();
    const waiting = this.records.values();
    const work = async () => {
      for (const record of waiting) {
        try {
          if (record.text) await suggest(record, this.settings, { signal, retries: 10 });
          else record.results = [];
        } catch (error) {
          if (error.name === "AbortError" || signal.aborted) return;
        }
        this.drawRecord(record);
        this.drawState();
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  stop() {
    this.running?.abort();
  }

  draw() {
    $("#table-h").textContent = t("table_of", { file: this.file, n: this.records.length });
    const boxes = this.columns.map((name, place) => {
      const box = make("input", { type: "checkbox", change: () => this.choose(place, box) });
      box.checked = this.chosen.includes(place);
      return make("label", { class: "knob" }, box, " ", name);
    });
    $("#column-boxes").replaceChildren(...boxes);
    const first = LINES * this.page;
    $("#table-rows").replaceChildren(...this.records.slice(first, first + LINES).map((record, place) => this.line(record, first + place)));
    const pages = Math.ceil(this.records.length / LINES);
    $("#pager").replaceChildren(
      ...(pages < 2 ? [] : Array.from({ length: pages }, (_, page) => make("button", { type: "button", class: "quiet", "aria-current": page === this.page ? "page" : null, click: () => this.turn(page) }, t("page_n", { first: LINES * page + 1, last: Math.min(LINES * (page + 1), this.records.length) })))),
    );
    this.drawState();
  }

  line(record, place) {
    const text = record.text.replace(/\s+/g, " ");
    const shown = text.length > EXCERPT ? `${text.slice(0, EXCERPT)} …` : text;
    return make(
      "tr",
      { "data-place": place, click: (event) => event.target.closest("button") || this.open(place) },
      make("td", {}, make("button", { type: "button", class: "quiet", "aria-label": t("open_row", { n: place + 1 }), click: () => this.open(place) }, number(place + 1))),
      make("td", { class: "text" }, shown),
      make("td", { class: "text" }, this.cell(record)),
    );
  }

  cell(record) {
    if (record.failed) return make("span", { class: "bad" }, record.failed);
    if (!record.results) return make("span", { class: "soft" }, "…");
    const taken = takenLabels(record, this.settings);
    return taken.length ? taken.map((item) => make("span", { class: "tag" }, item.label, item.score === undefined ? "" : make("small", {}, ` ${percent(item.score)} %`))) : make("span", { class: "soft" }, "–");
  }

  drawRecord(record) {
    const place = this.records.indexOf(record);
    const line = $(`#table-rows tr[data-place="${place}"]`);
    line?.lastChild.replaceChildren(...[this.cell(record)].flat());
  }

  drawState() {
    const done = this.records.filter(({ results }) => results).length;
    const failed = this.records.filter((record) => record.failed);
    $("#table-progress").value = (done + failed.length) / this.records.length;
    const told = [t("table_done", { done, n: this.records.length }), failed.length && t("table_failed", { n: failed.length, why: failed[0].failed })];
    $("#table-state").textContent = told.filter(Boolean).join(" · ");
  }

  choose(place, box) {
    const chosen = box.checked ? [...this.chosen, place].sort((a, b) => a - b) : this.chosen.filter((one) => one !== place);
    if (!chosen.length) {
      box.checked = true;
      return announce(t("no_columns"), true);
    }
    this.chosen = chosen;
    for (const record of this.records) record.text = textOf(record.cells, chosen);
    return this.run();
  }

  turn(page) {
    this.page = page;
    this.draw();
    $("#table-h").focus();
  }

  download() {
    const added = [t("csv_labels"), t("csv_ids"), t("csv_scores")];
    const lines = this.records.map((record) => {
      const taken = takenLabels(record, this.settings);
      return [...record.cells, taken.map(({ label }) => label).join("; "), taken.map(({ uri }) => uri).join("; "), taken.map(({ score }) => score?.toFixed(4) ?? "").join("; ")];
    });
    download(this.file.replace(/(\.\w+)?$/, ".labels.csv"), csv([[...this.columns, ...added], ...lines]));
  }
}
