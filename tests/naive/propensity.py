"""Plain twins of the propensity formulas."""

import math


def jain_propensity(counts, n_samples, a, b):
    c = (math.log(n_samples) - 1) * (b + 1) ** a
    return [1 / (1 + c * math.exp(-a * math.log(n + b))) for n in counts]


def descendants_of(label, pairs):
    found, todo = set(), [label]
    while todo:
        parent = todo.pop()
        for child, its_parent in pairs:
            if its_parent == parent and child not in found:
                found.add(child)
                todo.append(child)
    return found - {label}


def hierarchy_rates(rows, pairs, n_labels, min_descendants):
    """Label → (rows that carry it, rows that carry it or a descendant)."""
    rates = {}
    for label in range(n_labels):
        below = descendants_of(label, pairs)
        relevant = sum(bool({label, *below} & set(row)) for row in rows)
        if len(below) >= min_descendants and relevant:
            rates[label] = (sum(label in row for row in rows), relevant)
    return rates


def substitute_rates(rows, viewed, n_labels):
    """Label → (items it was bought with, these and all items viewed together with them)."""
    n = len(rows)
    together = [{j for j in range(n) if j != i and (viewed[i][j] or viewed[j][i])} for i in range(n)]
    rates = {}
    for label in range(n_labels):
        items = [i for i in range(n) if label in rows[i]]
        if items and all(together[i] for i in items):
            rates[label] = (len(items), len(set(items).union(*(together[i] for i in items))))
    return rates
