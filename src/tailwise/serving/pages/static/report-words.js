// The report's texts in German: whole sentences, and patterns where they hold figures.

const GERMAN = {
  Metrics: "Kennzahlen",
  Calibration: "Kalibrierung",
  Coverage: "Abdeckung",
  Glossary: "Begriffe",
  metric: "Kennzahl",
  value: "Wert",
  head: "häufig",
  torso: "gelegentlich",
  tail: "selten",
  "in percent": "in Prozent",
  percent: "Prozent",
  score: "Wert",
  "score (not a probability)": "Wert (keine Wahrscheinlichkeit)",
  "share that is right": "Anteil der richtigen",
  "coverage, percent": "Abdeckung, Prozent",
  "mean score": "mittlerer Wert",
  right: "richtig",
  predictions: "Vorhersagen",
  "The numbers as a table": "Die Zahlen als Tabelle",
  "Bins of equal size": "Gruppen gleicher Größe",
  "Coverage@k, percent": "Abdeckung@k, Prozent",
  "Main metrics with their intervals": "Wichtigste Kennzahlen mit Intervallen",
  "The main metrics; the thin lines are the intervals.": "Die wichtigsten Kennzahlen; die dünnen Linien sind die Intervalle.",
  "Distinct labels found in some row's top k, of the distinct labels of these rows.": "Wie viele der verschiedenen Schlagwörter dieser Datensätze bei mindestens einem unter den ersten k stehen.",
  propensity: "Propensität",
  "head, torso, tail": "häufig, gelegentlich, selten",
  decile: "Dezil",
  interval: "Intervall",
  "Precision: how many of the first k labels of a row are right, on average.": "Präzision: wie viele der ersten k Schlagwörter eines Datensatzes im Mittel richtig sind.",
  "How many of a row's labels are among the first k, on average.": "Wie viele Schlagwörter eines Datensatzes im Mittel unter den ersten k stehen.",
  "The harmonic mean of precision and recall among the first k labels.": "Das harmonische Mittel von Präzision und Recall der ersten k Schlagwörter.",
  "Like precision, but a right label counts more the higher it stands.": "Wie Präzision, doch ein richtiges Schlagwort zählt umso mehr, je weiter oben es steht.",
  "Propensity-scored: a right label counts one over its propensity, so rare labels, which are missing from the records more often, count for more; relative to the best possible ranking of the recorded labels.":
    "Nach Propensität gewichtet: ein richtiges Schlagwort zählt eins durch seine Propensität, sodass seltene, die in den Datensätzen öfter fehlen, mehr zählen; im Verhältnis zur bestmöglichen Reihung der verzeichneten Schlagwörter.",
  "The chance that a label is recorded on a row to which it truly belongs; lower for rare labels.": "Die Wahrscheinlichkeit, dass ein zutreffendes Schlagwort auch verzeichnet ist; bei seltenen ist sie kleiner.",
  "How many of the labels that occur in these rows are found at least once among the first k.": "Wie viele der Schlagwörter dieser Datensätze mindestens einmal unter den ersten k gefunden werden.",
  "A tenth of the labels seen in training; the first holds the most frequent ones.": "Ein Zehntel der Schlagwörter aus dem Training; das erste enthält die häufigsten.",
  "Had other rows of the same kind been judged, the value would probably lie in it; of 100 such intervals about 95 hold the true value.":
    "Wären andere Datensätze derselben Art beurteilt worden, läge der Wert wahrscheinlich darin; von 100 solchen Intervallen enthalten etwa 95 den wahren Wert.",
};

const PATTERNS = [
  [/^([\d,]+) rows, ([\d,]+) labels$/, "$1 Datensätze, $2 Schlagwörter"],
  [/^\[(\d+)% interval: (.+) over rows\]$/, "[$1-%-Intervall: $2 über die Datensätze]"],
  [/^The top (\d+) predictions of every row, in bins by score\. Unobserved labels count as wrong, although some are missing labels\.$/, "Die ersten $1 Vorhersagen jedes Datensatzes, nach ihrem Wert gruppiert. Nicht verzeichnete Schlagwörter zählen als falsch, obwohl manche nur fehlen."],
  [/^(.+): expected calibration error ([\d.]+) points; the dashed line is perfect\.$/, "$1: mittlere Abweichung $2 Punkte; die gestrichelte Linie wäre vollkommen."],
  [/^(.+): its scores are not probabilities; the line shows what a score is worth\.$/, "$1: die Werte sind keine Wahrscheinlichkeiten; die Linie zeigt, was ein Wert bedeutet."],
  [/^Calibration of (.+)$/, "Kalibrierung von $1"],
  [/^Labels by the number of their training rows: head (\d+) and more, torso (\d+) to (\d+), tail fewer than (\d+)\.$/, "Schlagwörter nach der Zahl ihrer Trainingsdatensätze: häufig ab $1, gelegentlich $2 bis $3, selten unter $4."],
];

function german(text) {
  if (text in GERMAN) return GERMAN[text];
  for (const [pattern, replacement] of PATTERNS) if (pattern.test(text)) return text.replace(pattern, replacement);
  return null;
}

/** Writes the texts under `root` in German, as far as they are the report's. */
export function translateReport(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const said = german(walker.currentNode.data.trim());
    if (said !== null) walker.currentNode.data = said;
  }
  for (const element of root.querySelectorAll("[aria-label]")) {
    const said = german(element.getAttribute("aria-label"));
    if (said !== null) element.setAttribute("aria-label", said);
  }
}
