"""A job: one call of a model, cut into pieces that any process can compute, and the folder that keeps their results.

The work of a job is a program: the model's own ``fit`` or ``predict_topk``. The *sites* of the program, where it maps
a pure function over blocks, are numbered in the order in which it comes to them, and a piece is a site's number and a
range of its blocks. So nothing of the work needs to be sent anywhere: a process that has the model's parameters and the
mapped data runs the same program, reads what other pieces left, and arrives at the same functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tailwise import persistence
from tailwise.atomic import write_whole
from tailwise.distributed.shards import is_sound, read_shard, shard_digest, write_shard
from tailwise.errors import InvalidInput, ModelFileError, TailwiseError
from tailwise.parallel import map_blocks, row_blocks
from tailwise.persistence.encoding import Writer

MOST_PIECES = 256
"""Of a site: enough for the last ones not to be waited for, few enough that opening files takes no time."""
_BYTES_A_DIGEST = 1 << 22
"""Threads share the looking at inputs."""
_FACTS = "job.json"
_INPUTS = "inputs"
_CALLS = ("fit", "predict_topk")


class RunError(TailwiseError):
    """A run cannot go on; what it has computed is kept."""


class Site(NamedTuple):
    """Where a program maps a function over blocks."""

    number: int
    function: Callable[[Any], Any]
    blocks: Sequence[Any]
    ends: list[int]
    """Piece i is ``blocks[ends[i] : ends[i + 1]]``."""
    costs: list[float]
    """What each piece is expected to cost, in whatever unit."""

    @classmethod
    def cut(cls, number: int, function: Any, blocks: Sequence[Any], weight: Callable[[Any], float]) -> Site:
        """Into pieces of about equal cost: the same ones in every process.

        >>> Site.cut(0, None, [5, 1, 1, 1, 1, 1], float).ends[:3]
        [0, 1, 2]
        """
        n = len(blocks)
        costs = np.append(0.0, np.cumsum([max(float(weight(block)), 0.0) for block in blocks]))
        if n <= MOST_PIECES or not costs[-1] > 0:
            step = max(1, -(-n // MOST_PIECES))
            ends = [*range(0, n, step), n] if n else [0]
        else:
            cuts = np.searchsorted(costs[1:], costs[-1] * np.arange(1, MOST_PIECES) / MOST_PIECES, side="right")
            ends = [0, *np.unique(cuts[(cuts > 0) & (cuts < n)]).tolist(), n]
        return cls(number, function, blocks, ends, np.diff(costs[ends]).tolist())

    @property
    def n_pieces(self) -> int:
        """How many pieces there are."""
        return len(self.ends) - 1

    def compute(self, piece: int) -> list[Any]:
        """The results of the piece's blocks."""
        return [self.function(block) for block in self.blocks[self.ends[piece] : self.ends[piece + 1]]]


class Inputs(persistence.Saveable):
    """What a process needs to run a job's program."""

    def __init__(self, model: Any, call: str, arguments: dict[str, Any]) -> None:
        self.model = model
        self.call = call
        self.arguments = arguments

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The model, what is called and with what."""
        return {"model": self.model, "call": self.call, "arguments": self.arguments}

    def __call__(self) -> Any:
        """Run the program."""
        if self.call not in _CALLS:
            raise ModelFileError(f"a job calls {self.call!r}; {' and '.join(_CALLS)} can be")
        return getattr(self.model, self.call)(**self.arguments)


class _Fingerprint(Writer):
    """Encodes values with digests in place of arrays; ``n_jobs`` does not count."""

    def __init__(self, n_jobs: int | None) -> None:
        super().__init__(Path())
        self._n_jobs = n_jobs

    def encode(self, name: str, value: Any) -> Any:
        found = super().encode(name, value)
        if isinstance(found, dict) and found.get("$") == "object":
            found["params"].pop("n_jobs", None)
        return found

    def _write_array(self, name: str, array: np.ndarray) -> str:
        plain = np.ascontiguousarray(array)
        data = plain.reshape(-1).view(np.uint8) if plain.size else np.empty(0, np.uint8)

        def digest_of(block: tuple[int, int]) -> bytes:
            return hashlib.sha256(data[slice(*block)].data).digest()

        digests = map_blocks(digest_of, row_blocks(data.size, _BYTES_A_DIGEST), n_jobs=self._n_jobs)
        return hashlib.sha256(b"".join([f"{plain.dtype.str} {array.shape}".encode(), *digests])).hexdigest()


def versions() -> dict[str, str]:
    """Of what decides about the bits of a result."""
    import llvmlite
    import numba
    import scipy

    import tailwise

    modules = (tailwise, np, scipy, numba, llvmlite)
    return {module.__name__: module.__version__ for module in modules}


class Job:
    """The folder of a job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
            self.what, self.versions, self.fingerprint = (
                str(facts["what"]),
                facts["versions"],
                str(facts["fingerprint"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{folder} holds no job of a run ({error}); remove it to begin it again") from error
        self.entropy = int.from_bytes(hashlib.sha256(self.fingerprint.encode()).digest()[:8], "little")

    @classmethod
    def begin(cls, folder: Path, inputs: Inputs, *, elsewhere: bool) -> Job:
        """The job in ``folder``: a new one, or one that was begun with the same inputs.

        ``elsewhere`` says that other processes will work on it, which need the inputs.
        """
        encoded = _Fingerprint(inputs.model.get_params(deep=False).get("n_jobs")).encode("job", inputs)
        fingerprint = hashlib.sha256(json.dumps(encoded, sort_keys=True).encode()).hexdigest()
        what = f"{type(inputs.model).__name__}.{inputs.call}"
        if (folder / _FACTS).exists():
            job = cls(folder)
            if job.fingerprint != fingerprint:
                raise InvalidInput(
                    f"{folder.parent} holds another run: {job.what} with other data or parameters, where this one has "
                    f"{what}; choose another folder, or remove that one"
                )
            if job.versions != versions():
                raise InvalidInput(
                    f"{folder.parent} was begun with {_told(job.versions, versions())}; go on with that, or begin "
                    "again in another folder"
                )
        else:
            facts = {"what": what, "fingerprint": fingerprint, "versions": versions()}
            write_whole(folder / _FACTS, json.dumps(facts, indent=1))
            job = cls(folder)
        if elsewhere and not job._has_inputs():
            persistence.save(inputs, folder / _INPUTS)
        return job

    def open_inputs(self) -> Inputs:
        """What to run, with mapped data."""
        if self.versions != versions():
            raise RunError(
                f"the run has {_told(self.versions, versions())}; every process of a run needs the same versions"
            )
        return persistence.load(self.folder / _INPUTS)

    def _has_inputs(self) -> bool:
        """Whether they are there and whole; saving again repairs what is damaged."""
        try:
            persistence.load(self.folder / _INPUTS)
        except ModelFileError:
            return False
        return True

    def path(self, site: int, piece: int) -> Path:
        """Where the piece's results are, or will be."""
        return self.folder / f"site-{site:05}" / f"{piece:05}.shard"

    def has(self, site: int, piece: int, digest: str | None = None) -> bool:
        """Whether the piece was computed, with that ``digest`` if one is given."""
        found = shard_digest(self.path(site, piece))
        return found is not None and (digest is None or found == digest)

    def write(self, site: Site, piece: int) -> str:
        """Compute a piece and keep its results; returns their digest."""
        path = self.path(site.number, piece)
        return write_shard(path, site.compute(piece), self._facts(site, piece))

    def read(self, site: Site, piece: int, *, sound: bool = False) -> list[Any]:
        """The results of a piece; ``sound`` says that it was looked at already."""
        return read_shard(self.path(site.number, piece), self._facts(site, piece), sound=sound)

    def size(self, site: Site, piece: int) -> int:
        """The bytes of the piece's results; 0 where there are none."""
        path = self.path(site.number, piece)
        return path.stat().st_size if path.exists() else 0

    def is_sound(self, site: Site, piece: int) -> bool:
        """Whether the piece's results are there and whole."""
        return is_sound(self.path(site.number, piece))

    def results(self, site: Site, found: dict[int, list[Any]], sound: set[int]) -> Iterator[Any]:
        """The results of all pieces, in order, those that are ``found`` as they are.

        One that is damaged is computed again; those that are ``sound`` are not looked at.
        """
        for piece in range(site.n_pieces):
            if piece in found:
                yield from found.pop(piece)
                continue
            try:
                yield from self.read(site, piece, sound=piece in sound)
            except ModelFileError:
                self.path(site.number, piece).unlink(missing_ok=True)
                self.write(site, piece)
                yield from self.read(site, piece)

    def kept_path(self, number: int) -> Path:
        """Where the value of a step is kept."""
        return self.folder / f"kept-{number:05}"

    @staticmethod
    def _facts(site: Site, piece: int) -> dict[str, Any]:
        return {"site": site.number, "blocks": list(site.ends[piece : piece + 2]), "of": len(site.blocks)}


def _told(theirs: dict[str, str], ours: dict[str, str]) -> str:
    name = next(name for name in {**theirs, **ours} if theirs.get(name) != ours.get(name))
    return f"{name} {theirs.get(name)}, and this process {ours.get(name)}"
