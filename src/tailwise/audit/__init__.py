"""Which labels are probably missing, what to ask a person, and what the answers say."""

from tailwise.audit.answers import VERDICTS, Answers
from tailwise.audit.drawing import Questions
from tailwise.audit.estimating import AuditEstimate, Part, estimate_audit
from tailwise.audit.plan import Plan, Settings, plan_audit, plan_questions
from tailwise.audit.pool import STRATA, Pool, make_pool, make_pool_of_new_rows, missing_chance
from tailwise.audit.records import Answer, Origin, Question
from tailwise.audit.reviewers import cohens_kappa
from tailwise.audit.simulated import simulate_answers
from tailwise.audit.store import Audit

__all__ = [
    "STRATA",
    "VERDICTS",
    "Answer",
    "Answers",
    "Audit",
    "AuditEstimate",
    "Origin",
    "Part",
    "Plan",
    "Pool",
    "Question",
    "Questions",
    "Settings",
    "cohens_kappa",
    "estimate_audit",
    "make_pool",
    "make_pool_of_new_rows",
    "missing_chance",
    "plan_audit",
    "plan_questions",
    "simulate_answers",
]
