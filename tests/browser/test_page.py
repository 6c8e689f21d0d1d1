"""The dashboard in a real browser, on a real gateway and a real overlay of 18 brokers."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from support.browser import Watched, browser_place, open_browser
from support.stage import ARCHIVE, SLEEPER, SLOWED, VICTIM, Stage, stage_in

WAY = ">".join(SLOWED)
REFUSED = r"status of 400"
"""What the browser itself says in its console of an answer that is meant to be one."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    browser_place()  # without one there is no need for an overlay
    with stage_in(tmp_path_factory.mktemp("page")) as found:
        yield found


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def watched(context: BrowserContext, stage: Stage) -> Watched:
    found = Watched(context)
    found.page.goto(stage.url)
    return found


@pytest.fixture
def page(watched: Watched) -> Page:
    """The page, wide and live; what a test does to it is undone by the next that cares."""
    watched.page.set_viewport_size({"width": 1440, "height": 900})
    expect(watched.page.locator("#live")).to_have_text("● live")
    return watched.page


@pytest.fixture(autouse=True)
def nothing_went_wrong(request: pytest.FixtureRequest, watched: Watched, stage: Stage):
    yield
    marker = request.node.get_closest_marker("console_says")
    assert watched.unexpected(marker.args[0] if marker else "") == []
    assert watched.hosts() == {stage.url.removeprefix("http://")}


_CONTRASTS = """async ([on, names]) => {
    const { colourOf } = await import("/static/js/dom.js");
    const light = (name) => {
        const [red, green, blue] = colourOf(name).match(/[\\d.]+/g).map((each) => each / 255)
            .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    return Object.fromEntries(names.map((name) => {
        const [low, high] = [light(on), light(name)].sort((one, other) => one - other);
        return [name, (high + 0.05) / (low + 0.05)];
    }));
}"""
WORDS = ("text", "quiet", "calm", "busy-text", "full-text", "over", "good", "focus")
LINES = ("idle", "edge", "calm", "busy", "full", "over", "down", "around", "fault", "focus")
"""Links, borders of fields and marks, by which a state is told."""


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_words_can_be_read_and_lines_be_seen(page: Page, scheme: str):
    page.emulate_media(color_scheme=scheme)
    for on, names, least in (
        ("panel", WORDS, 4.5),
        ("panel", LINES, 3.0),
        ("field", ("edge",), 3.0),
    ):
        found = page.evaluate(_CONTRASTS, [on, names])
        assert {name: each for name, each in found.items() if each < least} == {}
    page.emulate_media(color_scheme="light")


def test_theme_of_the_button_is_that_of_page_and_charts(page: Page):
    page.emulate_media(color_scheme="light")
    shown = "import('/static/js/dom.js').then(({ colourOf }) => colourOf('panel'))"
    seen = []
    for _ in range(3):
        page.locator("#theme").click()
        seen.append(page.evaluate(shown))
    assert seen == ["rgb(255, 255, 255)", "rgb(26, 33, 40)", "rgb(255, 255, 255)"]


_KEPT = """async () => {
    const { Store } = await import("/static/js/store.js");
    const store = new Store();
    const seen = [[0, true], [1000, false], [1600, false], [1700, true], [1800, false]];
    return seen.map(([at_ms, overloaded]) => {
        store.setPulse({ at_ms, brokers: {}, links: { "a,0>b,0": { up: true, overloaded } } });
        return store.pulse.links["a,0>b,0"].overloaded;
    });
}"""


def test_all_parts_of_the_page_see_an_overload_for_as_long_as_the_drawing_does(page: Page):
    assert page.evaluate(_KEPT) == [True, True, False, True, True]


def broker(page: Page, name: str):
    return page.locator(f'[data-broker="{name}"]')


def test_page_may_run_nothing_but_its_own_files(page: Page):
    answer = page.request.get(page.url)
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "script-src 'self'; style-src 'self'" in policy
    assert page.request.get(f"{page.url}static/js/main.js").headers["cache-control"] == "no-cache"


def test_page_shows_every_broker_and_link(page: Page):
    expect(page.locator("#drawing .node")).to_have_count(18)
    expect(page.locator("#drawing .link")).to_have_count(33)
    expect(page.locator("#sums")).to_contain_text("18/18")
    expect(page.locator("#overlay-name")).to_have_text("figure-3")


def test_slowed_link_turns_and_a_way_around_appears(page: Page, stage: Stage):
    stage.publishes.set()
    try:
        page.wait_for_selector(f'.flow.overloaded[data-way="{WAY}"]', state="attached")
        page.wait_for_selector(f'.around.overload[data-way^="{SLOWED[0]}>b,"]', state="attached")
        page.wait_for_selector(".badge.overloaded >> text=▲", state="attached")
        busy = page.locator('.flow[data-way="a,0>b,0"]')
        expect(busy).not_to_have_attribute("stroke-width", "1.2")
    finally:
        stage.publishes.clear()
    expect(page.locator("#events [data-kind=overload]").first).to_contain_text("b,0 to e,0")
    expect(page.locator(f'.flow[data-way="{WAY}"]')).not_to_have_class(re.compile("overloaded"))
    expect(busy).to_have_attribute("stroke-width", "1.2")


_WIDTHS = """async (rates) => {
    const { widthOf } = await import("/static/js/drawing.js");
    return rates.map((rate) => Number(widthOf(rate)));
}"""


def test_link_is_the_wider_the_more_flows_and_never_wider_than_its_place(page: Page):
    found = page.evaluate(_WIDTHS, [0, 1, 10, 100, 1_000, 10_000, 1e9])
    assert found == sorted(found)
    assert found[0] == 1.2
    assert len(set(found[:-1])) == 6
    assert found[-1] < 6  # two directions stand side by side


def test_killed_broker_goes_dark_and_comes_back(page: Page, stage: Stage):
    stage.victim.kill()
    expect(broker(page, VICTIM)).to_have_class(re.compile("dead"))
    expect(broker(page, VICTIM)).to_contain_text("dead")
    expect(broker(page, VICTIM)).to_have_attribute("aria-label", f"broker {VICTIM}, dead")
    expect(page.locator(f'.flow[data-way="b,1>{VICTIM}"]')).to_have_class("flow down")
    expect(page.locator("#events [data-kind=broker_down]").first).to_contain_text(VICTIM)
    cut = page.locator("#events [data-kind=link_down]", has_text=f"from b,1 to {VICTIM} is down")
    expect(cut.first).to_be_attached()
    broker(page, VICTIM).click()
    expect(page.locator("#details")).to_contain_text("not known while it does not answer")
    stage.start_victim()
    expect(broker(page, VICTIM)).not_to_have_class(re.compile("dead"))
    expect(page.locator(f'.flow[data-way="b,1>{VICTIM}"]')).not_to_have_class("flow down")


def test_watch_shows_durable_subscriptions_by_their_lag(page: Page, stage: Stage):
    page.locator("#tab-lists").click()
    row = page.locator("#durables-rows tr", has_text=ARCHIVE)
    expect(row.locator("td")).to_have_text([ARCHIVE, SLEEPER, "0", "0", re.compile("B"), ""])
    published(page, stage, {"test": "keep"}, 7)
    expect(row.locator("td").nth(2)).to_have_text("7")


def test_subscriber_that_takes_nothing_is_slow_and_what_it_loses_is_told(page: Page, stage: Stage):
    page.locator("#tab-lists").click()
    expect(page.locator("#slow-none")).to_be_visible()
    published(page, stage, {"test": "sleep"}, 150)
    row = page.locator("#slow-rows tr")
    expect(row).to_have_count(1)
    expect(row.locator("td").nth(0)).to_have_text("sleeper")
    expect(row.locator("td").nth(3)).to_have_text("0")
    expect(broker(page, SLEEPER)).to_contain_text("◔ 1 slow")
    expect(page.locator("#events [data-kind=slow_client]").first).to_contain_text(
        f"sleeper at {SLEEPER} is slow"
    )
    published(page, stage, {"test": "sleep"}, 150)
    expect(page.locator("#events [data-kind=drop]").first).to_contain_text(f"{SLEEPER} dropped")
    expect(row.locator("td").nth(3)).not_to_have_text("0")


def published(page: Page, stage: Stage, attributes: dict[str, str], count: int) -> None:
    answer = page.request.post(f"{stage.url}/notifications", data=[attributes] * count)
    assert answer.status == 202, answer.text()


def test_keyboard_alone_leads_to_a_broker_and_its_link(page: Page):
    page.locator("#tab-details").click()
    broker(page, "a,0").focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#details h3")).to_have_text("Broker b,1")
    expect(page.locator("#details canvas")).to_have_count(2)
    page.locator("#details").get_by_role("button", name="e,1", exact=True).press("Enter")
    expect(page.locator("#details h3")).to_contain_text("aCOL b,1")
    expect(page.locator("#details canvas")).to_have_count(4)
    expect(page.locator("#details")).to_contain_text("congestion element")
    page.locator("#tab-details").press("ArrowRight")
    expect(page.locator("#tab-filter")).to_be_focused()
    expect(page.locator("#panel-filter")).to_be_visible()


@pytest.mark.console_says(REFUSED)
def test_playground_explains_a_filter_and_marks_a_mistake_at_its_place(page: Page):
    page.locator("#tab-filter").click()
    page.fill("#explain-attributes", '{"price": 60, "symbol": "IBM"}')
    page.fill("#filter", "price > 50 AND symbol = 'SAP'")
    expect(page.locator("#explanation .verdict")).to_contain_text("does not match")
    expect(page.locator("#explanation li.true")).to_contain_text("price > 50")
    expect(page.locator("#explanation li.false").last).to_contain_text("symbol is 'IBM'")
    page.fill("#filter", "price > 50 AND AND symbol = 'IBM'")
    expect(page.locator("#panel-filter .marks mark")).to_have_text("AND")
    expect(page.locator("#filter-said")).to_contain_text("column 16")
    expect(page.locator("#filter")).to_have_attribute("aria-invalid", "true")
    before = page.evaluate("document.querySelector('.marks mark').previousSibling.textContent")
    assert before == "price > 50 AND "
    page.fill("#filter", "price > 50")
    expect(page.locator("#explanation .verdict")).to_have_text("✓ matches")
    expect(page.locator("#filter")).to_have_attribute("aria-invalid", "false")


def publish(page: Page, attributes: str) -> None:
    page.locator("#tab-publish").click()
    page.fill("#publish-attributes", attributes)
    page.get_by_role("button", name="Publish", exact=True).click()
    said = page.get_by_role("log", name="What was published").get_by_role("listitem")
    expect(said.first).to_contain_text("1 notification accepted")


def test_tail_shows_a_published_notification_and_takes_its_text_as_text(page: Page):
    page.locator("#tab-tail").click()
    page.fill("#tail-filter", "test = 'tail'")
    page.locator("#tail-filter").press("Enter")
    expect(page.locator("#tail-said")).to_contain_text("listening")
    publish(
        page,
        '{"test": "tail", "<b>name</b>": "<img src=x onerror=alert(1)>", "n": 9007199254740993}',
    )
    page.locator("#tab-tail").click()
    row = page.locator("#tail li").first
    expect(row).to_contain_text("<img src=x onerror=alert(1)>")
    expect(row).to_contain_text("9007199254740993")
    expect(row).to_contain_text("<b>name</b>")
    expect(page.locator("#tail :is(img, b)")).to_have_count(0)
    page.locator("#tail-start").click()
    expect(page.locator("#tail-said")).to_have_text("stopped")


def test_preview_shows_what_matches_now(page: Page):
    page.locator("#tab-filter").click()
    page.fill("#filter", "test = 'preview'")
    page.check("#preview")
    expect(page.locator("#matches-said")).to_contain_text("listening")
    publish(page, '{"test": "preview"}')
    page.locator("#tab-filter").click()
    expect(page.locator("#matches li").first).to_contain_text("'preview'")
    page.get_by_role("button", name="explain").first.click()
    expect(page.locator("#explanation .verdict")).to_have_text("✓ matches")
    page.uncheck("#preview")


def test_what_if_draws_four_ways_side_by_side(page: Page):
    page.locator("#tab-whatif").click()
    page.locator("#whatif-clear").click()
    page.check("input[name=pick][value=overloaded]")
    for end in SLOWED:
        broker(page, end).click()
    expect(page.locator("#chosen-overloaded")).to_contain_text("b,0 → e,0")
    expect(page.locator(".card")).to_have_count(4)
    ours = page.locator('.card[data-algorithm="tnr"]')
    expect(ours.locator(".hop.overload").first).to_be_attached()
    for name in ("bid", "snr", "dnr", "tnr"):
        card = page.locator(f'.card[data-algorithm="{name}"]')
        expect(card).to_contain_text("3 reached")
        assert card.locator("path.hop").count() >= 4
    ours.locator("summary").click()
    expect(ours.locator(".hops")).to_contain_text("around an overloaded link")
    page.check("input[name=pick][value=dead]")
    broker(page, "f,1").click()
    expect(page.locator(".card .bad").first).to_contain_text("lost")
    page.locator("#tab-details").click()
    expect(page.locator("#ways")).to_be_hidden()


def test_narrow_page_in_the_dark_needs_no_scrolling_sideways(page: Page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.emulate_media(color_scheme="dark")
    wide = "document.scrollingElement.scrollWidth"
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(wide) <= 390
    assert page.evaluate(colour) == "rgb(18, 23, 28)"
    page.locator("#theme").click()
    assert page.evaluate(colour) == "rgb(244, 246, 247)"
    page.locator("#theme").click()
    page.locator("#theme").click()
    page.emulate_media(color_scheme="light")


@pytest.mark.console_says("ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED")
def test_page_says_that_the_gateway_is_away_and_comes_back(page: Page, stage: Stage):
    stage.gateway.terminate()
    expect(page.locator("#notice")).to_contain_text("What you see is old")
    expect(page.locator("#live")).to_have_text("○ not connected")
    stage.gateway.wait(timeout=20)
    stage.start_gateway()
    expect(page.locator("#live")).to_have_text("● live")
    expect(page.locator("#notice")).to_be_hidden()


def test_page_of_a_gateway_that_knows_only_addresses_says_so_and_lives(
    watched: Watched, stage: Stage
):
    address = f"octopis://127.0.0.1:{stage.ports['a,0']}"
    process = stage.shell.start("gateway", "run", address, "--port", "0")
    assert process.stdout is not None
    url = process.stdout.readline().partition(" is at ")[2].partition(",")[0]
    other = Watched(watched.page.context)
    page = other.page
    page.goto(url)
    expect(page.locator("#live")).to_have_text("● live")
    expect(page.locator("#notice")).to_contain_text("knows only addresses")
    expect(page.locator("#sums")).to_contain_text("1/1")
    for button in ("larger", "smaller", "fit"):
        page.locator(f"#{button}").click()
    page.locator("#tab-whatif").click()
    for button in ("whatif-now", "whatif-clear"):
        page.locator(f"#{button}").click()
    page.check("input[name=pick][value=cut]")
    page.locator("#tab-lists").click()
    expect(page.locator("#durables-none")).to_be_visible()
    assert other.unexpected("status of 404") == []
    assert other.hosts() == {url.removeprefix("http://")}
    page.close()
    process.terminate()
    process.wait(timeout=20)


def test_token_is_asked_for_and_kept_in_memory_only(context: BrowserContext, stage: Stage):
    watched = Watched(context)
    page = watched.page
    sent = []

    def guarded(route: Route) -> None:
        """Be the guard that a secured overlay has at its gateway."""
        sent.append(route.request.headers.get("authorization"))
        if sent[-1] == "Bearer right":
            route.continue_()
        else:
            problem = '{"title": "Unauthorized", "status": 401, "detail": "a token is needed"}'
            route.fulfill(status=401, body=problem, content_type="application/problem+json")

    page.route(re.compile("/overlay"), guarded)
    page.goto(stage.url)
    for token in ("wrong", "right"):
        page.fill("#token", token)
        page.locator("#token-dialog button").click()
    expect(page.locator("#live")).to_have_text("● live")
    expect(page.locator("#token-dialog")).to_be_hidden()
    assert sent[:3] == [None, "Bearer wrong", "Bearer right"]
    kept = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert "right" not in kept
    assert watched.unexpected("status of 401") == []
    assert watched.hosts() == {stage.url.removeprefix("http://")}
    page.close()
