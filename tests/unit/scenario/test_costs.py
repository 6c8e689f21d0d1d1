import math

import msgspec
import pytest

from octopis.errors import InvalidConfiguration
from octopis.scenario.costs import PROFILES, Costs, format_profile, parse_profile, profile_named

PAPER = profile_named("paper").costs
NOTHING = Costs(**(dict.fromkeys(PAPER.__struct_fields__, 0) | {"bandwidth_mbit_per_s": 1e8}))


def test_service_time_of_a_notification_is_routing_and_matching():
    assert PAPER.routing_ns() == 50_000
    assert PAPER.matching_ns(0) == 20_000
    assert PAPER.matching_ns(10_000) == 520_000


def test_every_identification_adds_to_the_service_time():
    assert PAPER.routing_ns(3) - PAPER.routing_ns() == 3_000


def test_service_time_of_a_subscription_is_routing_and_storing():
    assert PAPER.subscription_ns == 150_000


def test_sender_is_busy_for_the_overhead_and_the_bytes_over_the_bandwidth():
    assert PAPER.send_notification_ns() == 500_000 + 512 * 8
    assert PAPER.send_notification_ns(extra_bytes=16) == 500_000 + (512 + 16) * 8
    smaller = msgspec.structs.replace(PAPER, subscription_bytes=100, bandwidth_mbit_per_s=10)
    assert smaller.send_subscription_ns() == 500_000 + 100 * 800


def test_latency_is_in_nanoseconds():
    assert PAPER.latency_ns == 100_000
    assert msgspec.structs.replace(PAPER, latency_us=0.25).latency_ns == 250


def test_times_are_whole_nanoseconds():
    octopis = profile_named("octopis").costs
    times = [octopis.matching_ns(1), octopis.routing_ns(1), octopis.send_notification_ns(1)]
    assert [type(time) for time in times] == [int, int, int]


def test_work_that_costs_nothing_still_takes_a_nanosecond():
    assert NOTHING.routing_ns() == NOTHING.subscription_ns == 1
    assert NOTHING.send_notification_ns() == NOTHING.send_subscription_ns() == 1


def test_matching_and_latency_may_take_no_time():
    assert NOTHING.matching_ns(10_000) == NOTHING.latency_ns == 0


@pytest.mark.parametrize("name", PAPER.__struct_fields__)
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1e9])
def test_figure_that_makes_no_sense_is_refused_with_its_place(name: str, value: float):
    costs = msgspec.structs.replace(PAPER, **{name: value})
    with pytest.raises(InvalidConfiguration) as caught:
        costs.check("scenario.toml")
    reason = f"costs.{name} must be 0 or more and below 1e9, not {value}"
    assert str(caught.value) == f"scenario.toml: {reason}"


def test_no_bandwidth_at_all_is_refused():
    costs = msgspec.structs.replace(PAPER, bandwidth_mbit_per_s=0)
    with pytest.raises(InvalidConfiguration) as caught:
        costs.check("scenario.toml")
    assert str(caught.value) == "scenario.toml: costs.bandwidth_mbit_per_s must be above 0"


@pytest.mark.parametrize("costs", [NOTHING, *(profile.costs for profile in PROFILES.values())])
def test_figures_that_make_sense_pass(costs: Costs):
    assert costs.check("scenario.toml") is None


@pytest.mark.parametrize("name", PROFILES)
def test_profile_tells_the_source_of_every_figure(name: str):
    profile = profile_named(name)
    assert profile.name == name
    said = [
        name for name, cost in msgspec.structs.asdict(profile.costs).items() if cost is not None
    ]
    assert list(profile.sources) == said
    assert all(profile.sources.values())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("papper", "there is no profile 'papper'; did you mean 'paper'?"),
        ("Octopus", "there is no profile 'Octopus'; did you mean 'octopis'?"),
        ("x", "there is no profile 'x'; there are paper, octopis"),
    ],
)
def test_unknown_profile_is_refused_with_help(name: str, message: str):
    with pytest.raises(InvalidConfiguration) as caught:
        profile_named(name)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", PROFILES)
def test_profile_reads_back_from_its_text(name: str):
    text = format_profile(profile_named(name))
    assert text.startswith(f"[costs]  # profile {name}\n")
    read = parse_profile(text, "mine.toml")
    assert (read.name, read.costs) == ("mine.toml", profile_named(name).costs)
    assert set(read.sources.items()) == {(cost, "from mine.toml") for cost in read.sources}
    assert tuple(read.sources) == read.costs.__struct_fields__


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("latency_us", "latency_ms", "unknown key 'costs.latency_ms'; did you mean 'latency_us'?"),
        ("[costs]", "[cost]", "unknown key 'cost'; did you mean 'costs'?"),
        ("latency_us = 100 ", "latency_us = -1 ", "costs.latency_us must be 0 or more and below"),
        ("latency_us = 100 ", 'latency_us = "x" ', "costs.latency_us: expected 'float', got 'str'"),
    ],
)
def test_text_that_is_no_profile_is_refused_with_its_place(old: str, new: str, message: str):
    text = format_profile(profile_named("paper"))
    assert old in text
    with pytest.raises(InvalidConfiguration) as caught:
        parse_profile(text.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith(f"mine.toml: {message}")


def test_profile_without_costs_is_refused():
    with pytest.raises(
        InvalidConfiguration, match=r"mine\.toml: .* missing required field 'costs'"
    ):
        parse_profile("", "mine.toml")
