"""What the site needs beside its pages: formulas as MathML, notebooks run, docstrings as pages have them.

MkDocs calls the ``on_…`` functions, and griffe, which reads docstrings, calls :class:`Docstrings`. Nothing is fetched,
neither here nor by the reader's browser.
"""

from __future__ import annotations

import ast
import contextlib
import html
import io
import json
import re
from pathlib import Path
from typing import Any

import griffe
import matplotlib
from latex2mathml.converter import convert

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):`([^`<]+)`")
MATH = re.compile(r"^```math\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
NOTEBOOK = re.compile(r"^--notebook-- (\S+)$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Formulas become MathML, and the name of a notebook what running it shows."""
    folder = Path(page.file.abs_src_path).parent
    markdown = NOTEBOOK.sub(lambda found: run_notebook(folder / found[1]), markdown)
    return MATH.sub(lambda found: formula(found[1]), markdown)


def formula(latex: str) -> str:
    """A displayed formula, a line each, that scrolls where it is wider than the page."""
    lines = "".join(convert(line, display="block") for line in latex.splitlines())
    return f'<div class="formula">{lines}</div>'


def run_notebook(path: Path) -> str:
    """The cells of a notebook as Markdown, each with what it printed, returned and drew; an error ends the build."""
    matplotlib.use("svg")
    space: dict[str, Any] = {"__name__": "__main__"}
    pieces = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            pieces.append(source)
        else:
            pieces += [f"```python\n{source}\n```", *run_cell(source, space)]
    return "\n\n".join(pieces)


def run_cell(source: str, space: dict[str, Any]) -> list[str]:
    """Run one cell in ``space`` as a notebook does: the value of a last expression is shown."""
    tree = ast.parse(source)
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), space)
        value = None if last is None else eval(compile(last, "<cell>", "eval"), space)
    shown = [f"```text\n{printed.getvalue().rstrip()}\n```"] if printed.getvalue().strip() else []
    if hasattr(value, "_repr_html_"):
        shown.append(f'<div class="output">{value._repr_html_()}</div>')
    elif value is not None and not hasattr(value, "figure"):
        shown.append(f"```text\n{value!r}\n```")
    return [*shown, *drawn()]


def drawn() -> list[str]:
    """The open figures as inline SVG; they are closed."""
    import matplotlib.pyplot as plt

    pictures = []
    for number in plt.get_fignums():
        file = io.StringIO()
        plt.figure(number).savefig(file, format="svg", metadata={"Date": None})
        svg = file.getvalue()
        pictures.append(f'<div class="plot">{svg[svg.index("<svg") :]}</div>'.replace("\n\n", "\n"))
    plt.close("all")
    return pictures


class Docstrings(griffe.Extension):
    """Docstrings as the site shows them: roles as links, and each of several parameters in a line of its own."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the text before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(linked(separated(obj.docstring.value), obj))


def separated(text: str) -> str:
    """``a, b : int`` under Parameters as two entries, because one would show the first one's type for all.

    >>> print(separated("Parameters\\n----------\\na, b : int\\n    As in X.\\n"))
    Parameters
    ----------
    a : int
        As in X.
    b : int
        As in X.
    """
    found = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n[A-Z][a-z]+\n---|\Z)", text, re.MULTILINE | re.DOTALL)
    if not found:
        return text
    entries = re.split(r"^(?=\S)", found[1], flags=re.MULTILINE)
    return text[: found.start(1)] + "".join(map(_each, entries)) + text[found.end(1) :]


def _each(entry: str) -> str:
    names, newline, body = entry.partition("\n")
    names, colon, kind = names.partition(" : ")
    if ", " not in names:
        return entry
    return "".join(f"{name}{colon}{kind}{newline}{body.rstrip()}\n" for name in names.split(", "))


def fenced(text: str) -> str:
    """Examples that stand in the text, not under a heading of their own, as blocks of code.

    >>> print(fenced("Adds.\n\n>>> 1 + 1\n2").replace("`", "'"))
    Adds.
    <BLANKLINE>
    '''pycon
    >>> 1 + 1
    2
    '''
    """
    before, heading, examples = text.partition("Examples\n--------")
    paragraphs = re.split(r"\n{2,}", before)
    shown = [f"```pycon\n{part}\n```" if part.startswith(">>>") else part for part in paragraphs]
    return "\n\n".join(shown) + heading + examples


def linked(text: str, obj: griffe.Object) -> str:
    """Roles such as ``:class:`DiSMEC``` as links to what they name, where the site has it."""

    def link(found: re.Match[str]) -> str:
        target = found[1].lstrip("~")
        shown = target.rpartition(".")[2] if found[1].startswith("~") else target.removeprefix("tailwise.")
        with contextlib.suppress(Exception):
            target = obj.resolve(target)
        return f'<autoref optional identifier="{target}"><code>{html.escape(shown)}</code></autoref>'

    return ROLE.sub(link, text)
