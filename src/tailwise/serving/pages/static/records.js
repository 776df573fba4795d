// A record: its text, what the model suggests for it, and what the cataloguer decided.

import { post, project } from "./api.js";

/** A new record; `cells` is its line of a table, where it comes from one. */
export const newRecord = (text, cells = null) => ({
  text,
  cells,
  results: null, // what the model suggested, best first; null: nobody asked yet
  failed: null,
  added: new Map(), // labels by uri that the cataloguer added
  excluded: new Map(), // names by uri that must not be suggested
  decided: new Map(), // by uri, whether the cataloguer takes a label, whatever "how many" says
});

/** What is asked of the model beside the text. */
export class Settings {
  model = null;
  language = null;
  tail = null; // 0 to 1; null: as the model ranks
  howMany = "f1"; // "f1", "precision>=0.8", or a number
  shown = 10;

  get assign() {
    return Number.isNaN(Number(this.howMany)) ? this.howMany : null;
  }

  get limit() {
    return Math.max(this.shown, Number(this.howMany) || 0);
  }
}

/** Asks the model about a record and keeps the answer in it. */
export async function suggest(record, settings, options) {
  const { model, language, tail, assign, limit } = settings;
  const exclude = [...record.excluded.keys()];
  const body = { text: record.text, limit, language, tail, exclude, assign };
  try {
    const found = await post(project(model, "suggest"), body, options);
    record.results = found.results.map((item, rank) => ({ ...item, rank }));
    record.failed = null;
  } catch (error) {
    if (error.name !== "AbortError") record.failed = error.message;
    throw error;
  }
}

/** The labels that are shown: the cataloguer's own first. */
export const shownLabels = ({ added, results }) => [...added.values(), ...(results ?? []).filter(({ uri }) => !added.has(uri))];

/** Whether a label is taken: as decided, else as the model assigns it, or by its place. */
export function isTaken(record, item, settings) {
  const decided = record.decided.get(item.uri);
  if (decided !== undefined) return decided;
  if (item.added) return true;
  return settings.assign ? Boolean(item.assigned) : item.rank < Number(settings.howMany);
}

export const takenLabels = (record, settings) => shownLabels(record).filter((item) => isTaken(record, item, settings));

/** Adds a label from the vocabulary; one that is suggested already is taken. */
export function add(record, label) {
  record.excluded.delete(label.uri);
  record.decided.set(label.uri, true);
  if (!record.results?.some(({ uri }) => uri === label.uri)) record.added.set(label.uri, { ...label, added: true });
}

/** Excludes a label: the cataloguer's own is taken off, a suggested one is not suggested again. */
export function exclude(record, { uri, label, added }) {
  record.decided.delete(uri);
  record.added.delete(uri);
  if (!added) record.excluded.set(uri, label);
}
