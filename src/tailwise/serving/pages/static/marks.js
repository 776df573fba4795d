// The text and, behind it, the same text with marks where words spoke for a label.

import { $, make } from "./dom.js";

const LEVELS = 3;
const FAINT = 0.2; // of the strongest contribution; what is weaker is not marked

/** Places in UTF-16, as JavaScript counts, from places in code points, as the service does. */
export function utf16Places(text, wanted) {
  const places = new Map();
  const sorted = [...new Set(wanted)].sort((a, b) => a - b);
  let unit = 0;
  let point = 0;
  for (const stop of sorted) {
    while (point < stop && unit < text.length) {
      unit += text.codePointAt(unit) > 0xffff ? 2 : 1;
      point++;
    }
    places.set(stop, unit);
  }
  return places;
}

/** The largest contribution, for or against. */
export const strongestOf = (parts) => Math.max(...parts.map((part) => Math.abs(part.contribution)), 1e-12);

/** [{start, end, level}] without overlaps, in order: level 1 to 3 speaks for, -1 against; the strongest wins. */
export function markedRuns(text, parts) {
  const strongest = strongestOf(parts);
  const places = utf16Places(text, parts.flatMap((part) => part.spans.flat()));
  const levels = new Map();
  for (const { contribution, spans } of parts) {
    const level = contribution < 0 ? -1 : Math.max(1, Math.ceil((LEVELS * contribution) / strongest));
    for (const [from, to] of spans)
      for (let unit = places.get(from); unit < places.get(to); unit++) levels.set(unit, Math.max(levels.get(unit) ?? -2, level));
  }
  const runs = [];
  for (const unit of [...levels.keys()].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && last.end === unit && last.level === levels.get(unit)) last.end++;
    else runs.push({ start: unit, end: unit + 1, level: levels.get(unit) });
  }
  return runs;
}

/** Marks the parts of an explanation in the text; returns how many places. Without parts, unmarks. */
export function mark(parts = []) {
  const field = $("#text");
  const text = field.value;
  const strongest = strongestOf(parts.filter((part) => part.spans?.length));
  const runs = markedRuns(text, parts.filter((part) => part.spans?.length && Math.abs(part.contribution) >= FAINT * strongest));
  const pieces = [];
  let done = 0;
  for (const { start, end, level } of runs) {
    pieces.push(text.slice(done, start), make("mark", { class: level < 0 ? "against" : `for${level}` }, text.slice(start, end)));
    done = end;
  }
  $("#mirror").replaceChildren(...(runs.length ? [...pieces, text.slice(done), "\n"] : []));
  align();
  const first = $("#mirror mark");
  if (first && (first.offsetTop < field.scrollTop || first.offsetTop > field.scrollTop + field.clientHeight - 20)) field.scrollTop = Math.max(0, first.offsetTop - 60);
  return runs.length;
}

/** Keeps the marks under their words when the text is scrolled. */
export function align() {
  $("#mirror").scrollTop = $("#text").scrollTop;
}
