"""The experiments by name."""

from __future__ import annotations

from importlib import import_module

from tailwise.experiments.running import Experiment
from tailwise.validation import check_choice

_MODULES = {
    "losses": "loss_correction",
    "dropping": "label_dropping",
    "guess": "propensity_guess",
    "loop": "loop",
    "images": "image_sampling",
}

QUESTIONS = {
    "losses": "What are unbiased and convex losses worth when training labels go missing at a known rate?",
    "dropping": "Do propensities help to judge and to train models when labels go missing along a propensity curve?",
    "guess": "Does the ranking of models by PSP@5 survive a wrong guess of the propensity's A and B?",
    "loop": "What do rounds of questions to people tell about missing labels, and what does a model learn from them?",
    "images": "Do samplers and weightings of negatives favour head or tail labels of images as the theory says?",
}
"""What each experiment asks; known without importing it."""


def load_experiment(name: str) -> Experiment:
    """The experiment of that name.

    >>> load_experiment("guess").name
    'guess'
    """
    return import_module(f"tailwise.experiments.{_MODULES[check_choice('experiment', name, _MODULES)]}").EXPERIMENT
