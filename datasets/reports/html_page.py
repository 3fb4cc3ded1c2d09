"""HTML page of reports: head, style sheet (`report.css`), headline numbers and sections.

A page is self-contained: no script, no external reference; its content security policy forbids both. Texts are escaped
here; bodies are HTML, escaped by their callers.
"""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = Path(__file__).with_name("report.css")


def render_page(name: str, kind: str, about: Iterable[str], bodies: Iterable[str], style: str = "") -> str:
    """Return a complete page.

    Args:
        name: heading.
        kind: kind of report, for the window title.
        about: texts below the heading; empty ones are omitted.
        bodies: HTML, in order.
        style: additional CSS.
    """
    subtitle = " · ".join(escape(text) for text in about if text)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(name)}: {escape(kind)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<style>\n{_STYLE.read_text(encoding='utf-8')}{style}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(name)}</h1>\n<p class="sub">{subtitle}</p>\n{"".join(bodies)}\n</main>\n</body>\n</html>\n'
    )


def render_section(title: str, note: str, body: str) -> str:
    """Return a section with its heading and a note; empty without a body."""
    if not body:
        return ""
    return f'\n<section>\n<h2>{escape(title)}</h2>\n<p class="note">{escape(note)}</p>\n{body}\n</section>'


def render_tiles(numbers: Sequence[tuple[str, str]]) -> str:
    """Return headline numbers, each (label, value as text)."""
    shown = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for name, value in numbers
    )
    return f'<div class="tiles">{shown}</div>'
