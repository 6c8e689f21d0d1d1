"""What links count of high-rate publishers is what their messages say, and waiting begins late."""

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.scenario.example import write_example
from octopis.scenario.folder import Scenario, read_scenario
from octopis.scenario.plan import ScenarioPlan
from octopis.simulator.run import run
from octopis.trace import Level


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    plan = ScenarioPlan(
        routing=RoutingOptions(Algorithm.SNR),
        subscribers=60,
        publishers=3,
        notifications_each=10,
        subscribe_every_ms=0.1,
        high_rate_notifications=200,
        high_rate_publishers=2,
    )
    folder = tmp_path_factory.mktemp("high-rate") / "scenario"
    write_example(plan, folder)
    return read_scenario(folder)


@pytest.mark.parametrize("real_brokers", [False, True])
@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_links_count_the_messages_of_high_rate_publishers(
    scenario: Scenario, algorithm: Algorithm, real_brokers: bool, tmp_path: Path
):
    run(
        scenario.with_algorithm(algorithm),
        tmp_path / "trace",
        level=Level.FULL,
        real_brokers=real_brokers,
    )
    messages = pq.read_table(tmp_path / "trace" / "ims.parquet").to_pylist()
    seen = Counter(
        (row["source"], row["target"]) for row in messages if row["publisher"] in {"hrp", "hrp2"}
    )
    links = pq.read_table(tmp_path / "trace" / "links.parquet").to_pylist()
    counted = {(row["source"], row["target"]): row["high_rate_ims"] for row in links}
    assert {link: count for link, count in counted.items() if count} == seen
    assert len(seen) > 5


def test_time_waited_is_that_of_notifications(scenario: Scenario, tmp_path: Path):
    summary = run(scenario.with_algorithm(Algorithm.BID), tmp_path / "trace", level=Level.FULL)
    messages = pq.read_table(tmp_path / "trace" / "ims.parquet").to_pylist()
    waited = dict.fromkeys(("subscription", "notification"), 0)
    for row in messages:
        waited[row["message"]] += row["left_ns"] - row["enqueued_ns"]
    links = pq.read_table(tmp_path / "trace" / "links.parquet").to_pylist()
    assert waited["subscription"] > 0
    assert sum(row["waited_ns"] for row in links) == waited["notification"] > 0
    assert all(row["left_ns"] < summary.begin_ns for row in messages if row["subscription"])
