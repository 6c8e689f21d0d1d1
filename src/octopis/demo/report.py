"""The report that a demonstration leaves: one page with everything in it, and its pictures."""

from collections.abc import Sequence
from pathlib import Path

from octopis.core.routing import Algorithm
from octopis.demo import folder as names
from octopis.demo.comparison import FACTS, MUST_BE_NONE, Compared, findings
from octopis.demo.figures import draw_delays, draw_queue
from octopis.demo.rounds import Round
from octopis.demo.texts import (
    IDEAS,
    clients_sentence,
    overlay_sentence,
    slowed_sentence,
    tree_sentence,
)
from octopis.demo.ways import draw_way
from octopis.demo.workload import Feed, Prepared, SlowedLink
from octopis.report.page import Page
from octopis.report.pictures import write_figure
from octopis.report.style import LOOKS


def write_pictures(
    folder: Path, prepared: Prepared, feed: Feed, link: SlowedLink, rounds: Sequence[Round]
) -> None:
    """Draw all pictures, each as PNG and SVG."""
    topology = prepared.scenario.topology
    figures = {
        "queue": draw_queue(rounds, link, feed),
        "delays": draw_delays({each.algorithm: each.played.delays_ns for each in rounds}),
        "way-snr": draw_way(topology, feed, link, Algorithm.SNR),
        "way-dnr": draw_way(topology, feed, link, Algorithm.DNR),
    }
    assert tuple(figures) == names.PICTURES
    for name, figure in figures.items():
        write_figure(figure, [folder / f"{name}{ending}" for ending in names.ENDINGS])


def report_page(
    folder: Path, prepared: Prepared, feed: Feed, link: SlowedLink, rows: Sequence[Compared]
) -> str:
    """Return the page; its pictures are in `folder` already."""
    page = Page(
        "OctopiS: one slow link, three ways of routing",
        "A content-based publish/subscribe overlay, live on one machine. The same notifications "
        "went through it three times; only the routing algorithm differs.",
    )
    page.section("What was played")
    for sentence in (
        overlay_sentence(prepared.scenario),
        clients_sentence(prepared.scenario, prepared.due),
        slowed_sentence(link, feed),
        tree_sentence(link),
    ):
        page.paragraph(sentence)
    for algorithm in (row.algorithm for row in rows):
        page.paragraph(f"{LOOKS[algorithm].label} {IDEAS[algorithm]}")
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
        "congested, DNR sends the rest another way.",
    )
    page.figure(
        folder / "delays.png",
        "Delays of all deliveries, from the intended time of publication until a subscriber's "
        "program had it; a logarithmic scale. The more to the left, the better.",
    )
    page.section("One notification")
    page.paragraph(
        "Where one notification of the high-rate publisher goes while the slowed link is "
        "overloaded, as the brokers' routing core decides."
    )
    page.figure(folder / "way-snr.png", "SNR sends it over the overloaded iCOL all the same.")
    page.figure(
        folder / "way-dnr.png", "DNR lets another copy carry the pending cluster (CBV_p) along."
    )
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
    return page.text()


def _line(fact: str, *cells: int | str) -> list[object]:
    """Return a line of the table; what must not happen stands out."""
    if fact in MUST_BE_NONE:
        return [fact, *(("number bad" if cell else "number good", cell) for cell in cells)]
    return [fact, *(("number", f"{cell:,}" if isinstance(cell, int) else cell) for cell in cells)]
