import json
from dataclasses import replace

import pytest

from octopis.core.model import Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import from_catalogue
from octopis.explain.explainer import explain
from octopis.explain.explanation import RouteExplanation, as_document
from octopis.explain.question import Question
from support.notation import broker, links, subscriber


@pytest.fixture
def case_1() -> RouteExplanation:
    question = Question(
        from_catalogue("figure-7").scot,
        broker("b,2"),
        Notification({"price": 12}),
        (
            subscriber("S1", "c,0", "price > 10"),
            subscriber("S2", "c,1"),
            subscriber("S3", "a,2", "price > 20"),
            subscriber("S4", "b,2"),
        ),
        frozenset(links("b,2>b,0")),
    )
    return explain(question, Algorithm.DNR)


def test_paths_are_given_in_the_order_of_the_subscribers_that_were_reached(
    case_1: RouteExplanation,
):
    assert {name: [each.short for each in path] for name, path in case_1.paths.items()} == {
        "S1": ["b,2", "b,1", "b,0", "c,0"],
        "S2": ["b,2", "b,1", "c,1"],
        "S4": ["b,2"],
    }
    assert list(case_1.paths) == ["S1", "S2", "S4"]


def test_bits_have_one_digit_for_each_cluster_or_are_empty(case_1: RouteExplanation):
    assert [case_1.bits(hop) for hop in case_1.hops] == ["001", "", "", ""]


def test_document_says_everything_and_survives_json(case_1: RouteExplanation):
    document = json.loads(json.dumps(as_document(case_1)))
    assert {key: document[key] for key in ("algorithm", "publisher", "ims", "cases")} == {
        "algorithm": "dnr",
        "publisher": "b,2",
        "ims": 4,
        "cases": {"I": 1},
    }
    assert document["notification"] == {"price": 12}
    assert document["reached_at_host"] == ["S4"]
    assert document["hops"][0] == {
        "hop": 1,
        "after": 0,
        "source": "b,2",
        "target": "b,1",
        "kind": "iCOL",
        "reason": "I",
        "in_words": case_1.hops[0].reason.in_words,
        "cbv_p": "001",
        "bids": [],
        "targets": [],
        "tried": [],
        "tried_down": [],
        "overloaded": False,
        "reached": [],
    }
    assert [(hop["after"], hop["target"]) for hop in document["hops"][1:]] == [
        (1, "c,1"),
        (1, "b,0"),
        (3, "c,0"),
    ]
    assert document["subscribers"][2] == {
        "name": "S3",
        "broker": "a,2",
        "filter": "price > 20",
        "reached": False,
        "lost": False,
        "path": [],
    }
    assert (document["lost"], document["unreachable"]) == ([], [])


def test_document_names_bids(case_1: RouteExplanation):
    document = as_document(explain(case_1.question, Algorithm.BID))
    carried = {hop["target"]: hop["bids"] for hop in document["hops"]}
    assert carried["c,0"] == ["c,0"]
    assert all(hop["cbv_p"] is None for hop in document["hops"])
    assert all(hop["targets"] == [] for hop in document["hops"])


def test_document_names_targets_and_tried_clusters(case_1: RouteExplanation):
    cut = replace(case_1.question, overloaded=frozenset(), cut=frozenset(links("b,2>c,2")))
    (first, *_) = as_document(explain(cut, Algorithm.TNR))["hops"]
    assert (first["source"], first["target"], first["reason"]) == ("b,2", "b,0", "around fault")
    assert (first["targets"], first["bids"]) == (["c,0", "c,1"], [])
    assert (first["tried"], first["tried_down"]) == ([2], [2])


def test_document_names_what_is_lost(case_1: RouteExplanation):
    gone = replace(case_1.question, overloaded=frozenset(), dead=frozenset([broker("c,1")]))
    document = as_document(explain(gone, Algorithm.SNR))
    (loss,) = document["lost"]
    assert document["hops"][loss["after"] - 1]["target"] == loss["source"] == "b,1"
    assert (loss["target"], loss["kind"], loss["bids"]) == ("c,1", "aCOL", [])
    assert [each["name"] for each in document["subscribers"] if each["lost"]] == ["S2"]
    (left,) = as_document(explain(gone, Algorithm.TNR))["unreachable"]
    assert left["targets"] == ["c,1"]


def test_decisions_are_cases_or_reasons_in_a_word_or_two(case_1: RouteExplanation):
    assert case_1.decisions == {"case I": 1}
    ours = explain(case_1.question, Algorithm.TNR)
    assert ours.decisions == {"along the tree": 1, "crossed late": 2}
