"""Numba kernels: numpy arrays in, numpy arrays out. They know nothing else of tailwise."""
