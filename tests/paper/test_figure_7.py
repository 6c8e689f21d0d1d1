"""Figure 7: the three cases of dynamic routing, every link, every CBV_p and all counts.

Overloaded links are drawn without a direction; the text names the directions that matter.
"""

from pathlib import Path

import pytest

from octopis.cli.question import from_file
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm
from octopis.core.topology import LinkKind, from_catalogue
from octopis.explain.explainer import explain
from octopis.explain.explanation import Hop, RouteExplanation
from octopis.explain.question import AskedSubscriber, Question
from support.notation import broker, links, subscriber

SCOT_7 = from_catalogue("figure-7").scot
HOST = broker("b,2")
QUESTIONS = Path(__file__).parents[2] / "docs" / "questions"

FOR_CASES_I_AND_II = (
    subscriber("S1", "c,0"),
    subscriber("S2", "c,1"),
    subscriber("S3", "a,2"),
    subscriber("S4", "c,2"),
)
FOR_CASE_III = (
    subscriber("S1", "a,0"),
    subscriber("S2", "c,1"),
    subscriber("S3", "c,2"),
    subscriber("S4", "c,2"),
)


def asked(
    subscribers: tuple[AskedSubscriber, ...], overloaded: str, queues: dict[str, int] | None = None
) -> Question:
    lengths = {links(link).pop(): length for link, length in (queues or {}).items()}
    return Question(
        SCOT_7, HOST, Notification({}), subscribers, frozenset(links(overloaded)), lengths
    )


CASE_I = asked(FOR_CASES_I_AND_II, "b,2>b,0")
# The text presumes that the aCOL to B(c,2) has the shortest queue,
CASE_II = asked(FOR_CASES_I_AND_II, "b,2>b,0 b,2>b,1", {"b,2>a,2": 1, "b,2>c,2": 0})
# and here that the iCOL to B(b,1) is the least overloaded one.
CASE_III = asked(
    FOR_CASE_III,
    "b,2>b,0 b,2>b,1 b,2>c,2 b,1>b,0 c,1>c,0",
    {"b,2>b,0": 20, "b,2>b,1": 15},
)


@pytest.mark.parametrize(
    ("number", "question"), [(1, CASE_I), (2, CASE_II), (3, CASE_III)], ids=["I", "II", "III"]
)
def test_pictures_in_the_docs_answer_the_same_question(number: int, question: Question):
    assert from_file(QUESTIONS / f"figure-7-case-{number}.toml")[1] == question


def used(answer: RouteExplanation) -> set[tuple[BrokerId, BrokerId]]:
    assert len({(hop.source, hop.target) for hop in answer.hops}) == answer.ims
    return {(hop.source, hop.target) for hop in answer.hops}


def carried(answer: RouteExplanation) -> dict[str, str]:
    """Return the CBV_p-notifications: the red arrows of the figure."""
    return {
        f"{hop.source.short}>{hop.target.short}": answer.bits(hop)
        for hop in answer.hops
        if hop.cbv_p
    }


def from_host(answer: RouteExplanation) -> list[Hop]:
    return [hop for hop in answer.hops if hop.after is None]


@pytest.mark.parametrize("question", [CASE_I, CASE_II, CASE_III], ids=["I", "II", "III"])
@pytest.mark.parametrize("algorithm", Algorithm)
def test_all_four_subscribers_are_reached(question: Question, algorithm: Algorithm):
    assert set(explain(question, algorithm).paths) == {"S1", "S2", "S3", "S4"}


@pytest.mark.parametrize("question", [CASE_I, CASE_II, CASE_III], ids=["I", "II", "III"])
def test_snr_and_bid_do_not_look_at_overload(question: Question):
    calm = Question(SCOT_7, HOST, Notification({}), question.subscribers)
    for algorithm in (Algorithm.SNR, Algorithm.BID):
        assert used(explain(question, algorithm)) == used(explain(calm, algorithm))


class Answered:
    """The answers to a question, worked out when a test asks for them."""

    question: Question

    @property
    def snr(self) -> RouteExplanation:
        return explain(self.question, Algorithm.SNR)

    @property
    def dnr(self) -> RouteExplanation:
        return explain(self.question, Algorithm.DNR)


class TestCaseI(Answered):
    """One of two target iCOLs is overloaded."""

    question = CASE_I

    def test_snr_6_ims_and_dnr_6_ims(self):
        assert (self.snr.ims, self.dnr.ims) == (6, 6)

    def test_every_link_of_dnr(self):
        assert used(self.dnr) == links("b,2>a,2 b,2>c,2 b,2>b,1 b,1>c,1 b,1>b,0 b,0>c,0")

    def test_every_link_of_snr(self):
        assert used(self.snr) == links("b,2>a,2 b,2>c,2 b,2>b,1 b,2>b,0 b,1>c,1 b,0>c,0")

    def test_only_the_copy_to_b_1_carries_cbv_p_001(self):
        assert carried(self.dnr) == {"b,2>b,1": "001"}
        assert self.dnr.cases == {"I": 1}

    def test_host_enqueues_alpha_plus_theta_copies(self):
        kinds = [hop.kind for hop in from_host(self.dnr)]
        assert (kinds.count(LinkKind.ACOL), kinds.count(LinkKind.ICOL)) == (2, 1)

    def test_path_of_s1_has_4_brokers_one_more_than_under_snr(self):
        assert self.dnr.paths["S1"] == tuple(map(broker, ("b,2", "b,1", "b,0", "c,0")))
        assert (len(self.snr.paths["S1"]), len(self.dnr.paths["S1"])) == (3, 4)

    def test_paths_of_the_others_are_those_of_snr(self):
        for name in ("S2", "S3", "S4"):
            assert self.dnr.paths[name] == self.snr.paths[name]

    def test_overloaded_link_is_excluded(self):
        assert not any(hop.overloaded for hop in self.dnr.hops)
        assert sum(hop.overloaded for hop in self.snr.hops) == 1


class TestCaseII(Answered):
    """Both target iCOLs are overloaded, and target aCOLs are not.

    Paper deviation: the text says that notifications are sent only to B(a,2) and B(a,0) in the host
    cluster of P. B(a,0) is not in that cluster; the drawing has B(c,2).
    """

    question = CASE_II

    def test_snr_6_ims_and_dnr_4_ims(self):
        assert (self.snr.ims, self.dnr.ims) == (6, 4)

    def test_every_link_of_dnr(self):
        assert used(self.dnr) == links("b,2>a,2 b,2>c,2 c,2>c,1 c,2>c,0")

    def test_every_link_of_snr(self):
        assert used(self.snr) == used(explain(CASE_I, Algorithm.SNR))

    def test_only_the_copy_to_c_2_carries_cbv_p_011(self):
        assert carried(self.dnr) == {"b,2>c,2": "011"}
        assert self.dnr.cases == {"II": 1}

    def test_host_enqueues_alpha_copies_all_in_its_own_cluster(self):
        assert {hop.target for hop in from_host(self.dnr)} == {broker("a,2"), broker("c,2")}

    def test_two_overloaded_icols_are_excluded(self):
        assert sum(hop.overloaded for hop in self.snr.hops) == 2
        assert not any(hop.overloaded for hop in self.dnr.hops)

    def test_paths_to_the_target_clusters_lead_through_c_2(self):
        assert self.dnr.paths["S1"] == tuple(map(broker, ("b,2", "c,2", "c,0")))
        assert self.dnr.paths["S2"] == tuple(map(broker, ("b,2", "c,2", "c,1")))


class TestCaseIII(Answered):
    """All target links are overloaded.

    Paper deviation: the text counts 6 IMs for SNR and 5 for DNR; the drawn paths give 5 and 6. Its
    aCOL from B(b,1) to B(c,0) is that to B(c,1), as drawn.
    """

    question = CASE_III

    def test_snr_5_ims_and_dnr_6_ims(self):
        assert (self.snr.ims, self.dnr.ims) == (5, 6)

    def test_every_link_of_dnr(self):
        assert used(self.dnr) == links("b,2>c,2 b,2>b,1 b,1>c,1 c,1>c,0 c,0>b,0 b,0>a,0")

    def test_every_link_of_snr(self):
        assert used(self.snr) == links("b,2>c,2 b,2>b,1 b,2>b,0 b,1>c,1 b,0>a,0")

    def test_copies_to_b_1_and_c_1_carry_cbv_p_001_and_the_one_to_c_0_none(self):
        assert carried(self.dnr) == {"b,2>b,1": "001", "b,1>c,1": "001"}

    def test_case_iii_at_the_host_and_at_c_1_and_case_ii_between(self):
        assert self.dnr.cases == {"II": 1, "III": 2}
        reasons = {hop.target.short: hop.reason.value for hop in self.dnr.hops}
        assert (reasons["b,1"], reasons["c,1"], reasons["c,0"]) == ("III", "II", "III")

    def test_host_enqueues_alpha_plus_1_copies(self):
        assert {hop.target for hop in from_host(self.dnr)} == {broker("c,2"), broker("b,1")}

    def test_path_of_s1_has_3_brokers_more(self):
        assert self.snr.paths["S1"] == tuple(map(broker, ("b,2", "b,0", "a,0")))
        assert self.dnr.paths["S1"] == tuple(
            map(broker, ("b,2", "b,1", "c,1", "c,0", "b,0", "a,0"))
        )

    def test_overloaded_b_0_is_avoided_but_the_icol_at_region_c_is_not(self):
        overloaded = {(hop.source, hop.target) for hop in self.dnr.hops if hop.overloaded}
        assert overloaded == links("b,2>c,2 b,2>b,1 c,1>c,0")

    def test_free_link_to_a_2_is_not_used_because_it_is_no_target(self):
        assert (HOST, broker("a,2")) not in CASE_III.overloaded
        assert (HOST, broker("a,2")) not in used(self.dnr)
