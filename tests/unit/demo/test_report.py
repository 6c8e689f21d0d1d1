from collections.abc import Callable
from pathlib import Path

from octopis.core.routing import Algorithm
from octopis.demo.comparison import FACTS, Compared
from octopis.demo.folder import ENDINGS, PICTURES
from octopis.demo.report import report_page, write_pictures
from octopis.demo.rounds import Round
from octopis.demo.workload import Feed, Prepared, SlowedLink
from octopis.scenario.folder import Scenario


def test_page_has_the_table_the_pictures_and_what_they_mean(  # noqa: PLR0917 - fixtures
    draft: Path,
    scenario: Scenario,
    feed: Feed,
    link: SlowedLink,
    rounds: list[Round],
    rows: list[Compared],
    row: Callable[..., Compared],
):
    prepared = Prepared(scenario, 936)
    write_pictures(draft, prepared, feed, link, rounds)
    names = sorted(path.name for path in draft.iterdir())
    assert names == sorted(f"{name}{ending}" for name in PICTURES for ending in ENDINGS)
    page = report_page(draft, prepared, feed, link, rows)
    assert page.count('src="data:image/png;base64,') == 4
    assert all(f"<td>{fact}</td>" in page for fact in FACTS)
    assert '<td class="number good">0</td>' in page
    assert "number bad" not in page
    assert "All 936 deliveries" in page
    assert "iCOL to B(b, 0) is slowed down to 40%" in page
    faulty = report_page(draft, prepared, feed, link, [*rows[:2], row(Algorithm.DNR, lost=2)])
    assert '<td class="number bad">2</td>' in faulty
