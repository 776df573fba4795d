"""Formulas as MathML, which browsers show by themselves: no script, no font, no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import latex2mathml


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(latex2mathml.tex2mathml(node.astext()))
    raise nodes.SkipNode


def _display(writer: Any, node: nodes.math_block) -> None:
    formula = latex2mathml.tex2mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="formula" tabindex="0">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
