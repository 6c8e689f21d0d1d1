"""Brokers with disks are killed, one by one and all at once; the logs of clients are compared.

The long form is `octopis bench durable-kills`.
"""

from pathlib import Path

from octopis.benchmarks.durable.kills import (
    ALL_KILLED,
    KILLED,
    STILL,
    SUBSCRIBER,
    KillsFound,
    Plan,
    run,
)
from support.live import run_live

PLAN = Plan(
    rounds=1,
    all_kills=1,
    stills=1,
    still_s=1.0,
    subscriber_kills=2,
    accepted_min=5_000,
    rate=1_500.0,
    pause_s=0.1,
    limits={"redial_s_max": 0.1},
)


def test_nothing_accepted_is_lost_or_comes_twice_whoever_is_killed(tmp_path: Path):
    found: list[KillsFound] = []

    async def work() -> None:
        found.append(await run(PLAN, tmp_path, lambda _: None))

    run_live(work(), limit_s=120.0)
    (of,) = found
    assert of.blows == {KILLED: 18, ALL_KILLED: 1, STILL: 1, SUBSCRIBER: 2}
    assert of.verdict.accepted >= 5_000
    assert of.verdict.expected >= 2 * 5_000  # four subscribers want a half each
    assert of.verdict.unknown == 0
    assert of.breaches == []
