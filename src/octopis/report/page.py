"""A self-contained HTML page of text, tables and pictures: nothing in it has to be fetched."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}

_CSS = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1c2026; background: #fff;
       max-width: 66rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin-bottom: .4rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; padding-top: .8rem; border-top: 1px solid #dfe3e8; }
p { max-width: 46rem; }
.lead { font-size: 1.1rem; color: #444b55; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
caption { text-align: left; color: #444b55; padding-bottom: .4rem; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid #e6e9ed; text-align: left;
         vertical-align: top; }
th { border-bottom: 2px solid #9aa3ad; white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.good { color: #0b6b4d; font-weight: 600; }
td.bad { color: #a33a00; font-weight: 600; }
figure { margin: 1.2rem 0; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #444b55; font-size: .9rem; max-width: 46rem; }
code { background: #f1f3f5; padding: .1rem .3rem; border-radius: 3px; }
nav a { margin-right: 1rem; }
@media print { body { max-width: none; margin: 0; } h2 { break-after: avoid; }
               figure, tr { break-inside: avoid; } }
"""


class Page:
    """Collects the parts of a page in their order; all text is escaped here."""

    def __init__(self, title: str, lead: str = "") -> None:
        self._title = title
        self._lead = lead
        self._sections: list[str] = []
        self._parts: list[str] = []

    def section(self, title: str) -> None:
        """Begin a section, to which the contents at the top lead."""
        self._sections.append(title)
        self._parts.append(f'<h2 id="s{len(self._sections)}">{escape(title)}</h2>')

    def paragraph(self, text: str) -> None:
        """Add a paragraph; words between backticks are set as code."""
        self._parts.append(f"<p>{_marked(text)}</p>")

    def table(
        self, columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = ""
    ) -> None:
        """Add a table. Numbers stand at the right; a cell may be a (class, text) pair."""
        head = "".join(f"<th>{_marked(column)}</th>" for column in columns)
        body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>\n" for row in rows)
        title = f"<caption>{_marked(caption)}</caption>" if caption else ""
        self._parts.append(
            f'<div class="table"><table>{title}<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}</tbody></table></div>"
        )

    def figure(self, picture: Path, caption: str) -> None:
        """Add a picture (PNG or SVG), which becomes part of the page."""
        data = b64encode(picture.read_bytes()).decode("ascii")
        address = f"data:{_TYPES[picture.suffix]};base64,{data}"
        self._parts.append(
            f'<figure><img src="{address}" alt="{escape(caption)}">'
            f"<figcaption>{_marked(caption)}</figcaption></figure>"
        )

    def text(self) -> str:
        """Return the page."""
        links = "".join(
            f'<a href="#s{number}">{escape(title)}</a> '
            for number, title in enumerate(self._sections, 1)
        )
        lead = f'<p class="lead">{_marked(self._lead)}</p>' if self._lead else ""
        body = "\n".join(self._parts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self._title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
            f"<h1>{escape(self._title)}</h1>\n{lead}\n<nav>{links}</nav>\n{body}\n"
            "</body>\n</html>\n"
        )


def _cell(value: object) -> str:
    if isinstance(value, tuple):
        kind, text = value
        return f'<td class="{escape(str(kind))}">{_marked(str(text))}</td>'
    if isinstance(value, int | float):
        shown = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
        return f'<td class="number">{shown}</td>'
    return f"<td>{_marked(str(value))}</td>"


def _marked(text: str) -> str:
    """Escape text, and set what stands between backticks as code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner means itself
        return escape(text)
    return "".join(
        f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts)
    )
