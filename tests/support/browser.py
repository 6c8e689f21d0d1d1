"""The system's Chromium, and a page in it that notes what goes wrong and whom it asks."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    expect,
    sync_playwright,
)

PLACE = "OCTOPIS_BROWSER"
"""Says where the browser is, if it has another name or place."""

REQUIRED = "OCTOPIS_BROWSER_REQUIRED"
"""With it, a missing browser is a failure; CI sets it."""

HOW = (
    "there is no Chromium here, so the dashboard is not tested in a browser: install it (Debian, "
    f"Ubuntu: apt-get install chromium), or say in {PLACE} where it is"
)
_PATIENCE_MS = 30_000
"""The machine may have much else to do, and processes start meanwhile."""

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (
    "--no-sandbox",  # as root there is none
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
)


def browser_place() -> str:
    """Return where the browser is, or skip the test, or fail where one is required."""
    given = os.environ.get(PLACE)
    found = given if given and Path(given).exists() else None
    for name in _NAMES:
        found = found or shutil.which(name)
    if found is None:
        if os.environ.get(REQUIRED):
            pytest.fail(HOW)
        pytest.skip(HOW)
    return found


@contextmanager
def open_browser() -> Iterator[BrowserContext]:
    """Run the browser; its window is that of a desk, its colours are light."""
    place = browser_place()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=list(_QUIET))
        context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
        context.set_default_timeout(_PATIENCE_MS)
        expect.set_options(timeout=_PATIENCE_MS)
        yield context
        browser.close()


class Watched:
    """A page, all errors in its console, and all addresses that it asked for."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", self._failed)
        self.page.on("request", lambda request: self.asked.append(request.url))

    def unexpected(self, expected: str = "") -> list[str]:
        """Return the errors so far that do not match a pattern, and forget all."""
        found, self.errors = self.errors, []
        return [each for each in found if not expected or not re.search(expected, each)]

    def hosts(self) -> set[str]:
        """Return all hosts and ports that were asked."""
        return {urlsplit(url).netloc for url in self.asked}

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def _failed(self, error: Error) -> None:
        self.errors.append(str(error))
