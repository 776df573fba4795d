"""A small library for the pages: eight subjects with names in two languages, records, a model, an audit."""

import random
from pathlib import Path

from tailwise.audit import Audit
from tailwise.audit.plan import Settings
from tailwise.audit.tagging import plan_for_tagger
from tailwise.data import Rows
from tailwise.experiments.report import CANDIDATES, kept
from tailwise.judging import judge
from tailwise.label_lists import indicator
from tailwise.text import Tagger
from tailwise.vocabulary import Vocabulary

SUBJECTS = {
    "fisheries": ("Fischerei", "639.2", 150, "fish trawler catch quota cod"),
    "law of the sea": ("Seerecht", "341.45", 60, "treaty sea court zone coast"),
    "marine ecology": ("Meeresökologie", "577.7", 25, "reef plankton habitat ocean fish"),
    "wine": ("Wein", "663.2", 110, "grape vineyard bottle cellar"),
    "taxation": ("Besteuerung", "336.2", 40, "tax duty revenue customs"),
    "whaling": ("Walfang", "639.28", 8, "whale harpoon blubber catch"),
    "lighthouses": ("Leuchttürme", "387.1", 6, "lighthouse lamp coast keeper"),
    "oysters": ("Austern", "639.4", 5, "oyster shell pearl reef"),
}
"""Names in English and in German, a notation, how many records have it, and the words that speak for it."""
TEXT = (
    "Cod and whales \U0001f40b in the law\nThe catch of a trawler, the quota for cod, a harpoon, blubber and the reef."
)


def uri(name: str) -> str:
    return f"http://example.org/{name.replace(' ', '-')}"


def make_records(seed: int) -> tuple[list[str], list[list[str]]]:
    """Texts with one or two subjects each."""
    rng = random.Random(seed)
    left = {name: facts[2] for name, facts in SUBJECTS.items()}
    texts, labels = [], []
    while left:
        chosen = rng.sample(sorted(left), min(len(left), rng.choice((1, 1, 2))))
        words = [word for name in chosen for word in rng.choices(SUBJECTS[name][3].split(), k=4)]
        rng.shuffle(words)
        texts.append(f"A study of {words[0]}\nOn {' and '.join(words)} in the year {rng.randint(1900, 2000)}.")
        labels.append([uri(name) for name in chosen])
        for name in chosen:
            left[name] -= 1
            if not left[name]:
                del left[name]
    return texts, labels


def make_world(folder: Path) -> Path:
    """Writes the model ``subjects``, judged on other records, and the audit ``check`` into ``folder``."""
    lines = (f"{uri(name)},{name},{german},{notation}" for name, (german, notation, _, _) in SUBJECTS.items())
    table = folder / "subjects.csv"
    table.write_text("\n".join(["uri,label_en,label_de,notation", *lines]), encoding="utf-8")
    texts, labels = make_records(0)
    tagger = Tagger("dismec", keep_training_data=True).fit(texts, labels, vocab=Vocabulary.read(table))
    tagger.save(folder / "subjects")
    texts, labels = make_records(1)
    Y, ids = indicator(labels)
    names = [one.rpartition("/")[2].replace("-", " ") for one in ids]
    rows = Rows("other records", texts, Y, ids, names)
    trial = judge({"subjects": tagger}, rows, CANDIDATES)
    kept.keep(trial, trial.models[0], folder / "subjects", 5)
    plan, origin = plan_for_tagger(tagger, rows, Settings(n_questions=20))
    Audit.create(folder / "check", plan, origin, texts).close()
    return folder
