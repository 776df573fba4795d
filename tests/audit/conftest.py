"""A small world whose complete labels are known, a plan for it, and databases to keep audits in."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from scipy import sparse

import tailwise as tw
from tailwise.audit import Origin, Plan, plan_audit


class World(NamedTuple):
    X: sparse.csr_array
    Y: sparse.csr_array
    complete: sparse.csr_array
    plan: Plan


@pytest.fixture(scope="session")
def world():
    """3,000 rows with 300 labels, of which 4 in 10 were recorded, and a plan of about 300 questions."""
    data = tw.make_longtail(3000, 1500, 300, test_fraction=0, random_state=0)
    plan = plan_audit(tw.Centroid(n_jobs=1), data.X_train, data.Y_train, n_questions=300)
    return World(data.X_train, data.Y_train, data.Y_train_complete, plan)


@pytest.fixture(scope="session")
def origin(world):
    """What the world's labels are called."""
    names = [f"label {i}" for i in range(world.Y.shape[1])]
    return Origin("digest of a model", "made up", [f"L{i}" for i in range(len(names))], names)


@pytest.fixture(scope="session")
def small(world):
    """A plan of about 25 questions."""
    from tailwise.audit import plan_questions

    return plan_questions(world.plan.pool, world.plan.settings._replace(n_questions=25, doubles=0.3))


@pytest.fixture(scope="session")
def cluster():
    """The sockets' folder of a PostgreSQL that this session starts for itself; skipped where it cannot."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or list(filter(None, [_which("initdb")]))
    if not found:
        pytest.skip("PostgreSQL is not installed: /usr/lib/postgresql has none")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    programs = found[-1].parent
    # The sockets' path must be short, and root may not run a server.
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    user = {}
    if os.getuid() == 0:
        nobody = next((pwd.getpwnam(n) for n in ("postgres", "nobody") if _exists(n)), None)
        if nobody is None:
            pytest.skip("root may not run PostgreSQL, and there is no other user")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def call(*command):
        return subprocess.run(
            command, cwd=folder, capture_output=True, text=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, **user
        )

    made = call(programs / "initdb", "-D", folder / "data", "-U", "tester", "-A", "trust", "-E", "UTF8")
    if made.returncode:
        pytest.skip(f"initdb failed: {made.stderr[-200:]}")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    started = call(
        programs / "pg_ctl", "-D", folder / "data", "-o", options, "-l", folder / "log", "-w", "-t", "60", "start"
    )
    if started.returncode:
        pytest.skip(f"PostgreSQL did not start: {(folder / 'log').read_text()[-200:]}")
    yield folder
    call(programs / "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
    shutil.rmtree(folder, ignore_errors=True)


def _which(name):
    path = shutil.which(name)
    return Path(path) if path else None


def _exists(name):
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where an audit may be kept: a folder, and an empty database of PostgreSQL."""
    if request.param == "sqlite":
        yield tmp_path / "audit"
        return
    import psycopg

    folder = request.getfixturevalue("cluster")
    name = f"audit_{os.getpid()}_{abs(hash(request.node.name)) % 10**9}"
    with psycopg.connect(f"host={folder} user=tester dbname=postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"postgresql://tester@/{name}?host={folder}"
