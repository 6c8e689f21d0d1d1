import pytest

from octopis.core.filters import like
from octopis.core.filters.like import LikePattern, Wildcard, parse_like, pattern_of
from octopis.errors import InvalidFilter

MANY, ONE = Wildcard.MANY, Wildcard.ONE


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("", [""], ["a"]),
        ("%", ["", "a", "a\nb"], []),
        ("_", ["a", "\n", "\U0001f600"], ["", "ab"]),
        ("a%", ["a", "ab"], ["", "ba"]),
        ("%a", ["a", "ba"], ["ab"]),
        ("%a%", ["a", "bab"], ["b"]),
        ("ab%ba", ["abba", "abxba"], ["aba", "ab"]),
        ("a%b%c", ["abc", "axxbyyc"], ["acb", "ac"]),
        ("%ab%ab%", ["abab", "xabyabz"], ["ab", "aab"]),
        ("_%_", ["ab", "abc"], ["a", ""]),
        ("a_c", ["abc", "a_c"], ["ac", "abbc"]),
        ("%_b", ["ab", "aab", "bb"], ["b", "ba"]),
        ("A%", ["A"], ["a"]),
    ],
)
def test_pattern_matches_the_whole_text(pattern: str, matching: list[str], other: list[str]):
    made = parse_like(pattern)
    assert [text for text in matching if not made.matches(text)] == []
    assert [text for text in other if made.matches(text)] == []


def test_escape_takes_the_meaning_of_wildcards_away():
    made = parse_like("!%!_!!%", "!")
    assert made.matches("%_!")
    assert made.matches("%_!more")
    assert not made.matches("xx!")


def test_escape_may_itself_be_a_wildcard():
    assert parse_like("a%%b", "%").literal == "a%b"


@pytest.mark.parametrize(
    ("pattern", "escape", "reason"),
    [
        ("a", "", "ESCAPE takes one character, not ''"),
        ("a", "ab", "ESCAPE takes one character, not 'ab'"),
        ("a!", "!", "the escape '!' must stand before '%', '_' or itself"),
        ("!a", "!", "the escape '!' must stand before '%', '_' or itself"),
    ],
)
def test_bad_escape_is_refused(pattern: str, escape: str, reason: str):
    with pytest.raises(InvalidFilter, match=reason):
        parse_like(pattern, escape)


@pytest.mark.parametrize("pattern", ["%_%", "_%", "%_", "_%%", "%%_%%"])
def test_wildcards_that_stand_together_have_one_form(pattern: str):
    assert parse_like(pattern).elements == (ONE, MANY)


def test_empty_text_between_wildcards_says_nothing():
    assert pattern_of([MANY, "", MANY]) == parse_like("%")
    assert pattern_of(["a", "", "b"]) == LikePattern(("ab",))


@pytest.mark.parametrize(
    ("pattern", "literal", "prefix", "prefix_only"),
    [
        ("", "", "", False),
        ("ab", "ab", "ab", False),
        ("ab%", None, "ab", True),
        ("%", None, "", True),
        ("%ab", None, "", False),
        ("ab_", None, "ab", False),
        ("ab%c", None, "ab", False),
    ],
)
def test_what_the_index_can_answer_is_known(
    pattern: str, literal: str | None, prefix: str, prefix_only: bool
):
    made = parse_like(pattern)
    assert made.literal == literal
    assert made.prefix == prefix
    assert made.is_prefix_only() is prefix_only


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("%abc%", "ab-bc-" * 1_000, False),  # both pairs are there
        ("%abc%", "ab-bc-" * 1_000 + "abc", True),
        ("%a_c%", "xyz" * 2_000 + "abc", True),  # no pair to look for
        ("%ab%cd%", "cd" * 3_000 + "ab" * 3_000, False),
        ("%ab%cd%", "ab" * 3_000 + "cd", True),
        ("%\u0161\u0162%", "ab" * 3_000, False),
        ("%\u0161\u0162%", "ab" * 3_000 + "\u0161\u0162", True),
        ("%\u0161\u0162%", "ab" * 3_000 + "\u2022", False),  # "ab" has the number of their pair
    ],
)
def test_pairs_of_a_long_text_do_not_decide_alone(pattern: str, text: str, *, matches: bool):
    assert parse_like(pattern).matches(text) is matches


def test_a_long_text_without_a_pair_of_the_pattern_is_not_searched(monkeypatch):
    searched = []
    monkeypatch.setattr(like, "_place_of", lambda *each, **_: searched.append(each) or -1)
    text = "ab-bc-" * 1_000
    assert not parse_like("%ab%abx%").matches(text)
    assert not searched
    assert not parse_like("%abc%").matches(text)
    assert len(searched) == 1


def test_what_a_pattern_keeps_beside_its_text_is_bounded():
    long = parse_like("%" + "".join(chr(97 + n * n % 26) for n in range(4_000)) + "%")
    assert len(long.parts[1].pairs) <= 8
