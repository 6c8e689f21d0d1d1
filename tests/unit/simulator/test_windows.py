"""Five notifications at once over one link whose sender takes a millisecond for each."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import Algorithm
from octopis.scenario.document import CutLink
from octopis.simulator.windows import Windows
from octopis.trace import RunSummary
from support.simulations import (
    MS,
    Publishes,
    Row,
    Setup,
    Subscribes,
    plain,
    ran,
    random_setup,
    rows,
)

FIVE = Setup(
    subscribers=(Subscribes("b,0"),),
    publications=(Publishes("a,0"),) * 5,
    costs=plain(routing_us=1, send_overhead_us=1000),
    window_ns=2_500_000,
    congestion_threshold=1,
)


@pytest.fixture
def trace() -> Iterator[tuple[RunSummary, Path]]:
    with ran(FIVE) as found:
        yield found


def samples(trace: Path, begin_ns: int) -> list[tuple[int, int, int, int, bool]]:
    """Return the samples of the publisher's queue: end of window, length, Q_in, Q_out, overload."""
    return [
        (row["window_end_ns"] - begin_ns, *map(row.__getitem__, ("queue_length", "q_in", "q_out")),
         row["overloaded"])
        for row in rows(trace, "queues")
        if (row["source"], row["target"]) == ("a,0", "b,0") and row["window_end_ns"] > begin_ns
    ]  # fmt: skip


def test_queue_is_sampled_at_the_end_of_every_window(trace: tuple[RunSummary, Path]):
    summary, folder = trace
    # The copies leave at 0.001, 1.001, 2.001, 3.001 and 4.001 ms.
    assert samples(folder, summary.begin_ns)[:2] == [
        (2_500_000, 2, 5, 3, True),  # 2 * 6/4 > 1
        (5_000_000, 0, 0, 2, False),
    ]


def test_windows_begin_where_time_is_a_multiple_of_them(trace: tuple[RunSummary, Path]):
    summary, folder = trace
    ends = [row["window_end_ns"] for row in rows(folder, "queues")]
    assert {end % FIVE.window_ns for end in ends} == {0}
    assert summary.begin_ns % FIVE.window_ns == 0


def test_only_queues_that_were_used_have_something_to_show(trace: tuple[RunSummary, Path]):
    summary, folder = trace
    used = {
        (row["source"], row["target"])
        for row in rows(folder, "queues")
        if row["window_end_ns"] > summary.begin_ns and (row["q_in"] or row["q_out"])
    }
    assert used == {("a,0", "b,0")}


def test_message_that_leaves_on_the_border_is_counted_in_the_window_that_begins():
    setup = replace(
        FIVE,
        publications=(Publishes("a,0"),) * 3,
        costs=plain(routing_us=500, send_overhead_us=1000),
        window_ns=MS // 2,
    )
    with ran(setup) as (summary, folder):
        begin = summary.begin_ns
        copies = [row for row in rows(folder, "ims") if row["publisher"]]
        times = [(row["enqueued_ns"] - begin, row["left_ns"] - begin) for row in copies]
        assert times == [(500_000, 500_000), (1_000_000, 1_500_000), (1_500_000, 2_500_000)]
        counted = {end: (q_in, q_out) for end, _, q_in, q_out, _ in samples(folder, begin)}
        assert [counted[number * MS // 2] for number in (2, 3, 4, 5, 6)] == [
            (1, 1),
            (1, 0),
            (1, 1),
            (0, 0),
            (0, 1),
        ]


def test_windows_in_which_nothing_happens_are_skipped(monkeypatch: pytest.MonkeyPatch):
    ends: list[int] = []
    close = Windows._close

    def counted(self: Windows, now: int) -> None:
        ends.append(now)
        close(self, now)

    monkeypatch.setattr(Windows, "_close", counted)
    cut = CutLink("a,1", "b,1", 1000, 2e8)  # 80 million windows
    with ran(replace(FIVE, faults=(cut,))) as (summary, folder):
        assert summary.sync_ims > 0
        assert max(ends) - min(ends) > 2e8 * MS
        assert len(ends) < 100
        came_back = [row for row in rows(folder, "queues") if row["window_end_ns"] > 2e8 * MS]
        assert sum(row["q_in"] for row in came_back) == summary.sync_ims


def test_samples_add_up_to_the_messages(trace: tuple[RunSummary, Path]):
    _, folder = trace

    def total(column: str) -> int:
        return sum(row[column] for row in rows(folder, "queues"))

    assert total("q_in") == total("q_out") == len(rows(folder, "ims"))


def test_every_message_is_written_with_what_was_ahead_of_it(trace: tuple[RunSummary, Path]):
    summary, folder = trace
    copies: list[Row] = [row for row in rows(folder, "ims") if row["publisher"]]
    assert [row["sequence"] for row in copies] == [0, 1, 2, 3, 4]
    assert [row["queue_length"] for row in copies] == [0, 0, 1, 2, 3]
    assert [row["enqueued_ns"] - summary.begin_ns for row in copies] == [
        1000, 2000, 3000, 4000, 5000,
    ]  # fmt: skip


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_samples_are_what_the_messages_say(random: Random):
    setup = random_setup(random, random.choice(list(Algorithm)))
    window_ns = setup.window_ns
    with ran(setup) as (_, folder):
        entered: Counter[tuple[str, str, int]] = Counter()
        left: Counter[tuple[str, str, int]] = Counter()
        for row in rows(folder, "ims"):
            ends = row["source"], row["target"]
            entered[*ends, (row["enqueued_ns"] // window_ns + 1) * window_ns] += 1
            left[*ends, (row["left_ns"] // window_ns + 1) * window_ns] += 1
        sampled = {
            (row["source"], row["target"], row["window_end_ns"]): row
            for row in rows(folder, "queues")
        }
        assert {place: row["q_in"] for place, row in sampled.items() if row["q_in"]} == entered
        assert {place: row["q_out"] for place, row in sampled.items() if row["q_out"]} == left
        for row in sampled.values():
            assert row["queue_length"] >= 0
