"""What the release check refuses, and that the pins, their hashes and the extras belong together."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("release_check", ROOT / "tools" / "release_check.py")
release_check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release_check)


def of_pip(name, file, sha256):
    origin = {"url": f"https://index/files/{file}", "archive_info": {"hashes": {"sha256": sha256}}}
    return {"metadata": {"name": name, "version": "1"}, "download_info": origin}


def test_the_files_that_pip_installed_are_known_by_name_and_digest():
    report = {"install": [of_pip("torch", "torch-2.0%2Bcpu-py3.whl", "ab"), of_pip("tailwise", "tailwise-0.whl", "cd")]}
    assert release_check.installed_files(report) == {"torch-2.0+cpu-py3.whl": "ab"}


def test_another_file_and_an_unknown_one_are_refused():
    release_check.check_hashes({"a-1.whl": "x"}, {"a-1.whl": "x", "b-1.whl": "y"})
    with pytest.raises(release_check.Failed, match=r"another sha256 of a-1\.whl"):
        release_check.check_hashes({"a-1.whl": "z"}, {"a-1.whl": "x"})
    with pytest.raises(release_check.Failed, match=r"lacks c-1\.whl"):
        release_check.check_hashes({"c-1.whl": "z"}, {"a-1.whl": "x"})


def test_hashes_of_versions_that_are_pinned_no_more_go(tmp_path, monkeypatch):
    monkeypatch.setattr(release_check, "HASHES", tmp_path / "hashes.txt")
    monkeypatch.setattr(release_check, "pinned", lambda: {"a-b": "2", "c": "1"})
    release_check.write_hashes({"a_b-1-py3.whl": "x", "c-1.tar.gz": "y"})
    release_check.write_hashes({"a_b-2-py3.whl": "z"})
    assert release_check.known_hashes() == {"a_b-2-py3.whl": "z", "c-1.tar.gz": "y"}


def test_every_hash_is_of_a_pin():
    pins, known = release_check.pinned(), release_check.known_hashes()
    assert len(known) > 100
    for file, sha256 in known.items():
        name, version = release_check.name_and_version(file)
        assert pins.get(name) == version and re.fullmatch("[0-9a-f]{64}", sha256), file


def test_what_users_need_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    left_out = {*release_check.HOSTS, "peers"}
    wanted = list(project["dependencies"])
    for extra, needs in project["optional-dependencies"].items():
        wanted += needs if extra not in left_out else []
    names = {release_check.normal(re.match(r"[A-Za-z0-9_.\-]+", need)[0]) for need in wanted}
    assert names <= set(release_check.pinned())
