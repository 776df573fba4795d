"""Compression: kernels, twins and what to draw for them."""

import numpy as np
from hypothesis import strategies as st
from naive import compression as naive
from naive.twins import Twin
from strategies import generators

from tailwise.kernels.compression import pursuit


@st.composite
def pursuits(draw):
    """Targets with something to find: a few vectors' sum, plain or with noise, and the empty target."""
    n, m, n_vectors, s = (
        draw(st.integers(1, 4)),
        draw(st.integers(4, 9)),
        draw(st.integers(1, 12)),
        draw(st.integers(1, 3)),
    )
    rng = draw(generators())
    vectors = rng.normal(size=(n_vectors, m))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    shares = rng.random((n, n_vectors)) * (rng.random((n, n_vectors)) < 0.3)
    targets = shares @ vectors + draw(st.sampled_from([0.0, 0.1])) * rng.normal(size=(n, m))
    first = draw(st.integers(0, n))
    block = first, draw(st.integers(first, n))
    out = np.full((n, s), 7, np.int32), np.full((n, s), 7, np.float32)
    return targets.astype(np.float32), block, vectors, *out


TWINS = {
    pursuit.pursue: Twin(naive.pursue, pursuits(), writes=(3, 4), rtol=1e-3, atol=1e-3, examples=60),
}
