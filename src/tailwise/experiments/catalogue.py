"""The experiments by name."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tailwise.experiments.running import Experiment
from tailwise.validation import check_choice

_MODULES = {
    "losses": "loss_correction",
    "dropping": "label_dropping",
    "guess": "propensity_guess",
    "loop": "loop",
    "powerlaw": "power_law",
    "curves": "loss_curves",
    "hierarchy": "hierarchy_propensity",
    "frequency": "gain_by_frequency",
    "tail-classifiers": "tail_classifiers",
    "norms": "weight_norms",
    "augmentation": "tail_augmentation",
    "dense": "dense_features",
    "bottleneck": "bottleneck",
    "overfitting": "overfitting",
    "glas": "glas_settings",
    "images": "image_sampling",
}

QUESTIONS = {
    "losses": "What are unbiased and convex losses worth when training labels go missing at a known rate?",
    "dropping": "Do propensities help to judge and to train models when labels go missing along a propensity curve?",
    "guess": "Does the ranking of models by PSP@5 survive a wrong guess of the propensity's A and B?",
    "loop": "What do rounds of questions to people tell about missing labels, and what does a model learn from them?",
    "powerlaw": "Do label counts follow a power law, and with which exponent?",
    "curves": "What does an observed label pay by its score, in plain, unbiased and convex losses?",
    "hierarchy": "Which propensities does a hierarchy of labels tell, and are they the true ones?",
    "frequency": "For which labels do propensities gain, by how often a label is seen in training?",
    "tail-classifiers": "What do tail classifiers gain by maximum likelihood over the mean of a label's rows?",
    "norms": "Does the norm of a label's weights follow its frequency, and how often it is predicted?",
    "augmentation": "What do copies of the tail's rows change: how many, of which labels, made how?",
    "dense": "What do re-ranking and augmentation add to models on dense features?",
    "bottleneck": "How many dimensions do vectors of labels need, drawn at random or trained?",
    "overfitting": "How do training and test accuracy of an embedding move by epoch, with and without regularisers?",
    "glas": "What does each part of GLaS's published setting bring?",
    "images": "Do samplers and weightings of negatives favour head or tail labels of images as the theory says?",
}
"""What each experiment asks; known without importing it."""


def load_experiment(name: str) -> Experiment:
    """The experiment of that name.

    Its module defines ``choose``, ``cells``, ``prepare``, ``compute`` and ``summarise``; ``OPTIONS`` that ``choose``
    understands, ``("data",)`` unless it says otherwise; and ``CELLS_AT_ONCE = True`` where a cell takes one thread.

    >>> load_experiment("guess").name
    'guess'
    """
    return experiment_of(import_module(f"tailwise.experiments.{_MODULES[check_choice('experiment', name, _MODULES)]}"))


def experiment_of(module: ModuleType) -> Experiment:
    """The experiment that a module defines."""
    name = next(name for name, home in _MODULES.items() if module.__name__.endswith(f".{home}"))
    parts = {part: getattr(module, part) for part in ("choose", "cells", "prepare", "compute", "summarise")}
    options = getattr(module, "OPTIONS", ("data",))
    return Experiment(name, QUESTIONS[name], **parts, options=options, cells_at_once=hasattr(module, "CELLS_AT_ONCE"))
