"""Large overlays in a real browser: every update is drawn, and the page has time for people.

What a machine takes is printed: pytest -s tests/browser/test_page_large.py. The bounds here are
coarse, for machines that have much else to do.
"""

import sys
from collections.abc import Iterator
from statistics import quantiles

import pytest
from playwright.sync_api import BrowserContext, expect

from octopis.core.topology import SCOT, from_catalogue, grow
from support.browser import Watched, open_browser
from support.synthetic_page import PULSE_S, synthetic_page

PULSES = 14

_FRAMES = """() => {
    window.drawn = [];
    window.frames = [];
    let last = performance.now();
    const look = (now) => {
        frames.push(now - last);
        last = now;
        const text = document.querySelector("#drawing .badge.overloaded")?.textContent;
        if (text && drawn.at(-1) !== text) drawn.push(text);
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    with open_browser() as found:
        yield found


@pytest.mark.parametrize(
    ("scot", "links", "busy_most", "skipped_most"),
    [
        pytest.param(from_catalogue("paper").scot, 220, 0.25, 3, id="75 brokers"),
        pytest.param(grow(500, 5), 1_495, 0.6, 7, id="500 brokers"),
    ],
)
def test_every_update_is_drawn_and_the_page_has_time_left(
    context: BrowserContext, scot: SCOT, links: int, busy_most: float, skipped_most: int
):
    with synthetic_page(scot, PULSES) as synthetic:
        watched = Watched(context)
        page = watched.page
        page.goto(synthetic.url)
        expect(page.locator("#drawing .node")).to_have_count(len(scot.brokers))
        expect(page.locator("#drawing .link")).to_have_count(links)
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})  # not what others take
        expect(page.locator("#drawing .badge.overloaded")).to_have_text("▲1")
        page.evaluate(_FRAMES)
        before = metrics(session)
        synthetic.go.set()
        page.locator("#drawing .link").first.dispatch_event("click")  # it can be used meanwhile
        expect(page.locator("#details canvas")).to_have_count(4)
        expect(page.locator("#drawing .badge.overloaded")).to_have_text(f"▲{PULSES}")
        after = metrics(session)
        drawn = [int(each[1:]) for each in page.evaluate("drawn")]
        frames = sorted(page.evaluate("frames"))
        page.close()
    assert watched.unexpected() == []
    took = {name: 1_000 * (after[name] - before[name]) / (PULSES - 1) for name in before}
    shares = quantiles(frames, n=100)
    sys.stdout.write(
        f"\n{len(scot.brokers)} brokers, ms of an update: { {k: round(took[k]) for k in took} }; "
        f"ms between frames: median {shares[49]:.0f}, 99 of 100 {shares[98]:.0f}\n"
    )
    assert drawn == sorted(set(drawn))
    assert PULSES - len(drawn) <= skipped_most
    assert took["TaskDuration"] <= busy_most * 1_000 * PULSE_S


def metrics(session) -> dict[str, float]:
    """Return how long the page's own thread has worked so far, in all and at what."""
    found = session.send("Performance.getMetrics")["metrics"]
    wanted = {"TaskDuration", "ScriptDuration", "RecalcStyleDuration", "LayoutDuration"}
    return {each["name"]: each["value"] for each in found if each["name"] in wanted}
