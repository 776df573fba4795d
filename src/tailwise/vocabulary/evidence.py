"""Propensities from the hierarchy of a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.propensity import EstimatedPropensity, propensity_from_hierarchy
from tailwise.validation import check_labels
from tailwise.vocabulary.vocabulary import Vocabulary


def hierarchy_propensity(vocabulary: Vocabulary, Y: Any, ids: Sequence[str], **options: Any) -> EstimatedPropensity:
    """As :meth:`Vocabulary.propensity`: Y is spread over all concepts, since a path up may lead through unused ones."""
    Y = check_labels(Y)
    if len(ids) != Y.shape[1]:
        raise InvalidInput(f"ids has {len(ids):,} entries but Y has {Y.shape[1]:,} columns; name every column")
    place = vocabulary.places(ids)
    if not (place >= 0).any():
        raise InvalidInput(f"the vocabulary has none of the {len(ids):,} labels, such as {ids[0]!r}; pass their own")
    if not len(vocabulary.broader):
        raise InvalidInput("the vocabulary has no hierarchy; propensities need broader labels, as SKOS has them")
    known = np.flatnonzero(place >= 0)
    own = Y[:, known]
    spread = sparse.csr_array((own.data, place[known][own.indices], own.indptr), (Y.shape[0], len(vocabulary)))
    spread.sort_indices()
    return propensity_from_hierarchy(spread, vocabulary.broader, **options).fit(Y)
