import pytest

from octopis.errors import InvalidConfiguration, InvalidTopology
from octopis.routing import CONGESTION_THRESHOLD, WINDOW_MS, Algorithm
from octopis.topology import from_catalogue
from octopis.workload.costs import profile_named
from octopis.workload.scenario import (
    CutLink,
    Heading,
    QueueOptions,
    RoutingOptions,
    ScenarioDocument,
    SlowLink,
    parse_scenario,
)

COSTS = profile_named("paper").costs
HEADING = '[scenario]\nname = "burst"\nseed = 7\n'
TOPOLOGY = '[topology]\ncatalogue = "figure-7"\n'
ROUTING = '[routing]\nalgorithm = "dnr"\n'
COST_TABLE = "[costs]\n" + "".join(
    f"{name} = {getattr(COSTS, name)!r}\n" for name in COSTS.__struct_fields__
)
SLOW = '[[slow_links]]\nsource = "a,0"\ntarget = "b,0"\nfactor = 3\nbegin_ms = 0\nend_ms = 10.5\n'
CUT = '[[cut_links]]\nsource = "B(a, 0)"\ntarget = "a,1"\nbegin_ms = 5\nend_ms = 6\n'
SMALLEST = HEADING + TOPOLOGY + ROUTING + COST_TABLE
QUEUES = '[queues]\ncapacity_messages = 5\npolicy = "stop"\n'
WHOLE = SMALLEST + QUEUES + SLOW + SLOW + CUT


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
    assert document.slow_links == (SlowLink("a,0", "b,0", 3, 0, 10.5),) * 2
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
            SLOW + CUT,
            changed("end_ms", "end", SLOW) + CUT,
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


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("congestion_threshold = 0", "routing.congestion_threshold must be above 0"),
        ("congestion_threshold = -1", "routing.congestion_threshold must be above 0"),
        ("congestion_threshold = nan", "routing.congestion_threshold must be above 0"),
        ("window_ms = 0", "routing.window_ms must be above 0 and below 1e6"),
        ("window_ms = 1e6", "routing.window_ms must be above 0 and below 1e6"),
        ("window_ms = nan", "routing.window_ms must be above 0 and below 1e6"),
    ],
)
def test_routing_options_that_make_no_sense_are_refused(option: str, message: str):
    assert refusal(changed(ROUTING, f"{ROUTING}{option}\n")) == message


def test_queue_without_room_is_refused():
    text = changed("capacity_messages = 5", "capacity_messages = 0")
    assert refusal(text) == "queues.capacity_messages must be 1 or more"


def test_cost_that_makes_no_sense_is_refused():
    text = changed("latency_us = 100", "latency_us = -1.5")
    assert refusal(text) == "costs.latency_us must be 0 or more and below 1e9, not -1.5"


@pytest.mark.parametrize("times", [(-1, 10), (10, 10), (11, 10), (0, 1e12), ("nan", 10)])
def test_fault_that_does_not_begin_before_it_ends_is_refused(times: tuple[float, float]):
    begin_ms, end_ms = times
    sentence = "begin_ms must be 0 or more and before end_ms"
    slow = SLOW.replace("= 0\n", f"= {begin_ms}\n").replace("10.5", str(end_ms))
    assert refusal(changed(SLOW + CUT, slow + CUT)) == f"slow_links[1]: {sentence}"
    cut = CUT.replace("= 5", f"= {begin_ms}").replace("= 6", f"= {end_ms}")
    assert refusal(changed(CUT, cut)) == f"cut_links[0]: {sentence}"


@pytest.mark.parametrize(
    ("factor", "shown"), [("0.99", "0.99"), ("-3", "-3.0"), ("nan", "nan"), ("inf", "inf")]
)
def test_link_that_gets_faster_is_refused(factor: str, shown: str):
    text = changed("factor = 3", f"factor = {factor}")
    assert refusal(text) == f"slow_links[0]: factor must be 1 or more, not {shown}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"a,0"', '"z,0"', "names 'z', which is not a vertex"),
        ('"b,0"', '"b,3"', "the clusters are 0 to 2"),
        ('"b,0"', '"0,b"', "did you mean b,0?"),
        ('"b,0"', '"c,0"', r"no link joins B\(a, 0\) and B\(c, 0\)"),
        ('"a,1"', '"b,1"', r"no link joins B\(a, 0\) and B\(b, 1\)"),
        ('"a,1"', '"a,0"', r"no link joins B\(a, 0\) and B\(a, 0\)"),
    ],
)
def test_fault_on_a_link_that_is_not_there_is_refused(old: str, new: str, message: str):
    with pytest.raises((InvalidTopology, InvalidConfiguration), match=message.replace("?", r"\?")):
        parse(changed(old, new))


def test_unknown_overlay_is_refused_with_the_nearest_known_one():
    message = refusal(changed("figure-7", "figur-7"))
    assert message.startswith("topology.catalogue: ")
    assert message.endswith("did you mean 'figure-7'?")


def test_bad_syntax_is_refused_with_its_line():
    with pytest.raises(InvalidConfiguration, match=r"^scenario\.toml is not valid TOML: .*line 2"):
        parse("[scenario]\nname = \n")
