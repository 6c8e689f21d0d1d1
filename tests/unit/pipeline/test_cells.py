from datetime import UTC, datetime

import pyarrow as pa
import pytest

from octopis.pipeline.ingest.cells import iso_time, judged_column, parse_time
from octopis.pipeline.ingest.judging import first_of
from octopis.pipeline.ingest.mapping import Attribute, Kind
from octopis.pipeline.ingest.rules import Rule

NOON = 1_714_564_800_000_000_000


def judged(kind: Kind, cells: pa.Array, *, in_ns: bool = False, **said) -> list:
    """Return values, or the reason in place of a wrong one."""
    values, checks = judged_column(Rule("x", kind, Attribute(**said), in_ns), cells)
    found = values.to_pylist()
    reasons = first_of(checks).to_pylist() if checks else [None] * len(found)
    return [reason or value for reason, value in zip(reasons, found, strict=True)]


def test_what_is_absent_is_absent_unless_it_is_required():
    cells = pa.array(["1", None, ""])
    assert judged(Kind.NUMBER, cells) == [1.0, None, None]
    assert judged(Kind.NUMBER, cells, required=True) == [1.0, "x is missing", "x is missing"]
    assert judged(Kind.TEXT, cells) == ["1", None, ""]
    assert judged(Kind.TEXT, cells, required=True) == ["1", "x is missing", "x is missing"]


def test_numbers_are_finite_and_within_their_bounds():
    wrong = "x is not a number"
    assert judged(Kind.NUMBER, pa.array(["1e3", "nan", "inf", "1e999"])) == [1000.0, *[wrong] * 3]
    assert judged(Kind.NUMBER, pa.array(["+.5", "hot", "0x1"])) == [0.5, wrong, wrong]
    assert judged(Kind.NUMBER, pa.array([1.5, float("nan"), None])) == [1.5, wrong, None]
    assert judged(Kind.NUMBER, pa.array([True])) == [wrong]
    bounded = judged(Kind.NUMBER, pa.array([1, 5, 9]), min=2, max=8)
    assert bounded == ["x is below 2", 5.0, "x is above 8"]


def test_integers_are_exact_and_fit_64_bits():
    big = 2**63 - 1
    cells = pa.array([str(big), str(-big - 1), str(big + 1), "1.0", "1.5", "-7"])
    wrong, part = "x is not a number", "x is not a whole number"
    assert judged(Kind.INTEGER, cells) == [big, -big - 1, wrong, 1, part, -7]
    assert judged(Kind.INTEGER, pa.array([2.0, 2.5, None])) == [2, part, None]
    assert judged(Kind.INTEGER, pa.array([big])) == [big]


def test_booleans_are_written_in_a_few_ways():
    cells = pa.array(["true", "FALSE", "yes", "0", "maybe", None])
    wrong = "x is neither true nor false"
    assert judged(Kind.BOOLEAN, cells) == [True, False, True, False, wrong, None]
    assert judged(Kind.BOOLEAN, pa.array([True, None])) == [True, None]


def test_texts_may_be_too_long():
    assert judged(Kind.TEXT, pa.array(["é" * 3, "é" * 4]), max_length=3)[1] == "x is too long"
    assert judged(Kind.TEXT, pa.array(["x" * 65_536])) == ["x is too long"]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2024-05-01T12:00:00Z", NOON),
        ("2024-05-01 12:00", NOON),
        ("2024-05-01T14:00:00.5+02:00", NOON + 500_000_000),
        ("2024-05-01T07:00:00.000000001-0500", NOON + 1),
        ("2024-05-01", NOON - 12 * 3600 * 10**9),
        ("1969-12-31T23:59:59.25Z", -750_000_000),
        ("2024-13-01T00:00:00Z", None),
        ("yesterday", None),
        ("9999-01-01T00:00:00Z", None),  # past what 64 bits hold
    ],
)
def test_times_are_read_as_moments(text: str, ns: int | None):
    assert parse_time(text) == ns


def test_times_are_texts_of_one_length_or_nanoseconds():
    cells = pa.array(["2024-05-01T14:00:00.25+02:00", None, "soon"])
    wrong = "x is not a time"
    assert judged(Kind.TIME, cells) == ["2024-05-01T12:00:00.250000Z", None, wrong]
    assert judged(Kind.TIME, cells, in_ns=True) == [NOON + 250_000_000, None, wrong]
    moments = pa.array([datetime(2024, 5, 1, 12, tzinfo=UTC), None], pa.timestamp("us", "UTC"))
    assert judged(Kind.TIME, moments) == [iso_time(NOON), None]
    assert judged(Kind.TIME, moments, in_ns=True) == [NOON, None]
    assert iso_time(NOON) < iso_time(NOON + 1000)
