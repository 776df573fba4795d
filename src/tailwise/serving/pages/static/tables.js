// Reading dropped files: texts in any usual encoding, tables with any usual delimiter.

import { t } from "./words.js";

/** The text of a file: UTF-8, UTF-16 by its byte-order mark, else Windows' Latin. */
export async function readText(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const mark = (bytes[0] << 8) | bytes[1];
  if (mark === 0xfffe || mark === 0xfeff) return new TextDecoder(mark === 0xfffe ? "utf-16le" : "utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

export const isTable = (file) => /\.(csv|tsv|tab)$/i.test(file.name) || ["text/csv", "text/tab-separated-values"].includes(file.type);

/** {columns, rows} of delimited text with quotation marks; throws an Error that says what is wrong where. */
export function parseTable(text) {
  const first = text.slice(0, text.search(/[\r\n]|$/));
  const delimiter = ["\t", ";", ",", "|"].reduce((best, sign) => (first.split(sign).length > first.split(best).length ? sign : best), ",");
  const rows = split(text, delimiter).filter((cells) => cells.length > 1 || cells[0].trim());
  if (rows.length < 2) throw new Error(t("row_none"));
  const [columns, ...body] = rows;
  body.forEach((cells, place) => {
    if (cells.length > columns.length) throw new Error(t("row_short", { n: place + 1, found: cells.length, wanted: columns.length }));
    while (cells.length < columns.length) cells.push("");
  });
  return { columns: columns.map((name, place) => name.trim() || `${place + 1}`), rows: body };
}

function split(text, delimiter) {
  const rows = [[]];
  let line = 1;
  let place = 0;
  while (place < text.length) {
    let cell = "";
    if (text[place] === '"') {
      const opened = line;
      for (;;) {
        const end = text.indexOf('"', place + 1);
        if (end < 0) throw new Error(t("row_open_quote", { n: opened }));
        cell += text.slice(place + 1, end);
        place = end + 1;
        if (text[place] !== '"') break;
        cell += '"';
      }
      line += cell.split("\n").length - 1;
    }
    let end = place;
    while (end < text.length && text[end] !== delimiter && text[end] !== "\n" && text[end] !== "\r") end++;
    rows.at(-1).push(cell + text.slice(place, end));
    place = end;
    if (text[place] === delimiter) {
      place++;
      if (place === text.length || text[place] === "\n" || text[place] === "\r") rows.at(-1).push("");
    }
    if (text[place] === "\r" && text[place + 1] === "\n") place++;
    if (text[place] === "\n" || text[place] === "\r") {
      place++;
      line++;
      if (place < text.length) rows.push([]);
    }
  }
  return rows;
}

/** Which columns hold the text: the model's own, else text, title and the like, else the wordiest. */
export function textColumns({ columns, rows }, fields) {
  const places = (wanted) => wanted.map((name) => columns.findIndex((column) => column.toLowerCase() === name.toLowerCase())).filter((place) => place >= 0);
  for (const wanted of [fields, ["text"], ["title", "abstract", "description", "content"], ["titel", "zusammenfassung", "beschreibung", "inhalt"]]) {
    const found = places(wanted);
    if (found.length) return found;
  }
  const sample = rows.slice(0, 100);
  const wordy = columns.map((_, place) => sample.reduce((sum, cells) => sum + cells[place].length, 0));
  return [wordy.indexOf(Math.max(...wordy))];
}

/** The chosen columns of a row as one text, the first on a line of its own. */
export function textOf(cells, chosen) {
  const parts = chosen.map((place) => cells[place].trim()).filter(Boolean);
  return parts.map((part, place) => (place === 0 && parts.length > 1 ? part.replace(/\s+/g, " ") : part)).join("\n");
}
