// Labels as other programs take them: a list, TSV, MARC 650 and 689 as MarcEdit writes them, JSON, cells of CSV.

import { authority } from "./authorities.js";

const line = (cells, separator) => cells.join(separator);
const oneLine = (text) => String(text ?? "").replace(/[\t\r\n]+/g, " ").trim();

/** A cell that a spreadsheet shows and does not compute. */
export const inert = (text) => (/^[=+\-@]/.test(text) ? `'${text}` : text);

const subfield = (code, text) => `$${code}${oneLine(text).replace(/[{}$]/g, (sign) => ({ "{": "{lcub}", "}": "{rcub}", $: "{dollar}" })[sign])}`;

function marc650({ label, uri }) {
  const { number, source, indicator } = authority(uri);
  return `=650  \\${indicator}${subfield("a", label)}${number ? subfield("0", number) : ""}${indicator === "7" ? subfield("2", source) : ""}`;
}

/** The sequence of headings (RSWK): the second indicator counts the places of a chain, the first the chains. */
function marc689({ label, uri }, place) {
  const { number, source } = authority(uri);
  return `=689  ${Math.floor(place / 10) % 10}${place % 10}${subfield("D", "s")}${subfield("a", label)}${number ? subfield("0", number) : ""}${source ? subfield("2", source) : ""}`;
}

const lines = (make) => (labels) => labels.map(make).join("\n");

export const FORMATS = {
  list: lines(({ label }) => oneLine(label)),
  tsv: lines(({ label, uri, notation, score }) => line([label, uri, notation, score?.toFixed(4)].map(oneLine).map(inert), "\t")),
  marc650: lines(marc650),
  marc689: lines(marc689),
  json: (labels) => JSON.stringify(labels.map(({ uri, label, notation, score, count, rarity }) => ({ uri, label, notation: notation ?? null, score: score ?? null, count, rarity })), null, 1),
};

const quoted = (cell) => (/[",;\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

/** Lines of cells as CSV in UTF-8 with a byte-order mark, by which spreadsheets know it. */
export const csv = (rows) => "\ufeff" + rows.map((cells) => cells.map((cell) => quoted(inert(String(cell)))).join(",")).join("\r\n") + "\r\n";

/** Puts text on the clipboard; also where the page is not served from a safe origin. */
export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed: the older way may be.
    }
  }
  const field = document.createElement("textarea");
  const focused = document.activeElement;
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}

/** Offers text as a file to keep. */
export function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
