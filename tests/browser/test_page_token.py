"""The page of a gateway whose overlay has security, in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import BrowserContext, expect

from support.browser import Watched, browser_place, open_browser
from support.overlay_command import SMALL, Shell

REFUSED = r"status of 401"
"""What the browser itself says in its console of an answer that asks for a token."""


class Secured(NamedTuple):
    """Where the page is, and a token that is good for it."""

    url: str
    token: str


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    browser_place()  # without one there is no need for an overlay
    shell = Shell(tmp_path)
    words = ("--config", shell.config(SMALL), "--secure", "sec", "--gateway-port", "0")
    with shell.up(*words) as up:
        made = shell.run("security", "token", "sec", "operator")
        yield Secured(up.state["gateway"], made.stdout.strip())
    shell.end()


@pytest.fixture
def context() -> Iterator[BrowserContext]:
    with open_browser() as found:
        yield found


def test_page_asks_for_a_token_shows_the_overlay_and_forgets_it(
    context: BrowserContext, secured: Secured
):
    watched = Watched(context)
    page = watched.page
    page.goto(secured.url)
    dialog = page.locator("#token-dialog")
    expect(dialog).to_be_visible()
    expect(page.locator("#token-refused")).to_be_hidden()

    page.fill("#token", secured.token[:-8] + "AAAAAAAA")
    page.keyboard.press("Enter")
    expect(page.locator("#token-refused")).to_be_visible()

    page.fill("#token", secured.token)
    page.keyboard.press("Enter")
    expect(dialog).to_be_hidden()
    expect(page.locator("#live")).to_have_text("● live")
    expect(page.locator("[data-broker]")).to_have_count(4)
    expect(page.locator("body")).to_contain_text("secured")

    assert secured.token not in "".join(watched.asked)
    kept = page.evaluate(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
    )
    assert secured.token not in kept
    page.locator("#forget-token").click()
    expect(dialog).to_be_visible()
    assert watched.unexpected(REFUSED) == []
    assert watched.hosts() == {secured.url.removeprefix("http://")}
