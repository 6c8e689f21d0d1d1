import math
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict

from octopis.core.routing import CONGESTION_THRESHOLD, WINDOW_MS, Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import (
    SCOT,
    AcyclicFactor,
    ConnectivityFactor,
    NamedTopology,
    catalogue_names,
    from_catalogue,
)
from octopis.errors import InvalidConfiguration
from octopis.scenario.costs import PROFILES, profile_named
from octopis.scenario.document import (
    CutLink,
    Heading,
    QueueOptions,
    ScenarioDocument,
    SlowLink,
    format_scenario,
    parse_scenario,
)

COSTS = profile_named("paper").costs
HEADING = '[scenario]\nname = "burst"\nseed = 7\n'
TOPOLOGY = '[topology]\ncatalogue = "figure-7"\n'
ROUTING = '[routing]\nalgorithm = "dnr"\n'
COST_TABLE = "[costs]\n" + "".join(
    f"{name} = {cost!r}\n" for name, cost in asdict(COSTS).items() if cost is not None
)
SLOW = '[[slow_links]]\nsource = "a,0"\ntarget = "b,0"\nfactor = 3\nbegin_ms = 0\nend_ms = 10.5\n'
CUT = '[[cut_links]]\nsource = "B(a, 0)"\ntarget = "a,1"\nbegin_ms = 5\nend_ms = 6\n'
SMALLEST = HEADING + TOPOLOGY + ROUTING + COST_TABLE
QUEUES = '[queues]\ncapacity_messages = 5\npolicy = "stop"\n'
LATER = SLOW.replace("= 0\n", "= 10.5\n").replace("end_ms = 10.5", "end_ms = 20")
WHOLE = SMALLEST + QUEUES + SLOW + LATER + CUT


def parse(text: str) -> ScenarioDocument:
    return parse_scenario(text, "scenario.toml")[0]


def refusal(text: str) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        parse(text)
    message = str(caught.value)
    assert message.startswith("scenario.toml: ")
    return message.removeprefix("scenario.toml: ")


def changed(old: str, new: str, text: str = WHOLE) -> str:
    assert old in text, "the test is to change something"
    return text.replace(old, new, 1)


def test_document_says_everything_about_the_run():
    document, topology = parse_scenario(WHOLE, "scenario.toml")
    assert topology == from_catalogue("figure-7")
    assert document.scenario == Heading("burst", 7)
    assert document.routing.algorithm is Algorithm.DNR
    assert document.costs == COSTS
    assert document.queues == QueueOptions(5, "stop")
    assert document.slow_links == (
        SlowLink("a,0", "b,0", 3, 0, 10.5),
        SlowLink("a,0", "b,0", 3, 10.5, 20),
    )
    assert document.cut_links == (CutLink("B(a, 0)", "a,1", 5, 6),)


def test_what_may_be_left_out_gets_the_usual_values():
    document = parse(SMALLEST)
    assert document.routing == RoutingOptions(Algorithm.DNR, CONGESTION_THRESHOLD, WINDOW_MS)
    assert document.queues == QueueOptions(100_000, "drop_newest")
    assert document.scenario.description == ""
    assert (document.slow_links, document.cut_links) == ((), ())


def test_overlay_may_be_written_in_full():
    own = (
        '[topology]\nname = "pair"\n[acyclic_factor]\nvertices = ["x"]\n'
        "[connectivity_factor]\nclusters = 2\n"
    )
    _, topology = parse_scenario(changed(TOPOLOGY, own, SMALLEST), "scenario.toml")
    assert (topology.name, len(topology.scot.brokers)) == ("pair", 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[routing]", "[rooting]", "unknown key 'rooting'; did you mean 'routing'?"),
        ("seed", "sed", "unknown key 'scenario.sed'; did you mean 'seed'?"),
        ("algorithm", "algoritm", "unknown key 'routing.algoritm'; did you mean 'algorithm'?"),
        ("policy", "polizy", "unknown key 'queues.polizy'; did you mean 'policy'?"),
        ("latency_us", "latency_ms", "unknown key 'costs.latency_ms'; did you mean 'latency_us'?"),
        ("factor", "facotr", "unknown key 'slow_links[0].facotr'; did you mean 'factor'?"),
        (
            LATER,
            changed("end_ms", "end", LATER),
            "unknown key 'slow_links[1].end'; did you mean 'end_ms'?",
        ),
        (
            CUT,
            CUT + "factor = 3\n",
            "unknown key 'cut_links[0].factor'; known here: source, target, begin_ms, end_ms",
        ),
    ],
)
def test_unknown_key_is_refused_with_the_nearest_known_one(old: str, new: str, message: str):
    assert refusal(changed(old, new)) == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (HEADING, "", "object missing required field 'scenario'"),
        (TOPOLOGY, "", "object missing required field 'topology'"),
        (ROUTING, "", "object missing required field 'routing'"),
        (COST_TABLE, "", "object missing required field 'costs'"),
        ("seed = 7\n", "", "scenario: object missing required field 'seed'"),
        ("latency_us = 100\n", "", "costs: object missing required field 'latency_us'"),
        ("factor = 3\n", "", "slow_links[0]: object missing required field 'factor'"),
        ("seed = 7", 'seed = "7"', "scenario.seed: expected 'int', got 'str'"),
        ('"dnr"', '"ospf"', "routing.algorithm: invalid enum value 'ospf'"),
        ('"stop"', '"wait"', "queues.policy: invalid enum value 'wait'"),
        ("capacity_messages = 5", "capacity_messages = 5.5", "queues.capacity_messages: expected"),
        ("factor = 3", 'factor = "3"', "slow_links[0].factor: expected 'float', got 'str'"),
        ("[[cut_links]]", "[cut_links]", "cut_links: expected 'array', got 'object'"),
    ],
)
def test_missing_and_mistyped_values_are_refused_with_their_place(old: str, new: str, message: str):
    assert refusal(changed(old, new)).startswith(message)


WINDOWS = "0.001 or more and below 1e6"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("congestion_threshold = 0", "routing.congestion_threshold must be above 0, not 0"),
        ("congestion_threshold = -1", "routing.congestion_threshold must be above 0, not -1"),
        ("congestion_threshold = nan", "routing.congestion_threshold must be above 0, not nan"),
        ("window_ms = 0", f"routing.window_ms must be {WINDOWS}, not 0"),
        ("window_ms = 0.0000001", f"routing.window_ms must be {WINDOWS}, not 1e-07"),
        ("window_ms = 1e6", f"routing.window_ms must be {WINDOWS}, not 1000000.0"),
        ("window_ms = nan", f"routing.window_ms must be {WINDOWS}, not nan"),
    ],
)
def test_routing_options_that_make_no_sense_are_refused(option: str, message: str):
    assert refusal(changed(ROUTING, f"{ROUTING}{option}\n")) == message


def test_shortest_window_is_a_microsecond():
    assert parse(changed(ROUTING, f"{ROUTING}window_ms = 0.001\n")).routing.window_ms == 0.001


def test_scenario_without_a_name_is_refused():
    assert refusal(changed('"burst"', '""')) == "scenario.name is empty"


def test_queue_without_room_is_refused():
    text = changed("capacity_messages = 5", "capacity_messages = 0")
    assert refusal(text) == "queues.capacity_messages must be 1 or more, not 0"


def test_cost_that_makes_no_sense_is_refused():
    text = changed("latency_us = 100", "latency_us = -1.5")
    assert refusal(text) == "costs.latency_us must be 0 or more and below 1e9, not -1.5"


@pytest.mark.parametrize("times", [(-1, 10), (10, 10), (11, 10), (0, 1e12), ("nan", 10)])
def test_fault_that_does_not_begin_before_it_ends_is_refused(times: tuple[float, float]):
    begin_ms, end_ms = times
    sentence = "begin_ms must be 0 or more and before end_ms"
    slow = LATER.replace("= 10.5", f"= {begin_ms}").replace("= 20", f"= {end_ms}")
    assert refusal(changed(LATER, slow)) == f"slow_links[1]: {sentence}"
    cut = CUT.replace("= 5", f"= {begin_ms}").replace("= 6", f"= {end_ms}")
    assert refusal(changed(CUT, cut)) == f"cut_links[0]: {sentence}"


@pytest.mark.parametrize(
    ("factor", "shown"), [("0.99", "0.99"), ("-3", "-3.0"), ("nan", "nan"), ("inf", "inf")]
)
def test_link_that_gets_faster_is_refused(factor: str, shown: str):
    text = changed("factor = 3", f"factor = {factor}")
    assert refusal(text) == f"slow_links[0]: factor must be 1 or more, not {shown}"


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ('"a,0"', '"z,0"', "slow_links[0]", "names 'z', which is not a vertex"),
        ('"b,0"', '"b,3"', "slow_links[0]", "the clusters are 0 to 2"),
        ('"b,0"', '"0,b"', "slow_links[0]", "did you mean b,0?"),
        ('"b,0"', '"c,0"', "slow_links[0]", "no link joins B(a, 0) and B(c, 0)"),
        ('"a,1"', '"z,0"', "cut_links[0]", "names 'z', which is not a vertex"),
        ('"a,1"', '"b,1"', "cut_links[0]", "no link joins B(a, 0) and B(b, 1)"),
        ('"a,1"', '"a,0"', "cut_links[0]", "no link joins B(a, 0) and B(a, 0)"),
    ],
)
def test_fault_on_a_link_that_is_not_there_is_refused_with_its_place(
    old: str, new: str, place: str, message: str
):
    sentence = refusal(changed(old, new))
    assert sentence.startswith(f"{place}: ")
    assert message in sentence


def with_faults(kind: str, *facts: tuple[str, str, float, float]) -> str:
    """Return a document with faults of one kind: source, target, begin and end."""
    tables = [
        f'[[{kind}]]\nsource = "{source}"\ntarget = "{target}"\n'
        f"begin_ms = {begin_ms}\nend_ms = {end_ms}\n"
        for source, target, begin_ms, end_ms in facts
    ]
    factor = "factor = 2\n" if kind == "slow_links" else ""
    return SMALLEST + "".join(table + factor for table in tables)


@pytest.mark.parametrize("kind", ["slow_links", "cut_links"])
@pytest.mark.parametrize(
    "second",
    [
        ("a,0", "b,0", 10, 30),
        ("a,0", "b,0", 20, 30),
        ("a,0", "b,0", 0, 10.5),
        ("a,0", "b,0", 12, 13),
        ("B(a, 0)", "B(b, 0)", 0, 99),
    ],
)
def test_faults_of_one_link_that_overlap_are_refused_with_both_places(
    kind: str, second: tuple[str, str, float, float]
):
    first, between = ("a,0", "b,0", 10, 20.5), ("a,0", "a,1", 10, 20)
    sentence = refusal(with_faults(kind, first, between, second))
    assert sentence == f"{kind}[2] and [0] overlap: make them one"


def test_cuts_of_one_link_overlap_whichever_end_is_named_first():
    text = with_faults("cut_links", ("a,0", "b,0", 1000, 9000), ("b,0", "a,0", 2000, 20000))
    assert refusal(text) == "cut_links[1] and [0] overlap: make them one"


def test_both_directions_of_a_link_may_be_slow_at_once():
    text = with_faults("slow_links", ("a,0", "b,0", 0, 9), ("b,0", "a,0", 5, 20))
    assert len(parse(text).slow_links) == 2


@pytest.mark.parametrize("kind", ["slow_links", "cut_links"])
def test_fault_may_begin_when_another_of_its_link_ends(kind: str):
    text = with_faults(kind, ("a,0", "b,0", 5, 9), ("a,0", "b,0", 9, 20), ("a,0", "b,0", 0, 5))
    assert len(getattr(parse(text), kind)) == 3


def test_link_may_be_slow_and_cut_at_once():
    text = with_faults("slow_links", ("a,0", "b,0", 0, 9))
    text += with_faults("cut_links", ("a,0", "b,0", 0, 9)).removeprefix(SMALLEST)
    document = parse(text)
    assert (len(document.slow_links), len(document.cut_links)) == (1, 1)


def test_unknown_overlay_is_refused_with_the_nearest_known_one():
    message = refusal(changed("figure-7", "figur-7"))
    assert message.startswith("topology.catalogue: ")
    assert message.endswith("did you mean 'figure-7'?")


def test_bad_syntax_is_refused_with_its_line():
    with pytest.raises(InvalidConfiguration, match=r"^scenario\.toml is not valid TOML: .*line 2"):
        parse("[scenario]\nname = \n")


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
