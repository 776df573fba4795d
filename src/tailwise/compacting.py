"""Small models for serving: the weights of every linear model inside in one byte each."""

from __future__ import annotations

from copy import copy
from functools import singledispatch
from typing import Any

from tailwise.byte_weights import to_bytes
from tailwise.errors import InvalidInput
from tailwise.kernels.sparse.bytes import ByteWeights
from tailwise.linear.one_vs_rest import OneVsRest
from tailwise.persistence.saveable import Saveable
from tailwise.sparse_linear import SparseLinear
from tailwise.text import Tagger


def compact(model: Any) -> Any:
    """A copy of a fitted ``model`` for serving: a third of the bytes and faster for single rows, about as accurate.

    Linear weights, of the model and of any model inside it, are rounded to one byte each with a scale a label: a weight
    moves by at most 1/254 of the largest of its label. What only :meth:`update` needs is left out: a compact model does
    not learn. Label trees keep what they have, which is compact already.

    >>> import tailwise
    >>> small = compact(tailwise.DiSMEC().fit([[1.0, 0], [0, 1.0], [0, 0.9]], [[1, 0], [0, 1], [0, 1]]))
    >>> small.predict_topk([[0.2, 0.8]], k=1).labels
    array([[1]], dtype=int32)
    """
    if not isinstance(model, Saveable):
        raise InvalidInput(f"model={model!r} is not a model of tailwise; pass a fitted one")
    made = _compacted(model)
    if not _has_bytes(made):
        raise InvalidInput(
            f"{type(model).__name__} holds no weights that could be made smaller: fitted linear models (dismec, "
            "pw-dismec, proxml …) do, alone or inside another; label trees are compact already"
        )
    return made


@singledispatch
def _compacted(value: Any) -> Any:
    return value


@_compacted.register
def _(value: list) -> Any:
    return [_compacted(item) for item in value]


@_compacted.register
def _(value: Saveable) -> Any:
    made = copy(value)
    vars(made).update({name: _compacted(item) for name, item in value._state().items()})
    return made


@_compacted.register
def _(value: SparseLinear) -> Any:
    made = copy(value)
    weights = getattr(value, "weights_", None)
    if weights is not None and not isinstance(weights, ByteWeights):
        made.weights_ = to_bytes(weights)
    return made


@_compacted.register
def _(value: OneVsRest) -> Any:
    made = _compacted.dispatch(SparseLinear)(value)
    made.dual_ = None
    return made


@_compacted.register
def _(value: Tagger) -> Any:
    made = _compacted.dispatch(Saveable)(value)
    made.training_ = None
    return made


def _has_bytes(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_bytes, value))
    if isinstance(value, SparseLinear):
        return isinstance(getattr(value, "weights_", None), ByteWeights)
    return isinstance(value, Saveable) and any(map(_has_bytes, value._state().values()))
