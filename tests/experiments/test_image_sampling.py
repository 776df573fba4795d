"""The experiment ``images``: profiles, files, balanced errors, and a small run of it."""

import io
import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch

from tailwise.errors import DataFormatError, InvalidInput
from tailwise.experiments import image_sampling
from tailwise.experiments.catalogue import load_experiment
from tailwise.experiments.image_sampling import BASE, CONTENDERS, balanced_errors
from tailwise.experiments.long_tail_images import (
    cut_to_profile,
    load_image_set,
    profile_counts,
    shift_and_flip,
)
from tailwise.experiments.running import run_experiment

PIL = pytest.importorskip("PIL.Image")


def test_the_profiles_have_their_ratio():
    exp, step = (profile_counts(name, 10, 1000, 10) for name in ("exp", "step"))
    assert exp.tolist() == [1000, 599, 359, 215, 129, 77, 46, 28, 17, 10]
    assert step.tolist() == [1000] * 5 + [10] * 5
    with pytest.raises(InvalidInput, match="profile='log' is not one of 'exp', 'step'"):
        profile_counts("log", 10, 1000, 10)


def test_images_are_cut_to_the_profile():
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat([0, 1, 2], [8, 20, 12]))
    counts = np.array([10, 5, 2])
    kept = cut_to_profile(labels, counts, rng, shuffled=False)
    assert np.bincount(labels[kept]).tolist() == [2, 10, 5] and (np.diff(kept) > 0).all()
    many = [tuple(np.bincount(labels[cut_to_profile(labels, counts, rng, shuffled=True)])) for _ in range(40)]
    assert {tuple(sorted(kept)) for kept in many} == {(2, 5, 10), (2, 5, 8)} and len(set(many)) > 4


def test_images_move_by_whole_pixels():
    images = torch.arange(2 * 3 * 4 * 4, dtype=torch.float32).reshape(2, 3, 4, 4) + 1
    assert (shift_and_flip(0, False)(images, np.random.default_rng(0)) == images).all()
    seen = set()
    for seed in range(60):
        moved = shift_and_flip(1, True)(images, np.random.default_rng(seed)).numpy()
        assert moved.shape == images.shape
        for image, before in zip(moved, images.numpy(), strict=True):
            padded = np.pad(before, ((0, 0), (1, 1), (1, 1)))
            matches = [
                (down, right, flip)
                for down in range(3)
                for right in range(3)
                for flip in (1, -1)
                if (padded[:, down : down + 4, right : right + 4][:, :, ::flip] == image).all()
            ]
            assert len(matches) == 1
            seen.update(matches)
    assert len(seen) == 18


def test_the_balanced_error_counts_labels_alike():
    labels = np.repeat([0, 1, 2, 3], [10, 2, 4, 1])
    found = np.concatenate([np.zeros(10), [1, 0], [2, 2, 2, 0], [0]]).astype(int)
    errors = balanced_errors(labels, found, np.array([100, 50, 20, 3]), (100, 20))
    assert errors == {"head": 0, "torso": 37.5, "tail": 100, "all": 43.75}
    assert balanced_errors(labels, found, np.array([100, 100, 100, 100]), (100, 20))["tail"] is None


def write_png(target, pixels):
    PIL.fromarray(pixels).save(target, format="PNG")


def test_cifar_is_read_from_its_files(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "cifar10-lt"
    folder.mkdir()
    pixels = rng.integers(0, 256, (12, 1024, 3), np.uint8)
    for part in ("train", "test"):
        write_png(folder / f"{part}.png", pixels)
        (folder / f"{part}-labels.json").write_text(json.dumps([i % 10 for i in range(12)]))
    found = load_image_set("cifar10-lt", str(tmp_path))
    assert found.train.pixels.shape == (12, 3, 16, 16) and found.train.labels.tolist()[-2:] == [0, 1]
    np.testing.assert_allclose(found.train.pixels.mean(axis=(0, 2, 3)), 0, atol=1e-5)
    square = pixels[5].reshape(32, 32, 3)[2:4, 6:8].mean(axis=(0, 1))
    whole = pixels.astype(float).reshape(12, 16, 2, 16, 2, 3).mean(axis=(2, 4))
    expected = (square - whole.mean(axis=(0, 1, 2))) / whole.std(axis=(0, 1, 2))
    np.testing.assert_allclose(found.train.pixels[5, :, 1, 3], expected, rtol=1e-4)
    indicator = found.train.indicator(10)
    assert indicator.shape == (12, 10) and indicator.indices.tolist() == found.train.labels.tolist()

    (folder / "test-labels.json").write_text("[1, 2]")
    with pytest.raises(DataFormatError, match=r"shape \(12, 1024, 3\) for 2 labels"):
        load_image_set("cifar10-lt", str(tmp_path))
    (folder / "test-labels.json").unlink()
    with pytest.raises(InvalidInput, match=r"lacks test-labels.json"):
        load_image_set("cifar10-lt", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"there is no folder 'omniglot' in .*; pass the folder .* with --data"):
        load_image_set("omniglot", str(tmp_path))


def test_omniglot_takes_each_character_once(tmp_path):
    folder = tmp_path / "omniglot"
    folder.mkdir()
    for number, alphabets in enumerate((["Greek", "Latin"], ["Greek", "Tagalog"])):
        with zipfile.ZipFile(folder / f"images_small{number}.zip", "w") as archive:
            for alphabet in alphabets:
                for drawing in range(1, 21):
                    data = io.BytesIO()
                    pixels = np.ones((105, 105), bool)
                    pixels[:7, : 7 * (drawing == 20)] = False
                    pixels[-7:, -7:] = drawing % 2
                    write_png(data, pixels)
                    archive.writestr(f"set{number}/{alphabet}/character01/0001_{drawing:02}.png", data.getvalue())
    found = load_image_set("omniglot", str(tmp_path))
    assert found.train.pixels.shape == (45, 1, 15, 15) and found.test.pixels.shape == (15, 1, 15, 15)
    assert np.bincount(found.test.labels).tolist() == [5, 5, 5]
    assert (found.train.pixels[:, 0, 0, 0] == found.train.pixels[0, 0, 0, 1]).all(), "ink there in the last drawing"
    assert found.test.pixels[4, 0, 0, 0] == found.train.pixels[1, 0, 14, 14] > found.test.pixels[4, 0, 0, 1]
    with zipfile.ZipFile(folder / "images_small2.zip", "w") as archive:
        archive.writestr("set2/Korean/character01/0001_01.png", data.getvalue())
    with pytest.raises(InvalidInput, match="no whole Omniglot"):
        load_image_set("omniglot", str(tmp_path))


class TestRun:
    def test_same_bytes_for_any_number_of_jobs(self, tmp_path, monkeypatch):
        few = [BASE, "all labels, logit_adjusted", "all labels, contrastive", "within_batch, relative"]
        few += ["within_batch, tail", "within_batch, constant, contrastive"]
        monkeypatch.setattr(image_sampling, "CONTENDERS", {name: CONTENDERS[name] for name in few})
        monkeypatch.setattr(image_sampling, "CHOSEN_BY", {"softmax": few[:1], "contrastive": few[2:3]})
        monkeypatch.setattr(image_sampling, "SAMPLED", {name: CONTENDERS[name] for name in few[3:5]})
        settings = image_sampling.choose("quick", {})
        settings |= {"profiles": ["exp"], "repeats": 1, "epochs": {"digits": 2}, "few_negatives": {"digits": [1]}}
        experiment = replace(load_experiment("images"), choose=lambda size, options: settings)
        done = run_experiment(experiment, tmp_path / "one", size="quick", n_jobs=1)
        run_experiment(experiment, tmp_path / "two", size="quick", n_jobs=2)
        for name in ("results.json", "results.csv", "images.svg", "images-contrastive.svg", "images-draws.svg"):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        assert {(r["contender"], r["m"]) for r in done.rows} >= {(BASE, "all"), (few[4], 3), (few[4], 1)}
        theory = {r["contender"]: r["theory"] for r in done.rows if r["part"] == "judging"}
        assert theory["within_batch, relative"] == "head" and theory["within_batch, tail"] == "tail"
        assert all(0 <= r["head"] < 100 == r["tail"] for r in done.rows if r["contender"] == BASE)
        said = "\n".join(done.findings)
        assert "on held-out images by learning rate 0.1: " in said and "m = 1: " in said
        assert "EXP: tail weights within the batch help the tail: not seen" in said and "once)" in said

    def test_held_out_images_are_not_trained_on(self):
        images = load_image_set("digits").train
        rest, held_out = image_sampling._hold_out(images, 10, np.random.default_rng(0))
        assert rest.labels.size + held_out.labels.size == images.labels.size
        rows = {row.tobytes() for row in rest.pixels}
        assert sum(row.tobytes() in rows for row in held_out.pixels) <= 2, "but for images that are there twice"
        assert (np.bincount(held_out.labels) == np.bincount(images.labels) // 5).all()

    def test_claims_are_judged_by_paired_differences(self):
        def cell(contender, repeat, tail):
            return {"contender": contender, "repeat": repeat, "head": 1.0, "tail": tail, "all": tail, "torso": None}

        better = [cell("within_batch, constant", i, 50 + i) for i in range(3)]
        base = [cell(BASE, i, value) for i, value in enumerate((60, 62, 61))]
        found = image_sampling._claims([*better, *base])
        expected = "constant weights within the batch help the tail: held (tail error 51.0 against 61.0, -10.0 ± 0.6)."
        assert found[0] == expected
        assert "the reverse" in image_sampling._claims([*better, *(cell(BASE, i, 40 + 2 * i) for i in range(3))])[0]
