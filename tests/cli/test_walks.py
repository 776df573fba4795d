"""The walks of docs/walks, each as a new user runs it: an empty folder and the installed command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tailwise

WALKS = sorted((Path(__file__).resolve().parents[2] / "docs" / "walks").glob("*.sh"))


@pytest.fixture
def command(tmp_path):
    """A folder with the command ``tailwise`` and with ``python3``, both of this Python and this tailwise."""
    folder = tmp_path / "bin"
    folder.mkdir()
    package = Path(tailwise.__file__).parents[1]
    for name, arguments in (("tailwise", "-m tailwise.cli "), ("python3", "")):
        script = f'#!/bin/sh\nPYTHONPATH="{package}" exec "{sys.executable}" {arguments}"$@"\n'
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("sh") is None, reason="the walks are of the shell")
@pytest.mark.parametrize("walk", WALKS, ids=[walk.stem for walk in WALKS])
def test_a_walk_reaches_its_end(walk, command, tmp_path):
    place = tmp_path / "empty"
    place.mkdir()
    environment = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    done = subprocess.run(
        ["sh", str(walk)],
        cwd=place,
        env=environment | {"PATH": f"{command}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    assert done.stdout.rstrip().endswith("is served")
    assert "Traceback" not in done.stderr


def test_there_are_walks():
    assert {"librarian", "researcher", "engineer"} <= {walk.stem for walk in WALKS}
