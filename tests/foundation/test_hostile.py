"""Models that lie: right digests, wrong contents. Each is refused by its class, or answers as models do."""

import os
import random
import signal
import time

import numpy as np
import pytest
from scipy import sparse

import tailwise
from drills import hostile
from drills.changes import one_nan, shuffled
from drills.forging import arrays_of, change_array, forge_value
from drills.judging import Judge
from drills.zoo import MODELS, OF_RUNS, PARTS, rows, saveable_classes
from tailwise import persistence
from tailwise.embedding.structures import Graph, most_levels
from tailwise.errors import ModelFileError
from tailwise.kernels.trees.chunks import BITMAP
from tailwise.persistence.saveable import is_abstract
from tailwise.trees.checks import check_chunks

FORGERIES = 25
NEEDS = {
    "GLaS": "torch",
    "BinaryNetwork": "torch",
    "XMLCNN": "torch",
    "AttentionXML": "torch",
    "Checkpoint": "torch",
    "SampledSoftmax": "faiss",
    "FaissIndex ivf": "faiss",
    "FaissIndex hnsw": "faiss",
}


@pytest.fixture(scope="module")
def judge():
    with Judge() as judge:
        yield judge


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("models"), {}

    def folder_of(name):
        if name in NEEDS:
            pytest.importorskip(NEEDS[name])
        if name not in made:
            made[name] = folder / name.replace(" ", "-")
            persistence.save(MODELS[name](), made[name])
        return made[name]

    return folder_of


@pytest.mark.parametrize("name", MODELS)
def test_forged_folders_are_refused_or_harmless(name, judge, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    outcome = hostile.of_class(name, FORGERIES, tmp_path, judge)
    assert outcome.passed, str(outcome)
    assert outcome.tried == FORGERIES and outcome.refused > FORGERIES / 2


def test_every_class_that_can_be_saved_is_there():
    concrete = {kind.__name__ for kind in saveable_classes() if not is_abstract(kind)} - {"Saveable", "Box"}
    assert concrete - {name.split()[0] for name in MODELS} == {*PARTS, *OF_RUNS}
    assert set(PARTS.values()) <= set(MODELS)
    for kind in saveable_classes():
        if kind.__name__ not in ("Saveable", "Box", "BySize", *OF_RUNS):
            assert kind._check_state is not persistence.Saveable._check_state, kind


def put(at, value):
    def change(array):
        changed = array.copy()
        changed.reshape(-1)[at] = value
        return changed

    return change


ARRAYS = [
    ("Popularity", "label_counts_", put(3, -1), r"label_counts_ holds -1"),
    ("Popularity", "label_counts_", lambda a: a[:-1], r"label_counts_ has shape \(11,\), not \(12\)"),
    ("Popularity", "ranking_", lambda a: np.repeat(a[:1], a.size), "ranking_ has a label twice"),
    ("Popularity", "frequency_", lambda a: a[::-1].copy(), "frequency_, read backwards, does not rise"),
    ("Centroid", "bias_", put(2, np.inf), "bias_ holds inf"),
    ("Centroid", "bias_", put(2, np.nan), "bias_ holds nan"),
    ("Centroid", "bias_", lambda a: a[:-1], "bias_ has shape"),
    ("Centroid", "weights_.data", put(0, np.nan), r"weights_.data holds nan"),
    ("NearestRows", "row_numbers_", lambda a: a[:-1], "neighbours_ has shape"),
    ("NearestRows", "labels_.data", put(0, 2), r"labels_.data holds 2.0"),
    ("DiSMEC", "weights_.data", lambda a: a.astype(float), r"weights_.data has dtype float64, not float32"),
    ("PWDiSMEC", "propensity_", put(0, 0), r"propensity of label 0 is 0, outside \(0, 1\]"),
    ("Parabel", "chunks_.roots", lambda a: a + 10**6, "roots holds 1000000"),
    ("Parabel", "chunks_.roots", lambda a: a[1:], "roots does not begin with node 0"),
    ("Parabel", "chunks_.target", put(0, 0), "target leads back up the tree"),
    ("Parabel", "chunks_.target", put(-1, -13), r"target holds -13 .* outside \[-12, "),
    ("Parabel", "chunks_.target", put(0, 2), "target leads to a node twice"),
    ("Parabel", "chunks_.bias", put(0, np.nan), "bias holds nan"),
    ("Parabel", "chunks_.scale", put(0, np.inf), "scale holds inf"),
    ("Parabel", "chunks_.first_edge", lambda a: a[::-1].copy(), "first_edge does not rise"),
    ("Parabel", "chunks_.weights", lambda a: a[:-1], "first_weight runs from 0"),
    ("FastXML", "forest_.children", put(0, 0), "children leads back up a tree"),
    ("FastXML", "forest_.children", put(1, -1), "children has a node with one child"),
    ("FastXML", "forest_.children", put(0, 10**6), "children holds 1000000"),
    ("FastXML", "forest_.leaf_labels", put(0, 12), "leaf_labels holds 12"),
    ("FastXML", "forest_.leaf_shares", put(0, 0), r"leaf_shares holds 0.0"),
    ("FastXML", "forest_.top_nodes", lambda a: a + 10**6, "top_nodes holds"),
    ("FastXML", "forest_.top_indptr", lambda a: a[:-1], "top_indptr has shape"),
    ("FastXML", "rows_.weights", put(0, np.nan), r"rows_.weights holds nan"),
    ("TailCentroids", "offsets_", put(1, -np.inf), "offsets_ holds -inf"),
    ("TailCentroids", "lengths_", put(1, np.inf), "lengths_ holds inf"),
    ("GLaS", "tower_.features", lambda a: a[:-1], "weights of layer 0 has shape"),
    ("GLaS", "tower_.biases.1", put(0, np.nan), "bias of layer 1 holds nan"),
    ("GLaS", "index_.labels_", put(-1, 12), r"labels_ of index_ holds 12"),
    ("GLaS", "index_.labels_", lambda a: a[::-1].copy(), "labels_ does not rise"),
    ("CPLST", "projection_", put(0, np.nan), "projection_ holds nan"),
    ("CPLST", "projection_", lambda a: a[:-1], r"projection_ has shape \(29, 3\), not \(30, any\)"),
    ("CPLST", "vectors_", lambda a: a[:, :-1].copy(), r"vectors_ has shape \(11, 3\), not \(11, 4\)"),
    ("CPLST", "vectors_", put(0, 1e30), r"vectors_ holds .*e\+30"),
    ("LEML", "objective_", put(0, np.inf), "objective_ holds inf"),
    ("MLCSSP", "chosen_", put(0, 12), "chosen_ holds 12"),
    ("MLCSSP", "chosen_", lambda a: a[:-1], r"chosen_ has shape \(2,\), not \(3\)"),
    ("CS", "vectors_", put(0, 5), "vectors_ has a vector that is not of unit length"),
    ("CS", "offset_", put(0, np.inf), "offset_ holds inf"),
    ("CS", "projection_", lambda a: a[:, :-1].copy(), r"projection_ has shape \(30, 5\), not \(30, 6\)"),
    ("LPSR", "partition_.centroids", put(0, np.nan), r"partition_.centroids holds nan"),
    ("LPSR", "partition_.offsets", lambda a: a[:-1], r"partition_.offsets has shape \(3,\), not \(4\)"),
    ("LPSR", "partition_.centroids", lambda a: a[:-1], r"partition_.centroids has shape \(29, 4\), not \(30, any\)"),
    ("SLEEC", "learners_.0.members", put(0, 80), "members holds 80"),
    ("SLEEC", "learners_.0.starts", lambda a: a[::-1].copy(), "starts does not rise"),
    ("SLEEC", "learners_.1.projections", put(0, np.nan), "projections holds nan"),
    ("SLEEC", "learners_.1.vectors", lambda a: a[:, :-1].copy(), r"vectors has shape \(80, 3\), not \(80, 4\)"),
    ("SLEEC", "labels_.data", put(0, 2), r"labels_.data holds 2.0"),
    ("RobustXML", "weights_.data", put(0, 1e30), r"weights_.data holds .*e\+30"),
    ("RobustXML", "bias_", put(2, np.inf), "bias_ holds inf"),
    ("RobustXML", "projection_", lambda a: a[:, :-1].copy(), r"weights_ has shape \(33, 12\), not \(32, 12\)"),
    ("FaissIndex ivf", "assigned", put(0, 4), "assigned holds 4"),
    ("FaissIndex ivf", "centroids", put(0, np.nan), "centroids holds nan"),
    ("FaissIndex hnsw", "neighbours", put(0, 40), "neighbours holds 40"),
    ("FaissIndex hnsw", "levels", put(0, 100), "levels holds 100"),
    ("PropensityReranker", "inverse_propensity_", put(0, np.inf), "inverse_propensity_ holds inf"),
    ("Calibrated", "curves_.0.scores", lambda a: a[::-1].copy(), "scores of a curve does not rise"),
    ("Calibrated", "curves_.0.probabilities", put(0, 2.0), r"probabilities of a curve holds 2.0"),
    ("Calibrated", "bin_edges_", put(0, np.nan), "bin_edges_ holds nan"),
    ("TailCalibrated", "surface_.scale", put(0, 0), "scale of a surface holds 0.0"),
    (
        "TailCalibrated",
        "surface_.coefficients",
        lambda a: a[:-1],
        r"coefficients of a surface has shape \(55,\), not \(56\)",
    ),
    ("TailCalibrated", "surface_.low", put(0, 1e9), "low of a surface is above its high"),
    ("TailCalibrated", "companions_.data", put(0, 2), r"companions_.data holds 2.0"),
    ("TailCalibrated nearest", "nearest_.rows.data", put(0, np.nan), r"nearest_.rows.data holds nan"),
    ("TailCalibrated nearest", "nearest_.idf", put(0, 0), r"nearest_.idf holds 0.0"),
    ("TailCalibrated nearest", "nearest_.lengths", lambda a: a[:-1], "nearest_.lengths has shape"),
    ("RankNet", "W2_", lambda a: a[:, :-1].copy(), "W2_ has shape"),
    ("RankNet", "gains_", put(0, np.nan), "gains_ holds nan"),
    ("TailAugmented", "tail_labels_", put(-1, 12), "tail_labels_ holds 12"),
    ("TailAugmented", "head_labels_", lambda a: a[:-1], r"head_ has \(features, labels\)"),
    ("Ensemble", "weights_", put(0, -1), r"weights_ holds -1.0"),
    ("Stacked", "trees_.left", put(0, 0), "left leads back up a tree"),
    ("Stacked", "trees_.right", put(0, -1), "right leads back up a tree"),
    ("Stacked", "trees_.split", put(0, 8), "split holds 8"),
    ("Stacked", "trees_.roots", put(0, -1), "roots holds -1"),
    ("Stacked", "trees_.value", put(0, np.nan), "value holds nan"),
    ("JainPropensity", "propensity_", put(0, 2), r"propensity of label 0 is 2, outside"),
    ("EstimatedPropensity", "fit_.rate", lambda a: a[:-1], r"frequency has shape \(3,\), not \(2\)"),
    ("TextFeatures", "idf_", put(0, np.nan), "idf_ holds nan"),
    ("TextFeatures", "hashes_", lambda a: a[:-1], "hashes_ has shape"),
    ("Tagger", "rarity_", put(0, 3), "rarity_ holds 3"),
    ("Tagger", "row_digests_", lambda a: a[::-1].copy(), "row_digests_ does not rise"),
]


@pytest.mark.parametrize(
    ("name", "part", "change", "message"), ARRAYS, ids=[" ".join((a, b, d)) for a, b, _, d in ARRAYS]
)
@pytest.mark.parametrize("verify", [True, False])
def test_a_class_refuses_an_array_by_name(name, part, change, message, verify, folders, tmp_path):
    path = hostile.copy_folder(folders(name), tmp_path / "m")
    change_array(path, next(file for file in arrays_of(path) if file[:-21].endswith(part)), change)
    with pytest.raises(ModelFileError, match=rf"holds an? \w+ that no fit could have left \({message}"):
        tailwise.load(path, verify=verify)


VALUES = [
    ("Popularity", ("state", "n_labels_"), 0, r"n_labels_=0 is outside \[1, "),
    ("Popularity", ("state", "n_labels_"), True, "n_labels_=True must be an integer"),
    ("Popularity", ("state", "n_features_in_"), 2**40, "n_features_in_=1099511627776 is outside"),
    ("Popularity", ("state", "predict_topk"), 3, "predict_topk is no fitted attribute"),
    ("Popularity", ("state", "rows_"), None, "rows_ is a NoneType, not a RowView"),
    ("Popularity", ("state", "feature_names_in_"), ["a"], "feature_names_in_ is a list, not an array"),
    ("Centroid", ("state", "weights_"), {"$": "dict", "items": {}}, "weights_ is a dict, not a csr_array"),
    ("Centroid", ("state", "rows_", "fields", "power"), -1, "rows_.power=-1 is outside"),
    ("Parabel", ("params", "beam"), 0, r"beam=0 is outside \[1, inf\)"),
    ("Parabel", ("state", "path_weight_"), -1, "path_weight_=-1"),
    ("FastXML", ("state", "forest_", "fields", "n_trees"), 10**6, "n_trees=1000000 is outside"),
    ("FastXML", ("state", "forest_", "fields", "n_top"), 2.0, "n_top=2.0 must be an integer"),
    ("PfastreXML", ("state", "forest_", "state"), {}, "this PfastXML is not fitted yet"),
    ("PropensityReranker", ("state", "tail_"), 1e9, "tail_=1000000000.0 makes infinite gains"),
    ("Sublinear", ("state", "base_"), 3, "base_ is a int, not a XMCModel"),
    ("Ensemble", ("state", "members_"), [], "members_ is empty"),
    ("Ensemble", ("state", "curves_"), [], "curves_ has 0 curves, not 2"),
    ("TailAugmented", ("state", "head_"), None, "head_ is a NoneType, not a XMCModel"),
    ("TradeOff", ("state", "curve_", "fields", "metrics"), ["p@1"], "values of curve_ has shape"),
    ("GLaS", ("state", "tower_", "fields", "relu"), [True], "relu has 1 layers, not 2"),
    ("BinaryNetwork", ("params", "hidden"), [7], "network_ has other layers"),
    ("TextFeatures", ("state", "groups_", "items", "words", "items"), [0, 1], "groups_ have 1 columns, not "),
    ("TextFeatures", ("params", "fields"), "separate", "fields_={} cannot be of fields='separate'"),
    ("TextFeatures", ("params", "stop_words"), [3], "an entry of stop_words is a int, not a str"),
    ("Tagger", ("state", "label_names_"), ["a"], "label_names_ has 1 entries, not 4"),
    ("Tagger", ("state", "label_ids_"), ["a"] * 4, "label_ids_ has an id twice"),
]


@pytest.mark.parametrize(
    ("name", "keys", "value", "message"), VALUES, ids=[" ".join((a, *b, d)) for a, b, _, d in VALUES]
)
def test_a_class_refuses_a_value_by_name(name, keys, value, message, folders, tmp_path):
    path = hostile.copy_folder(folders(name), tmp_path / "m")
    forge_value(path, keys, value)
    with pytest.raises(ModelFileError, match=rf"holds an? \w+ that no fit could have left \({message}"):
        tailwise.load(path)


def test_a_folder_holds_a_model(folders, tmp_path):
    path = hostile.copy_folder(folders("Popularity"), tmp_path / "m")
    forge_value(path, (), [1])
    with pytest.raises(ModelFileError, match="its model is a list, not a Saveable"):
        tailwise.load(path)


def test_no_model_is_of_an_abstract_class(folders, tmp_path):
    path = hostile.copy_folder(folders("Popularity"), tmp_path / "m")
    forge_value(path, ("class",), "tailwise.base:XMCModel")
    with pytest.raises(ModelFileError, match=r"tailwise\.base:XMCModel is abstract"):
        tailwise.load(path)


def test_parts_of_other_models_are_refused(folders, tmp_path):
    small = tailwise.Centroid().fit(np.eye(3), np.eye(3))
    for name in ("base_", "members_"):
        model = MODELS["Sublinear" if name == "base_" else "Ensemble"]()
        setattr(model, name, small if name == "base_" else [small, small])
        model.save(tmp_path / "m")
        with pytest.raises(ModelFileError, match=rf"{name}.* has \(features, labels\) = \(3, 3\), not \(30, 12\)"):
            tailwise.load(tmp_path / "m")


@pytest.fixture(scope="module")
def chunks():
    """Trees whose nodes have bitmaps, buckets, runs and full places: wide labels and labels of few features."""
    rng = np.random.default_rng(0)
    n, n_features, n_labels = 400, 20_000, 60
    Y = np.zeros((n, n_labels), np.float32)
    Y[np.arange(n), rng.integers(0, n_labels, n)] = 1
    X = np.zeros((n, n_features), np.float32)
    for row, label in enumerate(Y.argmax(axis=1)):
        own = 30 if label < 50 else 1800
        X[row, rng.choice(own, 20) + (label * 35 if label < 50 else 0)] = 1
    model = tailwise.Parabel(n_trees=2, max_leaf=16, random_state=0, n_jobs=1)
    model.fit(sparse.csr_array(X), sparse.csr_array(Y))
    return model.chunks_, n_features, n_labels


def test_trees_of_every_form_are_accepted(chunks):
    trees, *shape = chunks
    assert (trees.bits == BITMAP).any() and (trees.bits != BITMAP).any() and trees.runs.size
    check_chunks(trees, *shape)


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("bits", lambda a: np.where(a == BITMAP, a, 40).astype(np.uint8), "bits holds 40"),
        ("bits", lambda a: np.where(a == BITMAP, a, a + 1).astype(np.uint8), "other than 2\\^bits"),
        ("bits", lambda a: np.full_like(a, BITMAP), "first_word: a bitmap has other than 313 words"),
        ("words", put(312, 2**63), "words has a bit for a feature beyond 20,000"),
        ("words", lambda a: a ^ np.uint64(1), "ranks does not count"),
        ("ranks", put(0, 1), "ranks does not count"),
        ("directory", lambda a: a + np.uint32(1), "directory has a part"),
        ("directory", put(1, 2**31), "directory has a part"),
        ("features", put(0, 20_000), "features holds 20000"),
        ("runs", put(1, 2**31), "runs has a part"),
        ("runs", lambda a: a * np.uint32(2), "runs has a part"),
        ("first_run", lambda a: np.where(np.arange(a.size) > 0, a[-1], 0), "first_run: a node has neither"),
        ("first_weight", lambda a: a + (np.arange(a.size) == 1), "first_weight: a node has other|runs has a part"),
        (
            "first_weight",
            lambda a: np.where(np.arange(a.size) < a.size - 1, 0, a[-1]),
            "first_weight: a node has too few",
        ),
        ("first_feature", lambda a: np.where(np.arange(a.size) > 0, a[-1], 0), "first_feature|directory"),
        ("target", lambda a: np.where(a < 0, -1, a).astype(np.int32), "target has label 0 "),
    ],
)
def test_trees_that_kernels_could_not_trust(chunks, part, change, message):
    trees, *shape = chunks
    with pytest.raises(ValueError, match=message):
        check_chunks(trees._replace(**{part: change(getattr(trees, part))}), *shape)


def test_a_graph_leads_to_vectors_of_the_level_only():
    links, levels = 2, np.array([1, 2], np.int32)
    graph = Graph(levels, np.array([1, -1, -1, -1, 0, -1, -1, -1, -1, -1], np.int32), 1)
    graph.check(2, links)
    with pytest.raises(ValueError, match="leads to a vector that is not on the level"):
        graph._replace(neighbours=put(-1, 0)(graph.neighbours)).check(2, links)
    with pytest.raises(ValueError, match="entry=0 is not on the highest level"):
        graph._replace(entry=0).check(2, links)


def test_as_many_levels_as_faiss_has():
    faiss = pytest.importorskip("faiss")
    for links in (2, 3, 8, 10, 31, 32, 33, 64):
        index = faiss.IndexHNSWFlat(2, links, faiss.METRIC_INNER_PRODUCT)
        places = faiss.vector_to_array(index.hnsw.cum_nneighbor_per_level)
        assert places.tolist() == [0, *((level + 1) * links for level in range(1, most_levels(links) + 1))]


def test_the_judge_sees_crashes_hangs_and_wrong_answers(folders, tmp_path):
    good = folders("Centroid")
    with Judge() as judge:
        assert judge(good, good, verify=True) == ("intact", "")
        judge._process.kill()
        kind, why = judge(good, good, verify=True)
        assert kind == "broken" and signal.SIGKILL.name in why
        assert judge(good, good, verify=True) == ("intact", "")
        path = hostile.copy_folder(good, tmp_path / "m")
        change_array(path, next(n for n in arrays_of(path) if ".indices" in n), lambda a: np.zeros_like(a))
        assert judge(path, good, verify=False)[0] == "changed"
        began, judge.patience = time.monotonic(), 1.0
        os.kill(judge._process.pid, signal.SIGSTOP)
        kind, why = judge(good, good, verify=True)
        assert (kind, why) == ("broken", "no answer within 1 seconds") and time.monotonic() - began < 60


def test_changes_change():
    array = np.arange(5.0)
    assert np.isnan(one_nan(array, random.Random(0))).sum() == 1 and not np.isnan(array).any()
    assert sorted(shuffled(array, random.Random(1)).tolist()) == array.tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.__dict__.update(best_epoch_=7), r"best_epoch_=7 is outside \[0, 1\]"),
        (lambda made: made.__dict__.update(history_=[]), "history_ has 0 epochs, not 1"),
        (lambda made: made.best_.update(labels=made.best_["labels"][:-1]), "checkpoint's best_ is not of this run"),
        (
            lambda made: [part.pop("labels") for part in (made.parameters_, made.best_)],
            "checkpoint's parameters_ is not of this run",
        ),
        (lambda made: made.__dict__.pop("best_"), "best_ is a NoneType, not a dict"),
        (lambda made: [made.__dict__.pop(name) for name in list(made.__dict__) if name[-1] == "_"], "holds no epoch"),
        (lambda made: made.optimizer_.pop("steps"), "checkpoint's optimizer_ is not of this run"),
    ],
    ids=["epoch", "history", "best", "parameters", "no best", "nothing", "optimizer"],
)
def test_a_checkpoint_that_lies(change, message, tmp_path):
    pytest.importorskip("torch")
    X, Y = rows()
    run = {"dim": 4, "random_state": 0, "checkpoint": str(tmp_path / "c")}
    tailwise.GLaS(epochs=1, **run).fit(X, Y)
    made = persistence.load(tmp_path / "c")
    change(made)
    persistence.save(made, tmp_path / "c")
    with pytest.raises(ModelFileError, match=message):
        tailwise.GLaS(epochs=1, **run).fit(X, Y)
