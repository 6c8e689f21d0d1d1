"""What was accepted arrives once and in order, whatever dies on the way: real processes.

Publishers and subscribers write down, each on its own, what was accepted and what came. The long
forms are `octopis bench channels`.
"""

from pathlib import Path

import pytest

from octopis.benchmarks.channels import faults, stalled
from octopis.benchmarks.channels.faults import CUT, KILLED, STILL, FaultsFound
from octopis.benchmarks.channels.stalled import FOR_ALL, FOR_OTHERS, StalledFound
from octopis.broker.settings import ClientPolicy
from support.live import run_live

LIMITS = {"redial_s_max": 0.1, "keepalive_s": 0.3, "silence_s": 1.0}


@pytest.fixture(scope="module")
def hurt(tmp_path_factory: pytest.TempPathFactory) -> tuple[FaultsFound, list[str]]:
    """Nine brokers; of the four that host nobody two are killed, and one stands still."""
    found: list[FaultsFound] = []
    said: list[str] = []
    plan = faults.Plan(
        overlay="figure-7", seconds=1, rate=1_000, still_s=3.0, kills_max=2, limits=LIMITS
    )

    async def work(folder: Path) -> None:
        found.append(await faults.run(plan, folder, said.append))

    run_live(work(tmp_path_factory.mktemp("channels")), limit_s=150.0)
    return found[0], said


def test_brokers_on_the_way_die_and_stand_still_and_links_break(
    hurt: tuple[FaultsFound, list[str]],
):
    found, said = hurt
    assert [(each.what, each.times) for each in found.silences] == [
        (KILLED, 2),
        (CUT, 2),
        (STILL, 1),
    ]
    assert said[0].startswith("killed: a,1; ")
    assert found.figures["resent"] > 0, "nothing was lost on the way: nothing was tried"


def test_all_that_was_accepted_came_once_and_in_order(hurt: tuple[FaultsFound, list[str]]):
    found, _ = hurt
    assert found.verdict.accepted > 2_000
    assert found.verdict.expected > 2 * found.verdict.accepted
    assert found.breaches == []


@pytest.mark.parametrize("policy", [ClientPolicy.DROP_OLDEST, ClientPolicy.PAUSE])
def test_only_who_has_to_notices_a_subscriber_that_reads_nothing(
    policy: ClientPolicy, tmp_path: Path
):
    found: list[StalledFound] = []
    plan = stalled.Plan(overlay="line-2", policy=policy, before_s=1.0, seconds=1.5, queue=50)

    async def work() -> None:
        found.append(await stalled.run(plan, tmp_path, lambda _: None))

    run_live(work(), limit_s=120.0)
    (one,) = found
    assert one.verdict.breaches == []
    assert one.behind >= plan.queue
    assert one.shares[FOR_OTHERS] > 0.5  # all of it, but for a busy machine
    if policy is ClientPolicy.PAUSE:
        assert one.accepted_while[FOR_ALL] == 0
    else:
        assert one.shares[FOR_ALL] > 0.5
