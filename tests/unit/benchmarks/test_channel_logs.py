"""What the logs of publishers and subscribers say: every breach of the law is seen, and counted."""

from pathlib import Path

import pytest

from octopis.benchmarks.channels.logs import (
    Accepted,
    Got,
    Verdict,
    Wants,
    judge,
    longest_silences,
    rate,
    read_accepted,
    read_got,
)
from octopis.core.filters import parse_filter

WANTS = Wants(("p",), (2, 5))
DUE = [2, 3, 4, 12, 13, 14]


def judged(came: list[int], publisher: str = "p") -> Verdict:
    accepted = {"p": Accepted(list(range(20)), [0.0] * 20), "q": Accepted([2, 3], [0.0] * 2)}
    got = Got({publisher: came}, {publisher: [0.0] * len(came)})
    return judge({"s": WANTS}, accepted, {"s": got})


def test_what_came_once_and_in_order_is_no_breach():
    verdict = judged(DUE)
    assert (verdict.accepted, verdict.expected, verdict.breaches) == (22, 6, [])


@pytest.mark.parametrize(
    ("came", "breaches"),
    [
        ([2, 3, 12, 13, 14], ["1 lost"]),
        ([], ["6 lost"]),
        ([2, 3, 3, 4, 12, 13, 14], ["1 twice"]),
        ([2, 3, 4, 12, 13, 14, 2, 3], ["2 twice"]),
        ([2, 4, 3, 12, 13, 14], ["1 out of order"]),
        ([2, 3, 4, 5, 12, 13, 14], ["1 unasked"]),
        ([2, 3, 4, 12, 13, 14, 22], ["1 unasked"]),
        ([3, 2, 4, 4, 12, 15, 13], ["1 lost", "1 twice", "2 out of order", "1 unasked"]),
    ],
)
def test_every_breach_is_counted(came, breaches):
    assert judged(came).breaches == breaches


def test_what_another_publisher_said_is_unasked():
    assert judged([2, 3], "q").breaches == ["6 lost", "2 unasked"]
    assert judged([2, 3], "nobody").breaches == ["6 lost", "2 unasked"]


def test_filter_asks_for_what_the_arithmetic_expects():
    asked = parse_filter(WANTS.filter)
    matching = [
        number
        for number in range(20)
        if asked.matches({"publisher": "p", "number": number, "kind": number % 10})
    ]
    assert matching == DUE
    assert not asked.matches({"publisher": "q", "number": 2, "kind": 2})


def test_logs_are_read_as_clients_write_them(tmp_path: Path):
    (tmp_path / "p.log").write_text("1.5 0 2\n! 3 from 2 on: lost\n2.5 5 1\n", encoding="utf-8")
    (tmp_path / "s.log").write_text("1.6 p 0\n1.7 q 9\n! gap: slow\n2.6 p 1\n", encoding="utf-8")
    accepted, got = read_accepted(tmp_path / "p.log"), read_got(tmp_path / "s.log")
    assert (accepted.numbers, accepted.times) == ([0, 1, 5], [1.5, 1.5, 2.5])
    assert (got.numbers, got.times) == ({"p": [0, 1], "q": [9]}, {"p": [1.6, 2.6], "q": [1.7]})
    verdict = judge({}, {"p": accepted}, {"s": got})
    assert verdict.breaches == ["p: 3 from 2 on: lost", "s: gap: slow"]


def test_silence_counts_as_a_whole_where_it_ends():
    got = [Got({}, {"p": [0.0, 1.0, 4.0, 4.5], "q": [0.0, 0.5]})]
    assert longest_silences(got, 0.0, 2.0) == [1.0, 0.5]
    assert longest_silences(got, 2.0, 5.0) == [3.0, 0.0]


def test_rate_counts_what_is_between_two_times():
    assert rate([0.0, 1.0, 1.5, 3.0], 1.0, 3.0) == 1.0
