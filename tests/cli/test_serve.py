"""``tailwise serve``: what it says before it serves, and what it refuses."""

import json
import socket
from pathlib import Path

import pytest
from scipy import sparse

pytest.importorskip("starlette", reason="the extra serve is not installed")

from tailwise import Centroid, Tagger, TextFeatures
from tailwise.cli import ExitCode


@pytest.fixture
def model(tmp_path):
    tagger = Tagger(Centroid(), features=TextFeatures(min_df=1), calibrate=False)
    tagger.fit(["tax law", "sea fish"], [["law"], ["fish"]]).save(tmp_path / "subjects")
    return tmp_path / "subjects"


def test_check_says_what_would_be_served(run, model, tmp_path):
    found = run("serve", model, "--check", "--workers", 3, "--json")
    assert found.code == ExitCode.OK
    assert found.json["workers"] == 3
    assert "2 labels, 2 training rows" in found.json["subjects"]
    assert found.json["memory in MB, together"] > 0
    (tmp_path / "service.toml").write_text('port = 80\n[models.law]\npath = "subjects"\nname = "Law"\n')
    configured = run("serve", "--config", tmp_path / "service.toml", "--check", "--port", 0, "--json").json
    assert configured["address"] == "http://127.0.0.1:0/"
    assert "law" in configured
    assert "subjects" in run("serve", tmp_path, "--check").out


def test_no_model(run, tmp_path):
    for arguments, said in [
        ((), "there is no model to serve"),
        ((tmp_path / "none",), "does not exist; pass a folder that `tailwise train` wrote"),
        ((tmp_path,), "is no model and has none in it"),
    ]:
        found = run("serve", *arguments)
        assert found.code in (ExitCode.BAD_INPUT, ExitCode.BAD_MODEL)
        assert said in found.err


def test_a_token_on_the_command_line_is_taken_for_no_model(run, model, monkeypatch):
    monkeypatch.delenv("TAILWISE_TOKEN", raising=False)
    assert "--token-file FILE" in run("serve", model, "--token", "secret").err
    assert "but there is none" in run("serve", model, "--token").err
    assert "--allow-learn would let anybody" in run("serve", model, "--allow-learn", "--host", "0.0.0.0").err


def test_a_model_of_numeric_rows_is_named(run, model, tmp_path):
    numeric = tmp_path / "models" / "numeric"
    Tagger(Centroid(), calibrate=False).fit(sparse.eye_array(4, format="csr"), [["a"], ["b"]] * 2).save(numeric)
    found = run("serve", numeric, "--check")
    assert "numeric was trained on numeric rows, not on texts" in found.err
    bare = tmp_path / "bare"
    Centroid().fit(sparse.eye_array(2, format="csr"), sparse.eye_array(2, format="csr")).save(bare)
    assert "holds a Centroid, which has no label names" in run("serve", bare, "--check").err


def test_a_port_that_is_taken(run, model):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        found = run("serve", model, "--port", taken.getsockname()[1])
    assert found.code == ExitCode.OUTPUT
    assert "Address already in use" in found.err
    assert "choose one with --port" in found.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = ", "is not TOML"),
        ("ports = 1", "has the key 'ports', which is none of"),
        ('port = "x"', "port = 'x' must be int"),
        ("[models.a]\nname = 'x'", "it needs path"),
        ("models = 3", "must be a table"),
        ("port = 99999", "outside [0, 65535]"),
    ],
)
def test_a_config_that_is_wrong(run, model, tmp_path, text, said):
    (tmp_path / "service.toml").write_text(text)
    found = run("serve", model, "--config", tmp_path / "service.toml", "--check")
    assert found.code == ExitCode.BAD_INPUT
    assert said in found.err


def test_two_models_of_one_name(run, model, tmp_path):
    other = tmp_path / "elsewhere" / "subjects"
    other.parent.mkdir()
    other.symlink_to(model)
    assert json.dumps(str(other))[1:-1] in run("serve", model, other, "--check").err


def test_the_example_has_every_key():
    from dataclasses import fields

    from tailwise.serving.settings import Settings

    text = (Path(__file__).parents[2] / "deploy" / "service.toml").read_text()
    missing = [each.name for each in fields(Settings) if each.name not in text]
    assert not missing, f"deploy/service.toml says nothing of {', '.join(missing)}"
