"""Limits of a gateway: their table on the page, and how they are set."""

from pathlib import Path

import pytest

from octopis.errors import InvalidConfiguration
from octopis.gateway.settings import limits_table, parse_limits, parse_origins

DOCS = Path(__file__).parents[3] / "docs" / "gateway.md"


def test_table_of_limits_on_the_page_is_that_of_the_struct():
    assert limits_table() in DOCS.read_text(encoding="utf-8")


def test_limits_are_set_by_name():
    found = parse_limits(["body_bytes=1000", "head_s=0.5"])
    assert (found.body_bytes, found.head_s, found.streams) == (1000, 0.5, 1000)


@pytest.mark.parametrize("word", ["body_bytes", "body=1", "head_s=0", "streams=many", "=1"])
def test_limit_that_makes_no_sense_is_refused(word: str):
    with pytest.raises(InvalidConfiguration, match="--limit"):
        parse_limits([word])


def test_origins_are_as_browsers_say_them():
    known = ("https://page.example", "http://localhost:3000", "http://[::1]:80", "*")
    assert parse_origins(known) == known


@pytest.mark.parametrize("word", ["page.example", "https://page.example/", "HTTP://a", "", "null"])
def test_origin_that_no_browser_says_is_refused(word: str):
    with pytest.raises(InvalidConfiguration, match="--allow-origin"):
        parse_origins([word])
