"""Models by name, and the one that is chosen by size."""

import numpy as np
import pytest
from sklearn.base import clone

import tailwise
from tailwise.by_size import BySize
from tailwise.errors import InvalidInput
from tailwise.models import make_model, model_class, model_names, name_of, plain_name
from tailwise.text import TextFeatures

TEXTS, LABELS = ["tax law", "sea fish", "fish law"], [["law"], ["fish"], ["law", "fish"]]


def test_every_name_leads_to_its_class_and_back():
    for name in model_names():
        cls = model_class(name)
        assert name_of(cls.__name__) == name
        assert model_class(name.upper().replace("-", "_")) is cls
        assert issubclass(cls, tailwise.XMCModel)


def test_an_unknown_model_is_answered_with_a_near_one():
    with pytest.raises(InvalidInput, match=r"model 'centroyd' is not known; did you mean 'centroid'\? Choose auto, "):
        model_class("centroyd")


def test_a_model_is_made_with_its_own_defaults():
    assert make_model("parabel", n_trees=1).get_params() == tailwise.Parabel(n_trees=1).get_params()
    assert [type(member).__name__ for member in make_model("stacked").members][:2] == ["DiSMEC", "PWDiSMEC"]
    assert plain_name("PPD-Sparse") == plain_name("ppd_sparse") == "ppdsparse"


def test_small_data_get_one_classifier_a_label_and_large_ones_a_tree():
    small, large = BySize().for_size(1000, 100, 10_000), BySize().for_size(10**7, 10**6, 10**9)
    assert (type(small.model).__name__, type(large.model).__name__) == ("DiSMEC", "Parabel")
    assert small.reason.startswith("1,000 rows, 100 labels")
    assert "under a CPU-minute" in small.reason
    assert "would take 361 CPU-hours" in large.reason and large.minutes > 1000 * small.minutes
    assert type(BySize(max_minutes=0).for_size(1000, 100, 10_000).model).__name__ == "Parabel"


@pytest.mark.parametrize("model", [None, "auto", BySize(), "dismec"])
def test_a_tagger_takes_a_name_or_chooses(model):
    tagger = tailwise.Tagger(model, effort="quick", features=TextFeatures(min_df=1)).fit(TEXTS, LABELS)
    assert type(tagger.model_).__name__ == "DiSMEC"


def test_the_choice_is_made_among_the_models_given_and_told(tmp_path):
    told = []
    model = BySize(one_vs_rest=tailwise.Popularity(), tree=tailwise.Centroid(), max_minutes=0)
    tagger = clone(tailwise.Tagger(model, effort="quick", features=TextFeatures(min_df=1)))
    tagger.fit(TEXTS, LABELS, on_step=lambda name, what: told.append((name, what)))
    assert type(tagger.model_).__name__ == "Centroid"
    assert [name for name, _ in told] == ["text features", "training", "training"]
    assert told[0][1] == "turning 3 texts into features"
    assert told[1][1].startswith("chose Centroid() for effort quick. 3 rows, 2 labels")
    assert told[2][1] == "training Centroid() on 3 rows, 4 features, 2 labels"
    tagger.save(tmp_path / "m")
    assert tailwise.load(tmp_path / "m").suggest(["sea"])[0] == tagger.suggest(["sea"])[0]


def test_text_features_are_refused_for_numeric_rows():
    with pytest.raises(InvalidInput, match="is for texts, but rows of X were given"):
        tailwise.Tagger(features=TextFeatures()).fit(np.eye(2), [["a"], ["b"]])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("dismek", "did you mean 'dismec'"),
        (7, "model=7 is not a tailwise model"),
        (BySize(max_minutes=-1), "max_minutes=-1"),
        (BySize(tree=tailwise.Parabel(n_trees=0)), "n_trees=0"),
        (tailwise.DiSMEC(C=-1), "C=-1"),
    ],
)
def test_a_wrong_model_is_refused_before_texts_are_read(model, message):
    class Unread(list):
        def __iter__(self):
            raise AssertionError("the texts were read")

    with pytest.raises(InvalidInput, match=message):
        tailwise.Tagger(model).fit(Unread(TEXTS), LABELS)
