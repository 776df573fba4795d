"""Numba kernels: numpy arrays in, numpy arrays out. They know nothing else of tailwise.

What Python calls is compiled with all that it calls (:mod:`tailwise.kernels.compilation`), once for each kind of
arguments: callers see to it that there is one kind. Loops compile in a fraction of the time of numpy's forms:
``a[:] = b`` of arrays brings numba's strings along, ``sort`` and ``argsort`` a dozen functions (there is
:func:`~tailwise.kernels.sparse.sorting.sort_keys`), a new kind of ``np.zeros`` three (there are ``empty`` and ``zeros``
in :mod:`tailwise.kernels.arrays`), ``min`` and ``max`` one for each kind of numbers. A slice takes thrice the time of
a :func:`~tailwise.kernels.arrays.part`. What an argument serves for is left out where it is None and is asked for by
``is not None``. So many arrays as :class:`~tailwise.kernels.trees.layout.Chunks` has take a twentieth of a second in
each function that they come to.

A kernel trusts its arrays (``boundscheck=False``); whoever calls has checked them. Inputs may be read-only, and callers
make them so (:mod:`tailwise.kernels.arrays`), that arrays of memory and of mapped files run the same compiled code.
"""
