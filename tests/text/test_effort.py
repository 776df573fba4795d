"""What is trained where nobody names a model, and what its scores are."""

import numpy as np
import pytest
from scipy import sparse

from tailwise import (
    Bonsai,
    Calibrated,
    Centroid,
    Columns,
    JainPropensity,
    LabelMatcher,
    Popularity,
    PropensityReranker,
    Stacked,
    Tagger,
    TextFeatures,
    TextParts,
    Texts,
    Vocabulary,
)
from tailwise.by_size import BySize
from tailwise.errors import InvalidInput
from tailwise.text.effort import compose, have_names, plan_features, plan_model
from tailwise.text.rows import KnownLabels

NAMED = KnownLabels(["u:1", "u:2"], ["law", "fish"], sparse.csr_array((1, 2)))
BASE = BySize(one_vs_rest=Centroid(), tree=Popularity())


def kinds(model):
    """What the members of a stack are and read."""
    return [
        (type(one.model).__name__, one.group) if isinstance(one, Columns) else (type(one).__name__, None)
        for one in (model.members if isinstance(model, Stacked) else [model])
    ]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["law", "sea fish"], True),
        (["004.8", "12"], False),
        (["u:1", "http://x.org/a b"], True),
        (["u:1", "http://x.org/a"], False),
        (["law", "u:1"], False),
        (["", "?"], False),
    ],
)
def test_names_are_told_from_numbers_and_addresses(names, expected):
    assert have_names(NAMED._replace(names=names)) is expected


def test_features_by_effort():
    texts = Texts({"title": ["a"], "abstract": ["b"]})
    assert repr(plan_features("quick", texts, NAMED)) == "TextFeatures()"
    unnamed = NAMED._replace(names=["1", "2"])
    assert repr(plan_features("normal", texts, unnamed)) == "TextFeatures()"
    best = plan_features("best", texts, NAMED)
    assert [type(part).__name__ for part in best.parts] == ["TextFeatures"] * 3 + ["LabelMatcher"]
    assert best.parts[2].fields == {"title": 1.0}
    assert len(plan_features("best", ["a"], unnamed).parts) == 2
    given = TextParts([TextFeatures(2), LabelMatcher()])
    assert repr(plan_features("normal", texts, NAMED, given)) == repr(given), "names are looked for once"


@pytest.mark.parametrize(
    ("effort", "groups", "expected"),
    [
        ("quick", {"words": (0, 4)}, [("Centroid", None)]),
        ("normal", {"words": (0, 4)}, [("Centroid", None)]),
        ("normal", {}, [("Centroid", None)]),
        ("normal", {"words": (0, 2), "names": (2, 4)}, [("Centroid", "words"), ("MatchedNames", "names")]),
        ("best", {}, [("Centroid", None), ("NearestRows", None), ("Bonsai", None)]),
        (
            "best",
            {"words": (0, 1), "words 2": (1, 2), "title words": (2, 3), "names": (3, 4)},
            [
                ("Centroid", "words"),
                ("NearestRows", "words"),
                ("Bonsai", "words 2"),
                ("Centroid", "title words"),
                ("NearestRows", "title words"),
                ("MatchedNames", "names"),
            ],
        ),
    ],
)
def test_models_by_effort_and_columns(effort, groups, expected):
    X, Y = sparse.csr_array(np.ones((3, 4), np.float32)), sparse.csr_array(np.eye(3, dtype=np.float32))
    plan = plan_model(effort, X, Y, groups, base=BASE, random_state=0)
    assert kinds(plan.model) == expected
    assert plan.minutes >= 0 and plan.gigabytes > 0
    assert ("models are combined" in plan.reason) == (len(expected) > 1)


def test_quick_takes_a_tree_early():
    shape = (10**6, 4)
    X = sparse.csr_array((np.ones(10**6, np.float32), np.zeros(10**6, np.int32), np.arange(10**6 + 1)), shape=shape)
    Y = sparse.csr_array((np.ones(10**6, np.float32), np.arange(10**6) % 5000, np.arange(10**6 + 1)))
    model = plan_model("quick", X, Y, {}, base=BySize(max_minutes=10**6), random_state=0).model
    assert isinstance(model, Bonsai) and model.n_trees == 1


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, [Calibrated, Centroid]),
        ({"n_rows": 199}, [Centroid]),
        ({"calibrate": False}, [Centroid]),
        ({"tail": 0.5}, [PropensityReranker, Calibrated, Centroid]),
        ({"tail": 0.5, "calibrate": False}, [PropensityReranker, Centroid]),
    ],
)
def test_what_a_model_is_wrapped_in(how, expected):
    defaults = {"n_rows": 200, "effort": "normal", "calibrate": True, "tail": 0.0, "propensity": JainPropensity()}
    model = compose(Centroid(), **defaults | how, random_state=0)
    found = [type(model)]
    while hasattr(model, "model"):
        model = model.model
        found.append(type(model))
    assert found == expected


def make_texts(n=240, n_labels=12):
    rng = np.random.default_rng(0)
    own = rng.integers(0, n_labels, (n, 2))
    texts = [f"topic{a} word{b} filler{rng.integers(9)} topic{b}" for a, b in own]
    return texts, [sorted({f"u:{a}", f"u:{b}"}) for a, b in own]


def test_a_tagger_finds_names_and_gives_probabilities():
    texts, labels = make_texts()
    vocab = Vocabulary.from_names({f"u:{i}": f"Topic{i}" for i in range(15)}, "en")
    told = []
    tagger = Tagger(BySize(one_vs_rest=Centroid())).fit(
        texts, labels, vocab=vocab, on_step=lambda name, what: told.append(what)
    )
    assert kinds(tagger.model_) == [("Centroid", "words"), ("MatchedNames", "names")]
    assert "for effort normal" in told[1] and "CPU-minute" in told[1] and "GB of memory" in told[1]
    assert tagger.n_labels_ == 15 and tagger.scores_are_probabilities
    found = tagger.suggest(["of topic14", texts[0]], k=5)
    assert found[0][0].name == "Topic14", "no training row has it"
    assert all(0 <= s.score <= 1 for own in found for s in own)


def test_one_model_by_name_is_calibrated():
    texts, labels = make_texts()
    scores = Tagger("centroid").fit(texts, labels).predict_topk(texts, 3).scores
    assert scores.min() >= 0 and scores.max() <= 1
    assert not Tagger("centroid", calibrate=False).fit(texts, labels).scores_are_probabilities


@pytest.mark.parametrize(
    ("how", "message"),
    [({"effort": "fast"}, "effort='fast'"), ({"tail": 2}, "tail=2"), ({"calibrate": 1}, "calibrate=1")],
)
def test_wrong_settings_are_refused(how, message):
    with pytest.raises(InvalidInput, match=message):
        Tagger(**how).fit(["a"], [["b"]])
