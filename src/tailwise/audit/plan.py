"""A plan: the pool, the questions drawn from it, and what they can and cannot tell."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.audit.drawing import CERTAIN, DOUBLES, QUESTIONS, RECORDED, Cells, Questions, draw_questions
from tailwise.audit.pool import FLOOR, STRATA, WIDTH, Pool, make_pool
from tailwise.base import XMCModel
from tailwise.display import Printable, Table
from tailwise.propensity import resolve_propensity
from tailwise.validation import as_rng, check_features, check_labels, check_number


class Settings(NamedTuple):
    """How a plan was made."""

    n_questions: int = QUESTIONS
    width: int = WIDTH
    floor: float = FLOOR
    certain: float = CERTAIN
    recorded: float = RECORDED
    doubles: float = DOUBLES
    n_folds: int = 3
    seed: int = 0


class _Parts(NamedTuple):
    pool: Pool
    questions: Questions
    cells: Cells
    settings: Settings


class Plan(Printable, _Parts):
    """Questions for people, drawn so that their answers tell how much is missing: ``print`` shows what they can tell.

    ``pool`` is what they were drawn from, ``cells`` what its parts add up to, ``settings`` how it was made.
    """

    __slots__ = ()

    def table(self) -> Table:
        """By stratum: what is recorded, what is probably missing, what is asked, and how much the pool cannot see."""
        asked, reach = self.questions, self.pool.reach_by_stratum()
        strata, own = self.pool.strata[self.pool.labels], self.pool.strata[self.pool.recorded_labels]
        rows = []
        for s, name in enumerate(STRATA):
            mine = asked.stratum == s
            certain = mine & ~asked.recorded & (asked.probability >= 1)
            rows.append(
                [
                    name,
                    f"{int((own == s).sum()):,}",
                    f"{int((strata == s).sum()):,}",
                    f"{float(self.pool.missing[strata == s].sum()):,.0f}",
                    f"{int(certain.sum()):,}",
                    f"{int((mine & ~asked.recorded & ~certain).sum()):,}",
                    f"{int((mine & asked.recorded).sum()):,}",
                    f"{100 * reach[name]:.0f} %" if reach[name] == reach[name] else "–",
                ]
            )
        header = ["labels", "recorded", "pool", "expected missing", "certain", "sampled", "recorded asked", "reach"]
        title = f"{asked.rows.size:,} questions, {int(asked.double.sum()):,} of them for two reviewers"
        return Table(title, header, rows, self.limits())

    def limits(self) -> list[str]:
        """What the answers will and will not tell, with figures."""
        held = np.where(self.pool.recorded_seen > 0, self.pool.reach_of(self.pool.recorded_seen), 0.0)
        reach = float(held.mean()) if held.size else float("nan")
        unseen = int((self.pool.label_counts == 0).sum())
        lines = [
            "The answers tell, without any assumption on how labels go missing: the share of wrong labels, the missing "
            f"labels in the pool, and the true P@1 to P@5 of the model on these {self.pool.n_rows:,} rows.",
            f"The pool holds {100 * reach:.1f} % of the labels that are recorded, ranked as if they were not. Missing "
            f"labels outside it are never asked about: the propensity by the pool alone is an upper bound, up to "
            f"{1 / max(reach, 1e-9):.2f} times too few missing labels. The estimate adds them by that share, which is "
            "right where labels go missing regardless of how easily the model finds them.",
        ]
        if unseen:
            lines.append(f"{unseen:,} labels that no training row has cannot be asked about, and are in no estimate.")
        return lines

    def records(self) -> list[dict[str, Any]]:
        """One record a question."""
        return [
            dict(zip(Questions._fields, values, strict=True))
            for values in zip(*map(np.ndarray.tolist, self.questions), strict=True)
        ]


def plan_audit(
    model: XMCModel, X: Any, Y: Any, *, propensity: Any = None, settings: Settings | None = None, **changes: Any
) -> Plan:
    """Plan an audit of the training rows ``X, Y`` of an unfitted ``model``: what to ask people about missing labels.

    Every row is scored by a clone of ``model`` that was trained on the other folds; scores become probabilities by
    calibration. ``propensity`` is the guess that turns them into chances to be missing (None: ``JainPropensity()``).
    ``changes`` are fields of :class:`Settings`, such as ``n_questions=300, seed=1``. Costs ``n_folds`` trainings.

    Examples
    --------
    >>> from tailwise import Centroid, make_longtail
    >>> data = make_longtail(300, 100, 20, test_fraction=0, random_state=0)
    >>> plan = plan_audit(Centroid(), data.X_train, data.Y_train, n_questions=60)
    >>> bool((plan.questions.probability <= 1).all())
    True
    """
    made = (settings or Settings())._replace(**changes)
    X = check_features(X)
    labels: sparse.csr_array = check_labels(Y, n_rows=X.shape[0])
    check_settings(made)
    known = resolve_propensity(propensity, labels)
    pool = make_pool(
        model, X, labels, known, width=made.width, floor=made.floor, n_folds=made.n_folds, random_state=made.seed
    )
    return plan_questions(pool, made)


def check_settings(settings: Settings) -> None:
    """Refuse settings that no plan can be made with, before anything is trained."""
    check_number("n_questions", settings.n_questions, integer=True, low=10)
    check_number("width", settings.width, integer=True, low=1)
    check_number("floor", settings.floor, low=0, high=1, open_low=True, open_high=True)
    check_number("n_folds", settings.n_folds, integer=True, low=2)
    check_number("seed", settings.seed, integer=True, low=0, high=2**31 - 1)
    for name in ("certain", "recorded", "doubles"):
        check_number(name, getattr(settings, name), low=0, high=1, open_high=name != "doubles")


def plan_questions(pool: Pool, settings: Settings, random_state: Any = None) -> Plan:
    """Draw questions from a pool that is there already; ``random_state`` in place of the seed of ``settings``."""
    rng = as_rng(settings.seed if random_state is None else random_state)
    questions, cells = draw_questions(
        pool,
        settings.n_questions,
        certain=settings.certain,
        recorded=settings.recorded,
        doubles=settings.doubles,
        floor=settings.floor,
        random_state=rng,
    )
    return Plan(pool, questions, cells, settings)
