"""How results are shown: tables in a terminal, a file, a page and a notebook; models in a line; anything as JSON."""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

_CONTROLS = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)
_SPELLED = {code: repr(chr(code))[1:-1] for code in _CONTROLS}
_SPELLED_IN_HTML = {code: spelled for code, spelled in _SPELLED.items() if chr(code) not in "\t\n\r"}
MARKS = {"better": "▲", "worse": "▼", "unclear": "="}
"""What stands behind a difference, in every form of a table."""


def visible(text: str) -> str:
    """``text`` on one line, with the characters that steer a terminal or turn the writing direction spelled out.

    >>> print(visible("law\\n\\x1b[2J of the sea"))
    law\\n\\x1b[2J of the sea
    """
    return text.translate(_SPELLED)


def html_text(text: str) -> str:
    """``text`` for an HTML page, with the characters that turn the writing direction or are invisible spelled out.

    >>> html_text("a < b\\n\\u202ec")
    'a &lt; b\\n\\\\u202ec'
    """
    return escape(text.translate(_SPELLED_IN_HTML))


class Cell(NamedTuple):
    """A cell of more than one part: its text, a quieter detail such as an interval, and a verdict of :data:`MARKS`.

    >>> str(Cell("+1.20", "[+0.30, +2.10]", "better"))
    '+1.20 [+0.30, +2.10] ▲'
    """

    text: str
    detail: str = ""
    verdict: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.text, self.detail, MARKS.get(self.verdict))))


class Table(NamedTuple):
    """A titled table: the first ``left`` columns are left-aligned, the others right; notes stand below.

    Cells are :class:`Cell` or anything that ``str`` makes a text of. The title may be empty.

    >>> print(Table("Scores", ["metric", "value"], [["p@1", "83.3"], ["coverage@5", "4.0"]], ["percent"]))
    Scores
    metric      value
    p@1          83.3
    coverage@5    4.0
    percent
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()
    left: int = 1

    def __str__(self) -> str:
        lines = [[visible(str(cell)) for cell in line] for line in [self.header, *self.rows]]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = (
            "  ".join(
                cell.ljust(width) if place < self.left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        )
        return "\n".join([*([visible(self.title)] if self.title else []), *text, *map(visible, self.notes)])

    def markdown(self) -> str:
        r"""The table in Markdown, its title as a heading.

        >>> print(Table("", ["label", "n"], [["a|b", 3]]).markdown())
        | label | n |
        |---|---:|
        | a\|b | 3 |
        """
        ruler = "".join("---|" if place < self.left else "---:|" for place in range(len(self.header)))
        head, *body = (
            "| " + " | ".join(visible(str(cell)).replace("|", r"\|") for cell in line) + " |"
            for line in [self.header, *self.rows]
        )
        heading = [f"# {visible(self.title)}", ""] if self.title else []
        notes = [line for note in self.notes for line in ("", visible(note))]
        return "\n".join([*heading, head, "|" + ruler, *body, *notes])

    def html(self) -> str:
        """The table as an HTML fragment that scrolls sideways on a narrow screen, by finger and by keyboard."""
        head = "".join(
            f'<th scope="col"{self._css(place)}>{html_text(name)}</th>' for place, name in enumerate(self.header)
        )
        body = "".join(
            "<tr>"
            + "".join(f"<td{self._css(place, cell)}>{_html(cell)}</td>" for place, cell in enumerate(row))
            + "</tr>"
            for row in self.rows
        )
        caption = f"<caption>{html_text(self.title)}</caption>" if self.title else ""
        notes = "".join(f"<div>{html_text(note)}</div>" for note in self.notes)
        return (
            f'<div class="scroll" tabindex="0" role="region" aria-label="{html_text(self.title or "table")}"><table>'
            f"{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{notes}"
        )

    def rich(self) -> Any:
        """The table as something that ``rich.print`` shows."""
        from rich import box, table
        from rich.console import Group
        from rich.markup import escape as without_markup

        def text(cell: object) -> str:
            return without_markup(visible(str(cell)))

        shown = table.Table(title=text(self.title) or None, box=box.SIMPLE_HEAD, title_justify="left")
        for place, name in enumerate(self.header):
            shown.add_column(text(name), justify="left" if place < self.left else "right", no_wrap=place < self.left)
        for row in self.rows:
            shown.add_row(*map(text, row))
        return Group(shown, *map(text, self.notes))

    def _css(self, place: int, cell: object = "") -> str:
        names = [*(["text"] if place < self.left else []), *([cell.verdict] if isinstance(cell, Cell) else [])]
        return f' class="{" ".join(names)}"' if any(names) else ""


def _html(cell: object) -> str:
    if not isinstance(cell, Cell):
        return html_text(str(cell))
    parts = (
        html_text(cell.text),
        f"<small>{html_text(cell.detail)}</small>" if cell.detail else "",
        MARKS.get(cell.verdict),
    )
    return " ".join(filter(None, parts))


class Printable:
    """Shows an object's ``table()`` in print, rich and notebooks, and gives its numbers as a data frame."""

    def table(self) -> Table:
        """What is shown."""
        raise NotImplementedError

    def records(self) -> list[dict[str, Any]]:
        """What is shown as numbers: one dict a line, with the same keys in all."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """The numbers as a pandas DataFrame, one line for each of ``records()``."""
        # Imported only now: errors.py brings scikit-learn, which the command's --help must not wait for.
        from tailwise.errors import import_extra

        return import_extra("pandas", "report", f"{type(self).__name__}.to_frame").DataFrame(self.records())

    def __str__(self) -> str:
        return str(self.table())

    def __rich__(self) -> Any:
        return self.table().rich()

    def _repr_html_(self) -> str:
        return self.table().html()


def describe(estimator: Any) -> str:
    """Class name with the parameters that differ from their defaults; ``n_jobs`` changes nothing and is left out.

    >>> from tailwise import Centroid
    >>> describe(Centroid(n_jobs=2))
    'Centroid()'
    """
    defaults = {name: parameter.default for name, parameter in inspect.signature(type(estimator)).parameters.items()}
    shown = []
    for name, value in estimator.get_params(deep=False).items():
        if name != "n_jobs" and not _same(defaults.get(name, inspect.Parameter.empty), value):
            shown.append(f"{name}={describe(value) if hasattr(value, 'get_params') else repr(value)}")
    return f"{type(estimator).__name__}({', '.join(shown)})"


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False


def plain(value: Any) -> Any:
    """``value`` made of what JSON knows: NaN and infinities become None, numpy values plain ones.

    >>> plain({"a": (1, float("nan"))})
    {'a': [1, None]}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return repr(value)
