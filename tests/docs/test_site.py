"""What the documentation is made of: docstrings as the site shows them, formulas, the notebook, the walks."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WALKS = sorted((ROOT / "docs" / "walks").glob("*.py"))


@pytest.fixture(scope="module")
def building():
    for needed in ("griffe", "latex2mathml", "matplotlib"):
        pytest.importorskip(needed)
    spec = importlib.util.spec_from_file_location("building", ROOT / "docs" / "building.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def package(building):
    import griffe

    extensions = griffe.load_extensions(building.Docstrings)
    return griffe.load("tailwise", search_paths=[ROOT / "src"], extensions=extensions, docstring_parser="numpy")


def walk(obj):
    for member in obj.members.values():
        if not member.is_alias:
            yield member
            if member.is_module or member.is_class:
                yield from walk(member)


def test_no_role_is_left_as_it_was_written(package):
    objects = [obj for obj in walk(package) if obj.docstring is not None]
    left = {obj.path: found for obj in objects if (found := re.findall(r":[a-z]+:`[^`]*`", obj.docstring.value))}
    assert len(objects) > 1000 and left == {}


def test_each_parameter_has_its_own_type_and_default(package):
    model = package["linear.dismec.PWDiSMEC"]
    (section,) = (s for s in model.docstring.parse("numpy") if s.kind.value == "parameters")
    shown = {parameter.name: (str(parameter.annotation), parameter.default) for parameter in section.value}
    assert shown["normalize"] == ("bool", "True") and shown["C"] == ("float | None", "None")
    assert list(shown) == ["weighting", "propensity", "C", "loss", *list(shown)[4:]] and len(shown) == 11


def test_formulas_are_mathml(building):
    text = building.on_page_markdown("```math\n\\frac{1}{p}\n```", page=type("P", (), {"file": File}))
    assert re.search(r"<mfrac>.*<mn>1</mn>.*<mi>p</mi>.*</mfrac>", text) and "```" not in text


class File:
    abs_src_path = str(ROOT / "docs" / "x.md")


def test_no_page_shows_a_formula_as_code():
    for page in (ROOT / "docs").rglob("*.md"):
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        assert not [block for language, block in blocks if not language and re.search(r"[Σ½λ²]|min_w", block)], page


def test_the_notebook_runs_and_shows_what_it_did(building):
    shown = building.run_notebook(ROOT / "docs" / "first-hour.ipynb")
    assert shown.count("<svg") == 2 and "<table" in shown and "macro avg" in shown


def test_a_cell_that_fails_ends_the_build(building):
    with pytest.raises(ZeroDivisionError):
        building.run_cell("1 / 0", {})


@pytest.mark.parametrize("script", WALKS, ids=lambda path: path.stem)
def test_walks(script, tmp_path):
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
