import math
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import Algorithm
from octopis.core.topology import (
    SCOT,
    AcyclicFactor,
    ConnectivityFactor,
    NamedTopology,
    catalogue_names,
    from_catalogue,
)
from octopis.scenario.costs import PROFILES, profile_named
from octopis.scenario.document import (
    CutLink,
    Heading,
    QueueOptions,
    RoutingOptions,
    SlowLink,
    format_scenario,
    parse_scenario,
)

SNR = RoutingOptions(Algorithm.SNR)
FIGURE_7 = from_catalogue("figure-7")
OWN = NamedTopology(
    'A "quoted" name',
    "One line,\nand another.",
    SCOT(
        AcyclicFactor(["süd", "n", "o\\p"], [("n", "süd"), ("n", "o\\p")]),
        ConnectivityFactor.complete(2),
    ),
)

numbers = st.floats(0, 1e8, allow_nan=False) | st.integers(0, 10**8)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def formatted(**tables) -> str:
    usual = {
        "heading": Heading("burst", 1),
        "topology": FIGURE_7,
        "routing": SNR,
        "profile": profile_named("paper"),
        "queues": QueueOptions(),
    }
    return format_scenario(**(usual | tables))


def read_back(**tables):
    return parse_scenario(formatted(**tables), "scenario.toml")


@pytest.mark.parametrize("name", catalogue_names())
def test_overlay_of_the_catalogue_reads_back_from_its_name_alone(name: str):
    text = formatted(topology=from_catalogue(name))
    assert tomllib.loads(text)["topology"] == {"catalogue": name}
    assert parse_scenario(text, "scenario.toml")[1] == from_catalogue(name)


def test_overlay_that_is_not_in_the_catalogue_reads_back():
    assert read_back(topology=OWN)[1] == OWN


def test_overlay_of_the_catalogue_under_another_name_keeps_its_name():
    mine = NamedTopology("mine", "My own.", FIGURE_7.scot)
    assert read_back(topology=mine)[1] == mine


@pytest.mark.parametrize("name", PROFILES)
def test_profile_reads_back(name: str):
    assert read_back(profile=profile_named(name))[0].costs == profile_named(name).costs


@pytest.mark.parametrize("name", PROFILES)
def test_source_of_every_cost_stands_beside_it(name: str):
    profile = profile_named(name)
    lines = formatted(profile=profile).splitlines()
    assert f"[costs]  # profile {name}" in lines
    for cost, source in profile.sources.items():
        assert f"{cost} = {getattr(profile.costs, cost)!r}  # {source}" in lines


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "stop"])
def test_queue_options_read_back(policy):
    queues = QueueOptions(17, policy)
    assert read_back(queues=queues)[0].queues == queues


def test_empty_description_is_left_out():
    assert "description" not in formatted(heading=Heading("burst", 1, ""))


def test_threshold_may_be_infinite():
    never = RoutingOptions(Algorithm.DNR, math.inf)
    assert read_back(routing=never)[0].routing == never


@given(name=names, description=texts, seed=st.integers(0, 2**63 - 1))
@settings(max_examples=50, deadline=None)
def test_any_heading_reads_back(name: str, description: str, seed: int):
    heading = Heading(name, seed, description)
    assert read_back(heading=heading)[0].scenario == heading


@given(
    algorithm=st.sampled_from(Algorithm),
    threshold=st.floats(0, exclude_min=True, allow_nan=False),
    window_ms=st.floats(0.001, 1e6, exclude_max=True),
)
@settings(max_examples=50, deadline=None)
def test_any_routing_options_read_back(algorithm: Algorithm, threshold: float, window_ms: float):
    routing = RoutingOptions(algorithm, threshold, window_ms)
    assert read_back(routing=routing)[0].routing == routing


@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_any_faults_read_back_in_their_order(data: st.DataObject):
    scot = OWN.scot
    links = [(one, other) for one, other, _ in (*scot.acols, *scot.icols)]
    faults = []
    free_ms = dict.fromkeys(links, 0.0)  # faults of a link follow one another
    for one, other in data.draw(st.lists(st.sampled_from(links), max_size=6)):
        begin_ms = free_ms[one, other] + data.draw(numbers)
        where = str(one), other.short
        times = begin_ms, begin_ms + 1 + data.draw(numbers)
        free_ms[one, other] = times[1]
        if data.draw(st.booleans()):
            faults.append(SlowLink(*where, 1 + data.draw(numbers), *times))
        else:
            faults.append(CutLink(*where, *times))
    document, topology = read_back(topology=OWN, faults=tuple(faults))
    assert topology == OWN
    assert list(document.slow_links) == [each for each in faults if isinstance(each, SlowLink)]
    assert list(document.cut_links) == [each for each in faults if isinstance(each, CutLink)]
