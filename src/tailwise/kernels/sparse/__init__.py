"""Sparse rows: their form, unit length, sums, dot products, the best of their entries."""
