"""Claims on the page and as files: the paper's, and beside them our own, each marked as what it is.

Both stand in tables of the same shape; only what ours is held against differs.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from octopis.evaluation.claims import Outcome
from octopis.evaluation.tables import notes_of, shown, value_over_seeds, write_csv
from octopis.report.page import Link, Page

VERDICTS = {
    "near": ("good", "yes, near"),
    "smaller": ("good", "yes, smaller"),
    "larger": ("good", "yes, larger"),
    "holds": ("good", "yes"),
    "not reproduced": ("bad", "not reproduced"),
    "not held": ("bad", "not held"),
}

OVER_SEEDS = "over seeds"


class Kind(NamedTuple):
    """Whose claims a table holds, and what it says of them."""

    title: str
    against: str
    """What ours is held against: the title of its column."""
    verdict: str
    file: str
    note: str
    """What the number of a reason begins with: there are two lists of them on one page."""


THE_PAPERS = Kind("The paper's claims", "paper", "direction holds", "claims", "")
OURS = Kind("Our own claims: target routing", "goal", "holds", "claims-tnr", "T")


def against(found: Outcome) -> str:
    """Return what a claim's figure is held against, as people read it."""
    claim = found.claim
    if claim.goal:
        return claim.goal
    return "" if claim.paper is None else f"{claim.paper:g}"


def add_claims(page: Page, kind: Kind, outcomes: Sequence[Outcome], *, has_seeds: bool) -> None:
    """Add the table of claims with the reasons below it."""
    notes = notes_of(outcomes)
    columns = ["where", "claim", "", kind.against, "ours", OVER_SEEDS, kind.verdict, "why"]
    rows = [_row(each, notes, kind) for each in outcomes]
    if not has_seeds:
        place = columns.index(OVER_SEEDS)
        columns.pop(place)
        rows = [(*row[:place], *row[place + 1 :]) for row in rows]
    page.table(columns, rows)
    page.files("As files:", [Link(f"{kind.file}.csv", f"tables/{kind.file}.csv"), _RUNS])
    for reason, number in notes.items():
        name = f"{kind.note}{number}"
        page.paragraph(f"[{name}] {reason}", anchor=f"reason-{name}")


_RUNS = Link("every run", "tables/runs.csv")


def write_claims(folder: Path, kind: Kind, outcomes: Sequence[Outcome]) -> None:
    """Leave claims as a CSV file, with the whole reason in each row."""
    rows = [
        (
            each.claim.where,
            each.claim.text,
            each.claim.unit,
            each.claim.goal or each.claim.paper,
            each.ours,
            min(each.values, default=None),
            max(each.values, default=None),
            each.direction_holds,
            each.verdict,
            each.reason,
        )
        for each in outcomes
    ]
    names = f"where claim unit {kind.against} ours ours_min ours_max direction_holds verdict reason"
    write_csv(folder / f"{kind.file}.csv", names.split(), rows)


def _row(found: Outcome, notes: dict[str, int], kind: Kind) -> tuple[object, ...]:
    claim = found.claim
    number = notes.get(found.reason)
    name = f"{kind.note}{number}"
    note: object = Link(f"[{name}]", f"#reason-{name}") if number else ""
    return (
        claim.where,
        claim.text,
        claim.unit,
        ("number", against(found)),
        ("number", shown(found.ours, claim.unit)),
        ("number", value_over_seeds(found)),
        VERDICTS[found.verdict],
        note,
    )
