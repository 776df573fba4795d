"""Would a release work where it is installed? ``make release-check`` builds it, installs it and uses it.

For every Python found, and for no extra and each extra alone: the wheel in an environment of its own under
``constraints.txt``, nothing installed that is not pinned or whose file has another sha256 than ``hashes.txt`` says, and
a few records trained on, suggested for and judged through the command, outside of the source tree. Once: the metadata
(twine), the wheel's contents, the source (bandit), the licences of all that was installed. The exit status is 1 where
anything failed. ``--write-hashes`` adds the files of new pins, or of another platform, to ``hashes.txt``.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_DEVELOPERS = ("dev", "drills", "release", "peers")
HASHES = ROOT / "hashes.txt"
# Holds others back to older versions than are pinned here: tailwise comes into its environment, not it into ours.
HOSTS = ("annif",)
CANDIDATES = [f"python3.{minor}" for minor in range(11, 30)]
# What no requirement names: the environment's own tools, and the package itself.
OWN = {"pip", "setuptools", "wheel", PROJECT["name"]}

LIST_INSTALLED = """
import importlib.metadata as metadata, json
def licence(facts):
    named = [line.split(" :: ")[-1] for line in facts.get_all("Classifier", []) if line.startswith("License ::")]
    text = facts.get("License-Expression") or "; ".join(named) or facts.get("License") or "not stated"
    return text.splitlines()[0][:60]
print(json.dumps([[d.metadata["Name"], d.version, licence(d.metadata)] for d in metadata.distributions()]))
"""
IMPORT_EVERYTHING = """
import tailwise
from tailwise.errors import MissingExtra
for name in tailwise.__all__:
    try:
        getattr(tailwise, name)
    except MissingExtra:
        pass
"""
TRY_EXTRA = {
    "ann": "import numpy as np, tailwise\n"
    "found = tailwise.FaissIndex().build(np.eye(8)).search(np.eye(8), 1)\n"
    "assert found.labels[:, 0].tolist() == list(range(8)), found\n",
    "neural": "import numpy as np, tailwise\n"
    "model = tailwise.GLaS(epochs=1).fit(np.eye(8), np.eye(8))\n"
    "model.save('glas')\n"
    "assert (tailwise.load('glas').predict_topk(np.eye(8)).labels == model.predict_topk(np.eye(8)).labels).all()\n",
}


class Failed(Exception):
    """A step did not do what it should."""


def run(*command: object, cwd: Path | None = None) -> str:
    """What a command prints, with none of this process's settings of Python; refused where it fails."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))[:200]}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def environment(python: str, folder: Path, *requirements: object, under_pins: bool = True) -> Path:
    """A new environment with these installed, under the constraints where all is pinned; returns its commands."""
    run(python, "-m", "venv", folder)
    install(folder / "bin", *requirements, under_pins=under_pins)
    return folder / "bin"


def install(commands: Path, *requirements: object, under_pins: bool = True) -> list[str]:
    """Install these into an environment; returns what came in by it."""
    report = commands.parent / "report.json"
    under = ("--constraint", ROOT / "constraints.txt") if under_pins else ()
    pip(commands, "install", "--report", report, *under, *requirements)
    pip(commands, "check")
    done = json.loads(report.read_text(encoding="utf-8"))
    if under_pins:
        _files.update(installed_files(done))
    return [installed["metadata"]["name"] for installed in done["install"]]


def pip(commands: Path, *arguments: object) -> None:
    """Run the environment's pip."""
    run(commands / "python", "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments)


_files: dict[str, str] = {}


def installed_files(report: dict[str, Any]) -> dict[str, str]:
    """The name and sha256 of each file that pip installed, but for our own, which was built here."""
    found = {}
    for installed in report["install"]:
        if normal(installed["metadata"]["name"]) not in OWN:
            origin = installed["download_info"]
            file = unquote(urlsplit(origin["url"]).path).rpartition("/")[2]
            found[file] = origin["archive_info"]["hashes"]["sha256"]
    return found


def check_hashes(installed: dict[str, str], known: dict[str, str]) -> None:
    """Refuse a file that has another sha256 than is known, or of which none is."""
    changed = sorted(file for file, sha256 in installed.items() if known.get(file, sha256) != sha256)
    if changed:
        raise Failed(f"hashes.txt has another sha256 of {', '.join(changed)}: it is not the file that was tested")
    if unknown := sorted(installed.keys() - known.keys()):
        raise Failed(f"hashes.txt lacks {', '.join(unknown)}; look at where they come from, then run --write-hashes")


def known_hashes() -> dict[str, str]:
    """What ``hashes.txt`` says: a file and its sha256 a line."""
    lines = HASHES.read_text(encoding="utf-8").splitlines() if HASHES.exists() else []
    return {line.split()[0]: line.split()[1] for line in lines if line and not line.startswith("#")}


def write_hashes(installed: dict[str, str]) -> None:
    """Add files to ``hashes.txt``; those of versions that are pinned no more go."""
    head = (
        "# sha256 of each file that `make release-check` installs; it refuses others. --write-hashes adds new ones.\n"
    )
    pins = set(pinned().items())
    kept = {file: sha256 for file, sha256 in known_hashes().items() if name_and_version(file) in pins} | installed
    lines = (f"{file} {sha256}\n" for file, sha256 in sorted(kept.items(), key=lambda pair: pair[0].lower()))
    HASHES.write_text(head + "".join(lines), encoding="utf-8")


def name_and_version(file: str) -> tuple[str, str]:
    """Of a wheel or a source distribution.

    >>> name_and_version("torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl"), name_and_version("a.b-1.0.tar.gz")
    (('torch', '2.13.0'), ('a-b', '1.0'))
    """
    name, version = file.removesuffix(".tar.gz").split("-")[:2]
    return normal(name), version.split("+")[0]


def pythons() -> Iterator[str]:
    """The interpreters on the path that the project says it runs on."""
    for name in CANDIDATES:
        found = shutil.which(name)
        # A launcher may be there for a version that is not.
        if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            yield found


def build(tools: Path, folder: Path) -> Path:
    """Build the source distribution and, from it, the wheel; check both; returns the wheel."""
    run(tools / "python", "-m", "build", "--outdir", folder, ROOT)
    run(tools / "python", "-m", "twine", "check", "--strict", *folder.iterdir())
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        inside = set(packed.namelist())
    name = PROJECT["name"]
    tracked = run("git", "-C", ROOT, "ls-files", f"src/{name}").splitlines()
    missing = {path.removeprefix("src/") for path in tracked} - inside
    foreign = {
        path for path in inside if not path.startswith((f"{name}/", f"{name}-")) or path.endswith((".nbi", ".nbc"))
    }
    if missing or foreign:
        raise Failed(f"{wheel.name} lacks {sorted(missing)} and has {sorted(foreign)}, which do not belong there")
    return wheel


def pinned() -> dict[str, str]:
    """The versions in ``constraints.txt`` by normalised name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {normal(name): version.strip() for name, version in pins}


def normal(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_pins(commands: Path) -> dict[str, tuple[str, str]]:
    """Refuse what is installed in another version than pinned; returns version and licence by name."""
    installed = {
        normal(n): (v, licence) for n, v, licence in json.loads(run(commands / "python", "-c", LIST_INSTALLED))
    }
    pins = pinned()
    loose = [
        f"{name}=={version}"
        for name, (version, _) in sorted(installed.items())
        # A build for one kind of machine has the version of all and a suffix.
        if name not in OWN and pins.get(name) != version.split("+")[0]
    ]
    if loose:
        raise Failed(f"constraints.txt does not pin {', '.join(loose)}")
    return installed


def use(commands: Path, folder: Path, wheel: Path, extra: str | None) -> None:
    """Train, suggest and judge through the command; try what the extra is for."""
    folder.mkdir()
    topics = {"tax": "income duty levy revenue", "fish": "sea cod trawler quota", "wine": "grape vineyard cellar"}
    records = [
        {"text": " ".join([*words.split()[i % 3 :], f"word{i % 7}"]), "labels": [label]}
        for i in range(10)
        for label, words in topics.items()
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    tailwise = commands / "tailwise"
    version = run(tailwise, "--version", cwd=folder).split()[1]
    if version != wheel.name.split("-")[1]:
        raise Failed(f"tailwise --version says {version}, but this is {wheel.name}")
    run(commands / "python", "-c", IMPORT_EVERYTHING, cwd=folder)
    run(tailwise, "train", "rows.jsonl", "-o", "model", "--model", "parabel", "-q", cwd=folder)
    found = json.loads(run(tailwise, "suggest", "model", "a trawler at sea", "--json", "-q", cwd=folder))
    if found[0]["name"] != "fish":
        raise Failed(f"the first suggestion is {found[0]}, not fish")
    run(tailwise, "evaluate", "model", "rows.jsonl", "--json", "-q", cwd=folder)
    if extra in TRY_EXTRA:
        run(commands / "python", "-c", TRY_EXTRA[extra], cwd=folder)


def check_installed(python: str, place: Path, wheel: Path, extra: str | None) -> dict[str, tuple[str, str]]:
    """Install the wheel, use it, and take away again what an extra brought; returns versions and licences by name.

    The environment in ``place`` is made without extras, and each comes into it alone: so kernels compile once.
    """
    if extra in HOSTS:
        commands = environment(python, place.with_name(f"{place.name}-{extra}"), f"{wheel}[{extra}]", under_pins=False)
        use(commands, place.with_name(f"{place.name}-{extra}-use"), wheel, extra)
        shutil.rmtree(commands.parent)
        return {}
    commands = place / "bin"
    if extra is None:
        environment(python, place, wheel)
        added = []
    else:
        added = install(commands, f"{wheel}[{extra}]")
    try:
        found = check_pins(commands)
        use(commands, place.with_name(f"{place.name}-{extra or 'plain'}-use"), wheel, extra)
    finally:
        if added:
            pip(commands, "uninstall", "--yes", *added)
    return found


def main() -> int:
    """Run every check and print one line for each."""
    extras = [name for name in PROJECT["optional-dependencies"] if name not in FOR_DEVELOPERS]
    parser = argparse.ArgumentParser(prog="release_check", description=__doc__)
    parser.add_argument("--skip", action="append", default=[], choices=extras, help="an extra to leave out, for time")
    parser.add_argument("--python", action="append", help="an interpreter (default: every one on the path)")
    parser.add_argument("--write-hashes", action="store_true", help="add what is installed to hashes.txt")
    wanted = parser.parse_args()
    failures: list[str] = []
    licences: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="release-") as scratch:
        folder = Path(scratch)
        tools = environment(sys.executable, folder / "tools", *PROJECT["optional-dependencies"]["release"])
        check_pins(tools)
        wheel = build(tools, folder / "dist")
        print(f"built {wheel.name}: metadata and contents as they should be", flush=True)
        run(tools / "bandit", "--quiet", "--recursive", "--configfile", ROOT / "pyproject.toml", ROOT / "src")
        print("bandit: nothing in src that is not argued for", flush=True)
        for python in wanted.python or pythons():
            place = folder / Path(python).name
            kinds = [None, *(name for name in extras if name not in wanted.skip)]
            for extra in kinds:
                what = f"{Path(python).name}, {f'extra {extra}' if extra else 'no extras'}"
                try:
                    licences |= check_installed(python, place, wheel, extra)
                    print(f"{what}: works", flush=True)
                except Failed as error:
                    failures.append(f"{what}: {error}")
                    print(f"{what}: failed", flush=True)
    known = known_hashes()
    if wanted.write_hashes:
        check_hashes({file: sha256 for file, sha256 in _files.items() if file in known}, known)
        write_hashes(_files)
    else:
        check_hashes(_files, known)
    print(f"sha256 of {len(_files)} files: as in hashes.txt", flush=True)
    print("licences of what is installed with it:")
    for name, (version, licence) in sorted(licences.items()):
        print(f"  {name:24} {version:16} {licence}")
    print(*failures, sep="\n\n", file=sys.stderr)
    return int(bool(failures))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"release_check: {failure}")
