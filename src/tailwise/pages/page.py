"""HTML pieces and the page that holds them: one file, inline style, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files

from tailwise.display import html_text

_MARKS = ("●", "■", "◆")


def tags(text: object) -> str:
    """Text made safe for HTML."""
    return html_text(str(text))


def legend(names: Sequence[str]) -> str:
    """Which mark belongs to which series; nothing for a single one."""
    if len(names) < 2:
        return ""
    items = (
        f'<li class="s{i % 6}"><span>{_MARKS[i % 3]}</span><b>{tags(name)}</b></li>' for i, name in enumerate(names)
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def figure(svg: str, caption: str, names: Sequence[str] = (), numbers: str = "") -> str:
    """A chart with its legend, its caption and, folded away, its numbers as a table."""
    details = f"<details><summary>The numbers as a table</summary>{numbers}</details>" if numbers else ""
    return f"<figure>{legend(names)}{svg}<figcaption>{tags(caption)}</figcaption>{details}</figure>"


def plots(*figures: str) -> str:
    """Figures side by side where there is room."""
    return f'<div class="plots">{"".join(figures)}</div>'


def cards(pairs: Iterable[tuple[str, str]]) -> str:
    """A row of small cards: name and value."""
    pieces = (f"<div><dt>{tags(name)}</dt><dd>{tags(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{"".join(pieces)}</dl>'


def page(title: str, lead: str, sections: Sequence[tuple[str, str, str]], footer: str) -> str:
    """The whole file from (anchor, heading, content) sections."""
    style = files("tailwise.pages").joinpath("style.css").read_text(encoding="utf-8")
    links = "".join(f'<li><a href="#{anchor}">{tags(heading)}</a></li>' for anchor, heading, _ in sections)
    body = "".join(
        f'<section id="{anchor}" aria-labelledby="{anchor}-h"><h2 id="{anchor}-h">{tags(heading)}</h2>'
        f"{content}</section>"
        for anchor, heading, content in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{tags(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header><h1>{tags(title)}</h1>{lead}<nav aria-label="Sections"><ul>{links}</ul></nav></header>
<main id="content">{body}</main>
<footer><p class="soft">{tags(footer)}</p></footer>
</body>
</html>
"""
