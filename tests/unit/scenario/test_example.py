from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from octopis.core.filters import parse_filter
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.scenario.clients import START_WITHIN_NS, Clients, wants_feed
from octopis.scenario.costs import profile_named
from octopis.scenario.document import CutLink, Heading, QueueOptions, SlowLink
from octopis.scenario.example import write_example
from octopis.scenario.folder import FILES, NOTIFICATIONS, Scenario, read_scenario
from octopis.scenario.plan import ScenarioPlan

PLAN = ScenarioPlan(
    routing=RoutingOptions(Algorithm.SNR), subscribers=60, publishers=5, notifications_each=40
)
BURST = replace(PLAN, high_rate_notifications=300)
WANTS_FEED = parse_filter(wants_feed())
SEEDS = range(8)


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return made(replace(PLAN, subscribers=250), tmp_path_factory.mktemp("example") / "scenario")


def made(plan: ScenarioPlan, folder: Path) -> Scenario:
    write_example(plan, folder)
    return read_scenario(folder)


def contents(plan: ScenarioPlan, folder: Path) -> list[bytes]:
    write_example(plan, folder)
    return [(folder / name).read_bytes() for name in FILES]


def times_of_publishers(scenario: Scenario) -> dict[str, list[int]]:
    """Return the intended times of every publisher, by its sequence numbers."""
    found = defaultdict(list)
    for batch in scenario.publications():
        for publisher, sequence, time_ns in zip(
            batch.publishers, batch.sequences, batch.intended_ns, strict=True
        ):
            times = found[scenario.publishers[publisher].name]
            assert sequence == len(times), "numbers count up in the order of time"
            times.append(time_ns)
    return dict(found)


def quotes(scenario: Scenario) -> list[tuple[str, int, int, dict]]:
    """Return what all publishers but the high-rate one send: who, number, when and what."""
    return [
        (scenario.publishers[publisher].name, *facts)
        for batch in scenario.publications()
        for publisher, *facts in zip(*batch, strict=True)
        if not scenario.publishers[publisher].high_rate
    ]


class TestRepeats:
    def test_same_plan_gives_the_same_files_to_the_byte(self, tmp_path: Path):
        assert contents(BURST, tmp_path / "one") == contents(BURST, tmp_path / "other")

    def test_another_seed_gives_other_files(self, tmp_path: Path):
        other = replace(BURST, seed=2)
        one, two = contents(BURST, tmp_path / "one"), contents(other, tmp_path / "two")
        assert [
            name for name, *both in zip(FILES, one, two, strict=True) if both[0] == both[1]
        ] == []


class TestDocument:
    def test_plan_stands_in_the_document(self, tmp_path: Path):
        plan = replace(
            PLAN,
            name="mine",
            routing=RoutingOptions(Algorithm.BID, 7.5, 20),
            topology=from_catalogue("figure-7"),
            profile=profile_named("octopis"),
            queues=QueueOptions(17, "drop_oldest"),
            faults=(CutLink("a,0", "b,0", 1, 2), SlowLink("a,0", "a,1", 3, 0, 4)),
            seed=99,
        )
        scenario = made(plan, tmp_path / "scenario")
        document = scenario.document
        assert document.scenario == Heading("mine", 99)
        assert document.routing == plan.routing
        assert scenario.topology == plan.topology
        assert document.costs == plan.profile.costs
        assert document.queues == plan.queues
        assert (*document.cut_links, *document.slow_links) == plan.faults


class TestClients:
    def test_every_client_has_one_subscription(self, scenario: Scenario):
        assert len({each.subscription for each in scenario.subscribers}) == 250
        assert len({each.client for each in scenario.subscribers}) == 250

    def test_clients_sit_all_over_the_overlay(self, scenario: Scenario):
        assert {each.broker for each in scenario.subscribers} == set(scenario.topology.scot.brokers)

    def test_there_are_as_many_publishers_as_asked_for_and_none_of_high_rate(self, scenario):
        assert [each.name for each in scenario.publishers] == [f"p{n:04d}" for n in range(5)]
        assert not any(each.high_rate for each in scenario.publishers)

    @pytest.mark.parametrize("selectivity", [0.02, 0.1])
    def test_subscription_matches_about_the_wanted_share(self, tmp_path: Path, selectivity: float):
        plan = replace(BURST, subscribers=203, selectivity=selectivity, seed=4)
        scenario = made(plan, tmp_path / "scenario")
        quotes = [
            attributes
            for batch in scenario.publications()
            for attributes in batch.attributes
            if "feed" not in attributes
        ]
        wanted = [each.filter for each in scenario.subscribers if each.filter != WANTS_FEED]
        assert (len(quotes), len(wanted)) == (200, 200)
        share = sum(each.matches(quote) for each in wanted for quote in quotes) / 200**2
        assert 0.75 * selectivity < share < 1.25 * selectivity


class TestTimes:
    @pytest.mark.parametrize("per_minute", [60, 1, 7_000, 3.5, 0.001, 1e9])
    def test_intended_times_follow_the_rate(self, tmp_path: Path, per_minute: float):
        scenario = made(replace(PLAN, per_minute=per_minute), tmp_path / "scenario")
        times = times_of_publishers(scenario)
        assert {name: len(each) for name, each in times.items()} == {
            f"p000{n}": 40 for n in range(5)
        }
        gaps = {b - a for each in times.values() for a, b in pairwise(each)}
        assert gaps == {round(60e9 / per_minute)}

    @pytest.mark.parametrize("seed", SEEDS)
    def test_all_publishers_start_within_five_seconds(self, tmp_path: Path, seed: int):
        plan = replace(BURST, publishers=20, seed=seed, notifications_each=2)
        starts = [each[0] for each in times_of_publishers(made(plan, tmp_path / "s")).values()]
        assert len(starts) == 21
        assert all(0 <= start <= 5_000_000_000 for start in starts)
        assert max(starts) - min(starts) > 1_000_000_000, "they do not start all at once"

    @pytest.mark.parametrize("per_minute", [100_000, 90_000, 600])
    def test_high_rate_publisher_keeps_its_rate(self, tmp_path: Path, per_minute: float):
        scenario = made(replace(BURST, high_rate_per_minute=per_minute), tmp_path / "scenario")
        times = times_of_publishers(scenario)["hrp"]
        begin = START_WITHIN_NS
        assert times == [begin + round(number * 60e9 / per_minute) for number in range(300)]

    def test_times_of_the_table_never_fall(self, tmp_path: Path):
        write_example(BURST, tmp_path / "scenario")
        times = pq.read_table(tmp_path / "scenario" / NOTIFICATIONS)["intended_ns"].to_pylist()
        assert times == sorted(times)
        assert len(times) == 500


class TestHighRatePublisher:
    @pytest.mark.parametrize("seed", SEEDS)
    @pytest.mark.parametrize("topology", ["figure-3", "paper"])
    def test_subscribers_sit_on_other_brokers_and_in_every_cluster(
        self, tmp_path: Path, topology: str, seed: int
    ):
        plan = replace(BURST, topology=from_catalogue(topology), seed=seed, notifications_each=1)
        scenario = made(plan, tmp_path / "scenario")
        (host,) = [each.broker for each in scenario.publishers if each.high_rate]
        hosts = [each.broker for each in scenario.subscribers if each.filter == WANTS_FEED]
        assert host not in hosts
        assert {broker.cluster for broker in hosts} == set(plan.topology.scot.clusters)

    def test_one_subscriber_in_five_hundred_wants_the_feed(self, tmp_path: Path):
        plan = replace(BURST, subscribers=2_000, notifications_each=0, high_rate_notifications=1)
        wanted = [each.filter for each in made(plan, tmp_path / "scenario").subscribers]
        assert wanted.count(WANTS_FEED) == 4

    def test_only_those_who_want_the_feed_match_it(self, tmp_path: Path):
        scenario = made(BURST, tmp_path / "scenario")
        feed = [
            attributes
            for batch in scenario.publications()
            for publisher, attributes in zip(batch.publishers, batch.attributes, strict=True)
            if scenario.publishers[publisher].high_rate
        ]
        assert len(feed) == 300
        for subscriber in scenario.subscribers:
            matching = sum(subscriber.filter.matches(tick) for tick in feed)
            assert matching == (300 if subscriber.filter == WANTS_FEED else 0)

    def test_feed_and_quotes_keep_their_own_ten_attributes(self, tmp_path: Path):
        scenario = made(BURST, tmp_path / "scenario")
        counts = [len(each) for batch in scenario.publications() for each in batch.attributes]
        assert set(counts) == {10}

    @pytest.mark.parametrize("seed", SEEDS)
    def test_all_others_do_the_same_without_it(self, tmp_path: Path, seed: int):
        with_it = made(replace(BURST, seed=seed), tmp_path / "with")
        without = made(replace(PLAN, seed=seed), tmp_path / "without")
        assert with_it.publishers[:-1] == without.publishers
        assert quotes(with_it) == quotes(without)
        others = [each for each in with_it.subscribers if each.filter != WANTS_FEED]
        assert others == without.subscribers[-len(others) :]

    def test_it_sits_on_any_broker(self):
        plans = [replace(BURST, seed=seed) for seed in range(60)]
        hosts = {Clients(plan).publishers().column("broker").to_pylist()[-1] for plan in plans}
        assert len(hosts) > 12, "of 18"

    def test_fewer_subscribers_than_clusters_all_want_the_feed(self, tmp_path: Path):
        scenario = made(replace(BURST, subscribers=2), tmp_path / "scenario")
        assert [each.filter for each in scenario.subscribers] == [WANTS_FEED] * 2


class TestSmallPlans:
    def test_nobody_and_nothing(self, tmp_path: Path):
        plan = replace(PLAN, subscribers=0, publishers=0, notifications_each=0)
        scenario = made(plan, tmp_path / "scenario")
        assert (scenario.subscribers, scenario.publishers) == ([], [])
        assert scenario.notification_count == 0
        assert list(scenario.publications()) == []

    def test_high_rate_publisher_alone(self, tmp_path: Path):
        scenario = made(replace(BURST, publishers=0), tmp_path / "scenario")
        assert {name: len(times) for name, times in times_of_publishers(scenario).items()} == {
            "hrp": 300
        }


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("subscribers", -1, "subscribers must be 0 or more, not -1"),
            ("publishers", -1, "publishers must be 0 or more, not -1"),
            ("notifications_each", -2, "must be 0 or more, not -2"),
            ("seed", -1, "seed must be 0 or more, not -1"),
            ("high_rate_notifications", -5, "high_rate must be 0 or more, not -5"),
            ("per_minute", 0, "per_minute must be between 0.001 and 1e9, not 0"),
            ("per_minute", 1e-10, "per_minute must be between 0.001 and 1e9, not 1e-10"),
            ("per_minute", 2e9, "per_minute must be between 0.001 and 1e9, not 2000000000.0"),
            ("per_minute", float("nan"), "per_minute must be between 0.001 and 1e9, not nan"),
            (
                "high_rate_per_minute",
                -1,
                "high_rate_per_minute must be between 0.001 and 1e9, not -1",
            ),
            ("selectivity", 0.0009, "selectivity must be between 0.001 and 0.5"),
            ("selectivity", 0.51, "selectivity must be between 0.001 and 0.5"),
        ],
    )
    def test_number_that_makes_no_sense_is_refused_and_nothing_written(
        self, tmp_path: Path, name: str, value: float, message: str
    ):
        with pytest.raises(InvalidConfiguration) as caught:
            write_example(replace(PLAN, **{name: value}), tmp_path / "scenario")
        assert message in str(caught.value)
        assert not (tmp_path / "scenario").exists()

    def test_folder_that_holds_something_is_left_alone(self, tmp_path: Path):
        (tmp_path / "mine.txt").write_text("keep me")
        with pytest.raises(InvalidConfiguration, match="is not empty"):
            write_example(PLAN, tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

    def test_faults_that_overlap_are_refused_and_nothing_written(self, tmp_path: Path):
        cuts = CutLink("a,0", "b,0", 1000, 9000), CutLink("b,0", "a,0", 2000, 20000)
        with pytest.raises(InvalidConfiguration, match="overlap: make them one"):
            write_example(replace(PLAN, faults=cuts), tmp_path / "scenario")
        assert not (tmp_path / "scenario").exists()
