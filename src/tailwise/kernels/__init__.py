"""Numba kernels: numpy arrays in, numpy arrays out. They know nothing else of tailwise.

A kernel trusts its arrays (``boundscheck=False``); whoever calls has checked them. Inputs may be read-only, and callers
make them so (:mod:`tailwise.kernels.arrays`), that arrays of memory and of mapped files run the same compiled code.
"""
