"""What a demonstration leaves in its folder: one page with everything in it, and its pictures."""

from collections.abc import Sequence
from pathlib import Path

from octopis.core.routing import Algorithm
from octopis.demo.comparison import FACTS, MUST_BE_NONE, Compared, cautions, findings, shown_ms
from octopis.demo.fault.outcome import FaultOutcome, fault_findings
from octopis.demo.fault.picture import draw_fault, draw_way_around
from octopis.demo.figures import draw_delays, draw_queue, draw_way
from octopis.demo.rounds import Round
from octopis.demo.texts import (
    IDEAS,
    clients_sentence,
    overlay_sentence,
    slowed_sentence,
    tree_sentence,
)
from octopis.demo.workload import Prepared
from octopis.errors import InvalidConfiguration
from octopis.report.page import Page
from octopis.report.pictures import LOOKS, write_figure

REPORT = "report.html"
COMPARISON = "comparison.json"
DELIVERIES = "deliveries.parquet"
SCENARIO = "scenario"
OVERLAY = "overlay.toml"
PICTURES = ("queue", "delays", "way-snr", "way-dnr", "way-tnr", "fault", "way-around")
ENDINGS = (".png", ".svg")
CONTENTS = frozenset(
    (
        REPORT,
        COMPARISON,
        DELIVERIES,
        SCENARIO,
        OVERLAY,
        *(f"{name}{ending}" for name in PICTURES for ending in ENDINGS),
    )
)
"""Everything that a demonstration leaves, by its name."""


def check_folder(target: Path) -> None:
    """Raise InvalidConfiguration where `target` holds what no demonstration has left there."""
    if target.exists() and not target.is_dir():
        raise InvalidConfiguration(f"{target} is a file: choose another folder with --out")
    try:
        held = sorted(path.name for path in target.iterdir()) if target.exists() else []
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {target}: {failure.strerror}") from failure
    others = [name for name in held if name not in CONTENTS]
    if others or (held and COMPARISON not in held):
        raise InvalidConfiguration(
            f"{target} holds {(others or held)[0]}, which is not from a demo: choose another "
            "folder with --out"
        )


def write_pictures(
    folder: Path, prepared: Prepared, rounds: Sequence[Round], fault: FaultOutcome
) -> None:
    """Draw all pictures, each as PNG and SVG."""
    topology, feed, link = prepared.scenario.topology, prepared.feed, prepared.link
    figures = {
        "queue": draw_queue(rounds, link, feed),
        "delays": draw_delays({each.algorithm: each.played.delays_ns for each in rounds}),
        "way-snr": draw_way(topology, feed, link, Algorithm.SNR),
        "way-dnr": draw_way(topology, feed, link, Algorithm.DNR),
        "way-tnr": draw_way(topology, feed, link, Algorithm.TNR),
        "fault": draw_fault(fault),
        "way-around": draw_way_around(fault.cast),
    }
    assert tuple(figures) == PICTURES
    for name, figure in figures.items():
        write_figure(figure, [folder / f"{name}{ending}" for ending in ENDINGS])


def report_page(
    folder: Path, prepared: Prepared, rows: Sequence[Compared], fault: FaultOutcome
) -> str:
    """Return the page; its pictures are in `folder` already."""
    page = Page(
        "OctopiS: one slow link, four ways of routing, and one broker killed",
        "A content-based publish/subscribe overlay, live on one machine. The same notifications "
        "went through it four times; only the routing algorithm differs. Then one of its brokers "
        "was killed.",
        cautions(rows),
    )
    _tell_what_was_played(page, prepared, rows)
    _tell_what_came_of_it(page, folder, rows)
    _tell_of_one_notification(page, folder)
    _tell_of_the_fault(page, folder, fault)
    _tell_how_it_was_measured(page)
    return page.text()


def _tell_what_was_played(page: Page, prepared: Prepared, rows: Sequence[Compared]) -> None:
    page.section("What was played")
    for sentence in (
        overlay_sentence(prepared.scenario),
        clients_sentence(prepared.scenario, prepared.due),
        slowed_sentence(prepared.link, prepared.feed),
        tree_sentence(prepared.link),
    ):
        page.paragraph(sentence)
    for algorithm in (row.algorithm for row in rows):
        page.paragraph(f"{LOOKS[algorithm].label} {IDEAS[algorithm]}")


def _tell_what_came_of_it(page: Page, folder: Path, rows: Sequence[Compared]) -> None:
    page.section("What came of it")
    page.table(
        ("", *(row.label for row in rows)),
        [_line(*line) for line in zip(FACTS, *(row.cells() for row in rows), strict=True)],
        "Deliveries were checked against the ground truth on Spark.",
    )
    for sentence in findings(rows):
        page.paragraph(sentence)
    page.figure(
        folder / "queue.png",
        "The queue of the slowed link, asked from its broker a few times a second. While the "
        "high-rate publisher sends, what the link cannot carry has to wait; once the queue is "
        "congested, DNR and TNR send the rest another way.",
    )
    page.figure(
        folder / "delays.png",
        "Delays of all deliveries, from the intended time of publication until a subscriber's "
        "program had it; a logarithmic scale. The more to the left, the better.",
    )


def _tell_of_one_notification(page: Page, folder: Path) -> None:
    page.section("One notification")
    page.paragraph(
        "Where one notification of the high-rate publisher goes while the slowed link is "
        "overloaded, as the brokers' routing core decides."
    )
    page.figure(folder / "way-snr.png", "SNR sends it over the overloaded iCOL all the same.")
    page.figure(
        folder / "way-dnr.png", "DNR lets another copy carry the pending cluster (CBV_p) along."
    )
    page.figure(
        folder / "way-tnr.png",
        "TNR matched it once: each copy carries its targets, and none of them goes over the "
        "overloaded iCOL.",
    )


def _tell_of_the_fault(page: Page, folder: Path, fault: FaultOutcome) -> None:
    page.section("A broker is killed")
    for sentence in fault_findings(fault):
        page.paragraph(sentence)
    page.table(
        ("subscriber at", "way through it", "lost", "twice", "gap before", "while dead", "after"),
        [
            (
                str(each.subscriber),
                "yes" if each.is_behind else "no",
                ("number", f"{len(each.lost_ns):,}"),
                ("number bad" if each.twice else "number good", f"{each.twice:,}"),
                *(("number", shown_ms(gap)) for gap in each.gaps),
            )
            for each in fault.received
        ],
        "Gaps are the longest between two deliveries: before the kill, while the broker was dead, "
        "and after it was back.",
    )
    page.figure(
        folder / "fault.png",
        "Deliveries in each tenth of a second. The broker's process got SIGKILL at 0; the overlay "
        "started it again by itself.",
    )
    page.figure(
        folder / "way-around.png",
        "Where one of the notifications goes while the broker is dead, as the brokers' routing "
        "core decides.",
    )


def _tell_how_it_was_measured(page: Page) -> None:
    page.section("How it was measured")
    page.paragraph(
        "Brokers, clients and this measurement share one machine, so delays of a few milliseconds "
        "say more about its load than about routing. Queues are bounded, far above what gathers "
        "here: nothing is dropped. IMs are inter-broker messages, as the brokers count them; "
        "the longest queue is exact."
    )
    page.paragraph(
        "Beside this page are the scenario with its ground truth, every delivery "
        "(`deliveries.parquet`), the overlay's document (`overlay.toml`), the table as JSON, and "
        "the pictures as PNG and SVG."
    )


def _line(fact: str, *cells: int | str) -> list[object]:
    """Return a line of the table; what must not happen stands out."""
    if fact in MUST_BE_NONE:
        return [fact, *(("number bad" if cell else "number good", cell) for cell in cells)]
    return [fact, *(("number", f"{cell:,}" if isinstance(cell, int) else cell) for cell in cells)]
