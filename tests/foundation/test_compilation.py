"""Kernels compile and run wherever they are installed, whoever runs them and whatever is left of their cache."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

import tailwise
from tailwise.kernels.arrays import read_only
from tailwise.kernels.compilation import njit

PACKAGE = Path(tailwise.__file__).parent
NOBODY = 54_321
USE_A_KERNEL = (
    "import numpy as np\n"
    "from tailwise.kernels.random import random_bits, shuffle_state\n"
    "print(random_bits(np.array([7], np.uint64)), shuffle_state(3))\n"
)


# Numba first, and once in use: others may not be allowed to read where it is installed.
BECOME_NOBODY = (
    "import os, numpy as np, numba, numba.core.caching\n"
    "numba.njit(lambda array: array[0] ^ np.uint64(1))(np.array([7], np.uint64))\n"
    f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
)


def run(package, code=USE_A_KERNEL, **environment):
    """Run ``code`` with a copy of the package, with no variables of this process but PATH."""
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=variables | environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def package(tmp_path):
    """A copy of what the kernels in use are made of."""
    folder = tmp_path / "installed" / "tailwise"
    (folder / "kernels").mkdir(parents=True)
    for name in (
        "__init__",
        "lazy",
        "kernels/__init__",
        "kernels/compilation",
        "kernels/cache",
        "kernels/lowering",
        "kernels/random",
    ):
        shutil.copy(PACKAGE / f"{name}.py", folder / f"{name}.py")
    return folder


def cached(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in (".nbi", ".nbc"))


def test_compiled_code_is_kept_beside_the_source(package):
    first = run(package)
    assert first.stderr == "" and cached(package)
    kept = {path: path.stat().st_mtime_ns for path in cached(package)}
    assert run(package).stdout == first.stdout
    assert {path: path.stat().st_mtime_ns for path in cached(package)} == kept


LISTEN = "import logging; logging.basicConfig(level='INFO')\n" + USE_A_KERNEL


def test_compiled_code_is_good_while_no_kernel_has_another_content(package):
    run(package)
    for path in package.rglob("*.py"):
        os.utime(path, (1, 1))
    assert "compiling" not in run(package, LISTEN).stderr
    # A constant or a function of another file may be part of what was compiled.
    with (package / "kernels" / "__init__.py").open("a") as file:
        file.write("LANES = 8\n")
    assert "compiling random_bits" in run(package, LISTEN).stderr


def opened(path):
    """Let everybody pass through the folders above ``path``, which pytest makes for one user."""
    for folder in (path, *path.parents):
        if not folder.stat().st_mode & 0o005:
            folder.chmod(folder.stat().st_mode | 0o755)
        if folder.name.startswith("pytest-of"):
            break


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root can become somebody else")
def test_a_read_only_install_run_by_somebody_without_a_home(package, tmp_path):
    opened(package)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    mine = temporary / f"tailwise-compiled-{NOBODY}"
    done = run(package, BECOME_NOBODY + USE_A_KERNEL, TMPDIR=str(temporary))
    assert done.stderr == f"compiled code is kept in {mine}; set NUMBA_CACHE_DIR to keep it elsewhere\n"
    assert cached(mine) and not cached(package)
    assert mine.stat().st_mode & 0o777 == 0o700
    assert run(package, BECOME_NOBODY + USE_A_KERNEL, TMPDIR=str(temporary)).stdout == done.stdout

    # Somebody else's folder of this name is not trusted: its files would be run.
    shutil.rmtree(mine)
    mine.mkdir()
    mine.chmod(0o777)
    done = run(package, BECOME_NOBODY + USE_A_KERNEL, TMPDIR=str(temporary))
    assert done.stderr.count("\n") == 1 and "every run compiles" in done.stderr
    assert not cached(mine)


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root can become somebody else")
def test_what_was_compiled_ahead_is_taken_over_where_it_cannot_be_written_to(package, tmp_path):
    ahead, temporary = tmp_path / "ahead", tmp_path / "tmp"
    for folder in (ahead, temporary):
        folder.mkdir()
    temporary.chmod(0o1777)
    first = run(package, LISTEN, NUMBA_CACHE_DIR=str(ahead))
    assert "compiling random_bits" in first.stderr and cached(ahead)
    for path in (package, ahead, *ahead.rglob("*")):
        path.chmod(path.stat().st_mode | 0o055)
    opened(package)
    opened(ahead)
    later = run(package, BECOME_NOBODY + LISTEN, NUMBA_CACHE_DIR=str(ahead), TMPDIR=str(temporary))
    assert "compiled code is kept in" in later.stderr and "compiling" not in later.stderr
    assert later.stdout == first.stdout
    assert len(cached(temporary)) == len(cached(ahead))


def spoil(path, how):
    content = path.read_bytes()
    path.write_bytes(
        {
            "garbage": b"garbage" * 100,
            "empty": b"",
            "truncated": content[: len(content) // 2],
            "zeroed": content[:-600] + bytes(600) if len(content) > 600 else bytes(len(content)),
        }[how]
    )


@pytest.mark.parametrize(
    ("suffix", "how"), [(".nbi", "garbage"), (".nbi", "empty"), (".nbc", "truncated"), (".nbc", "zeroed")]
)
def test_a_damaged_cache_is_replaced(package, suffix, how):
    first = run(package)
    for path in cached(package):
        if path.suffix == suffix:
            spoil(path, how)
    again = run(package)
    assert again.stdout == first.stdout
    assert again.stderr.count("\n") == 1 and "is damaged" in again.stderr and "compiling anew" in again.stderr
    third = run(package)
    assert (third.stdout, third.stderr) == (first.stdout, "")


def test_a_full_disk_costs_only_time(package):
    code = "import os\nfrom numba.core import caching\n" + (
        "def full(self, *arguments):\n    raise OSError(28, 'No space left on device')\n"
        "caching.IndexDataCacheFile._save_index = full\n"
    )
    done = run(package, code + USE_A_KERNEL)
    assert done.stdout == run(package).stdout
    assert done.stderr.count("\n") == 1 and "No space left on device" in done.stderr


def test_without_a_standard_error_nothing_is_said(package):
    run(package)
    for path in cached(package):
        spoil(path, "garbage")
    done = run(package, "import sys\nsys.stderr = None\n" + USE_A_KERNEL)
    assert done.stderr == ""


def test_every_kernel_is_compiled_this_way():
    for path in (PACKAGE / "kernels").rglob("*.py"):
        if path.name != "compilation.py":
            assert "from numba import njit" not in path.read_text(), f"{path}: import njit from kernels.compilation"


@njit(boundscheck=False)
def add_up(parts, start):
    values, _ = parts
    if start < 0:
        raise ValueError("start is negative")
    total = 0.0
    for value in np.sort(values[start:]):
        total += value
    return total


@njit(boundscheck=False)
def add_both(fixed, changed, start):
    changed[0] = 5
    return add_up((fixed, 0), 0) + add_up((changed, 0), 1) + add_up((changed, start), start)


def test_kernels_make_arrays_in_place():
    for path in (PACKAGE / "kernels").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            compiled = isinstance(function, ast.FunctionDef) and "njit" in "".join(
                map(ast.dump, function.decorator_list)
            )
            made = {ast.unparse(node.func) for node in ast.walk(function) if compiled and isinstance(node, ast.Call)}
            assert not made & {"np.empty", "np.zeros"}, f"{path}: take empty and zeros of kernels.arrays"


def test_what_kernels_call_is_translated_once_and_compiled_only_for_python():
    fixed = read_only(np.ones(3))
    assert add_both(fixed, np.ones(3), 2) == 3 + 2 + 1
    assert len(add_up._called) == 1 and not add_up.overloads
    assert add_up((fixed, 0), 1) == 2 and len(add_up.overloads) == 1
    with pytest.raises(ValueError, match="start is negative"):
        add_both(fixed, np.ones(3), -1)


def test_other_functions_of_numba_call_kernels_and_share_what_these_brought_along():
    add_both(read_only(np.ones(3)), np.ones(3), 0)

    @numba.njit
    def ask(values):
        return add_up((values, 0), 0) + np.sort(values)[-1]

    assert ask(np.arange(3.0)) == 5
