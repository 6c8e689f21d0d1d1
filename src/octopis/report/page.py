"""A self-contained HTML page of text, tables and pictures: nothing in it has to be fetched."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

_MANY_COLUMNS = 5
"""From so many on, a table does not fit a narrow screen as a table."""

_NUMBER = ' class="number"'
_TYPES = {".png": "image/png", ".svg": "image/svg+xml"}

_CSS = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1c2026; background: #fff;
       max-width: 66rem; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin-bottom: .4rem; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .6rem; padding-top: .8rem; border-top: 1px solid #dfe3e8; }
p { max-width: 46rem; }
.lead { font-size: 1.1rem; color: #444b55; }
.note { border-left: 4px solid #c8500a; background: #fdf3ec; padding: .6rem .9rem; }
.table { margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
caption { text-align: left; color: #444b55; padding-bottom: .4rem; }
th, td { padding: .35rem .7rem; border-bottom: 1px solid #e6e9ed; text-align: left;
         vertical-align: top; }
th { border-bottom: 2px solid #9aa3ad; vertical-align: bottom; }
th.group { border-bottom: 1px solid #c9cfd6; text-align: center; }
th.number { text-align: right; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.good { color: #0b6b4d; font-weight: 600; }
td.bad { color: #a33a00; font-weight: 600; }
figure { margin: 1.2rem 0; }
figure img { max-width: 100%; height: auto; }
figcaption { color: #444b55; font-size: .9rem; max-width: 46rem; }
code { background: #f1f3f5; padding: .1rem .3rem; border-radius: 3px; }
nav a { margin-right: 1rem; }
table.wide { width: 100%; }
table.wide th, table.wide td { padding: .35rem .5rem; }
/* No column may be out of sight: on a narrow screen, a row of many becomes a block of lines. */
@media screen and (max-width: 48rem) {
  table.wide thead { display: none; }
  table.wide tr { display: block; border-bottom: 2px solid #9aa3ad; padding: .4rem 0; }
  table.wide td, table.wide td.number { display: flex; justify-content: space-between; gap: 1rem;
    border: 0; padding: .1rem 0; text-align: right; white-space: normal; }
  table.wide td::before { content: attr(data-label); color: #444b55; font-weight: 400;
    text-align: left; flex: none; max-width: 65%; }
  table.wide td:first-child { font-weight: 600; }
  table.wide td:empty { display: none; }
}
@media print { body { max-width: none; margin: 0; padding: 0; font-size: 10.5pt; }
               h2 { break-after: avoid; } figure, tr { break-inside: avoid; }
               table { font-size: 8.5pt; } th, td { padding: .2rem .35rem; }
               nav, .files { display: none; } .note { border: 1px solid #c8500a; } }
"""


class Link(NamedTuple):
    """Text that leads to a place of the page (#id), or to a file beside it."""

    text: str
    address: str


class Page:
    """Collects the parts of a page in their order; all text is escaped here.

    `cautions` stand above everything else: what one has to know before one believes the rest.
    """

    def __init__(self, title: str, lead: str = "", cautions: Sequence[str] = ()) -> None:
        self._title = title
        self._lead = lead
        self._cautions = cautions
        self._sections: list[str] = []
        self._parts: list[str] = []

    def section(self, title: str) -> None:
        """Begin a section, to which the contents at the top lead."""
        self._sections.append(title)
        self._parts.append(f'<h2 id="s{len(self._sections)}">{escape(title)}</h2>')

    def paragraph(self, text: str, anchor: str = "") -> None:
        """Add a paragraph; words between backticks are code, and links may lead to `anchor`."""
        name = f' id="{escape(anchor)}"' if anchor else ""
        self._parts.append(f"<p{name}>{_marked(text)}</p>")

    def files(self, text: str, links: Iterable[Link]) -> None:
        """Name files that lie beside the page."""
        shown = ", ".join(_linked(link) for link in links)
        self._parts.append(f'<p class="files">{_marked(text)} {shown}</p>')

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[object]],
        caption: str = "",
        groups: Sequence[tuple[str, int]] = (),
    ) -> None:
        """Add a table. Numbers stand at the right; a cell may be a Link or a (class, text) pair.

        `groups` are headings above so many columns each, from the left; they may be empty.
        """
        over = [title for title, count in groups for _ in range(count)]
        over += [""] * (len(columns) - len(over))
        labels = [" ".join(filter(None, each)) for each in zip(over, columns, strict=True)]
        above = "".join(
            f'<th class="group" colspan="{count}">{_marked(title)}</th>' for title, count in groups
        )
        lines = [_cells(row, labels) for row in rows]
        first = lines[0] if lines else []
        right = [cell.startswith('<td class="number') for cell in first] or [False] * len(columns)
        head = "".join(
            f"<th{_NUMBER if number else ''}>{_marked(column)}</th>"
            for column, number in zip(columns, right, strict=True)
        )
        body = "".join(f"<tr>{''.join(line)}</tr>\n" for line in lines)
        title = f"<caption>{_marked(caption)}</caption>" if caption else ""
        kind = ' class="wide"' if len(columns) >= _MANY_COLUMNS else ""
        self._parts.append(
            f'<div class="table"><table{kind}>{title}<thead>'
            f"{f'<tr>{above}</tr>' if above else ''}<tr>{head}</tr></thead>\n"
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
        cautions = "".join(f'<p class="note">{_marked(each)}</p>\n' for each in self._cautions)
        body = "\n".join(self._parts)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escape(self._title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
            f"<h1>{escape(self._title)}</h1>\n{cautions}{lead}\n<nav>{links}</nav>\n{body}\n"
            "</body>\n</html>\n"
        )


def _cells(cells: Sequence[object], labels: Sequence[str]) -> list[str]:
    shown = labels if len(labels) >= _MANY_COLUMNS else [""] * len(cells)
    return [_cell(cell, label) for cell, label in zip(cells, shown, strict=True)]


def _cell(value: object, label: str) -> str:
    kind, shown = _shown(value)
    facts = f' class="{escape(kind)}"' if kind else ""
    facts += f' data-label="{escape(label)}"' if label else ""
    return f"<td{facts}>{shown}</td>"


def _shown(value: object) -> tuple[str, str]:
    """Return the class of a cell and what stands in it."""
    if isinstance(value, Link):
        return "", _linked(value)
    if isinstance(value, tuple):
        kind, text = value
        return str(kind), _marked(str(text))
    if isinstance(value, int | float):
        return "number", f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
    return "", _marked(str(value))


def _linked(link: Link) -> str:
    return f'<a href="{escape(link.address)}">{_marked(link.text)}</a>'


def _marked(text: str) -> str:
    """Escape text, and set what stands between backticks as code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner means itself
        return escape(text)
    return "".join(
        # A long name may go on in the next line, where it has an underscore.
        f"<code>{part.replace('_', '_<wbr>')}</code>" if place % 2 else part
        for place, part in enumerate(parts)
    )
