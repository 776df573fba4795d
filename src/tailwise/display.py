"""Small tables that look right in a terminal, in a file and in a notebook."""

from __future__ import annotations

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


def visible(text: str) -> str:
    """``text`` on one line, with the characters that steer a terminal or turn the writing direction spelled out.

    >>> print(visible("law\\n\\x1b[2J of the sea"))
    law\\n\\x1b[2J of the sea
    """
    return text.translate(_SPELLED)


class Table(NamedTuple):
    """A titled table of strings: the first column is left-aligned, the others right; notes stand below.

    >>> print(Table("Scores", ["metric", "value"], [["p@1", "83.3"], ["coverage@5", "4.0"]], ["percent"]))
    Scores
    metric      value
    p@1          83.3
    coverage@5    4.0
    percent
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        lines = [[visible(cell) for cell in line] for line in (self.header, *self.rows)]
        widths = [max(len(line[c]) for line in lines) for c in range(len(self.header))]
        text = [
            "  ".join(
                [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))]
            )
            for line in lines
        ]
        return "\n".join([self.title, *(line.rstrip() for line in text), *self.notes])

    def html(self) -> str:
        """The table as an HTML fragment."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        notes = "".join(f"<div>{escape(note)}</div>" for note in self.notes)
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{notes}"
        )

    def rich(self) -> Any:
        """The table as something that ``rich.print`` shows."""
        from rich import box, table
        from rich.console import Group
        from rich.markup import escape as plain

        shown = table.Table(title=plain(self.title), box=box.SIMPLE_HEAD, title_justify="left")
        for position, cell in enumerate(self.header):
            shown.add_column(plain(cell), justify="right" if position else "left", no_wrap=position == 0)
        for row in self.rows:
            shown.add_row(*(plain(visible(cell)) for cell in row))
        return Group(shown, *map(plain, self.notes))


class Printable:
    """Shows an object's ``table()`` in print, rich and notebooks."""

    def table(self) -> Table:
        """What is shown."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.table())

    def __rich__(self) -> Any:
        return self.table().rich()

    def _repr_html_(self) -> str:
        return self.table().html()
