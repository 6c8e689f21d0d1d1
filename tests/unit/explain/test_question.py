import pytest

from octopis.core.model import Notification
from octopis.core.routing import CONGESTION_THRESHOLD, LinkStatus
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration, InvalidSubscription, InvalidTopology
from octopis.explain.question import QUEUE_LENGTH_MAX, Question
from support.notation import broker, links, subscriber

SCOT_7 = from_catalogue("figure-7").scot
LINK = (broker("b,2"), broker("b,0"))


def question(**parts) -> Question:
    return Question(SCOT_7, broker("b,2"), Notification({}), **parts)


def overloaded_under(asked: Question, threshold: float) -> bool:
    status = LinkStatus(LINK[1], is_icol=True, congestion_threshold=threshold)
    status.queue_length, q_in, q_out = asked.queue_of(LINK, threshold)
    status.finish_window(q_in, q_out)
    return status.is_overloaded


LENGTHS = (1, 2, 9, 10, 11, 12, 99, 100, 101, 12_345, QUEUE_LENGTH_MAX)
THRESHOLDS = (0.5, 1.0, 3.7, CONGESTION_THRESHOLD, 1000.0)


class TestStatus:
    @pytest.mark.parametrize("threshold", THRESHOLDS)
    @pytest.mark.parametrize("length", LENGTHS)
    def test_overloaded_link_is_overloaded_with_any_queue(self, length: int, threshold: float):
        asked = question(overloaded=frozenset([LINK]), queue_lengths={LINK: length})
        assert overloaded_under(asked, threshold)
        assert asked.queue_of(LINK, threshold)[0] == length

    @pytest.mark.parametrize("threshold", THRESHOLDS)
    @pytest.mark.parametrize("length", [0, *LENGTHS])
    def test_other_link_is_not_overloaded_with_any_queue(self, length: int, threshold: float):
        asked = question(queue_lengths={LINK: length})
        assert not overloaded_under(asked, threshold)
        assert asked.queue_of(LINK, threshold)[0] == length

    @pytest.mark.parametrize("threshold", THRESHOLDS)
    def test_overloaded_link_without_a_queue_gets_one(self, threshold: float):
        assert overloaded_under(question(overloaded=frozenset([LINK])), threshold)

    def test_other_links_are_empty(self):
        assert question().queue_of(LINK, 10.0) == (0, 0, 0)


class TestFaults:
    def test_links_of_dead_brokers_and_cut_links_are_down_in_both_directions(self):
        asked = question(dead=frozenset([broker("a,1")]), cut=frozenset(links("b,2>b,0")))
        assert set(asked.down) == links("a,1>b,1 a,0>a,1 a,1>a,2 b,0>b,2")
        for one, other in asked.down:
            assert asked.is_down(one, other)
            assert asked.is_down(other, one)
        assert not asked.is_down(broker("b,1"), broker("b,2"))

    def test_interested_are_those_whose_filters_match(self):
        asked = question(subscribers=(subscriber("S1", "a,0"), subscriber("S2", "a,0", "x = 1")))
        assert [each.name for each in asked.interested] == ["S1"]

    def test_publisher_at_a_dead_broker(self):
        with pytest.raises(InvalidConfiguration, match=r"B\(b, 2\) is dead: nobody can publish"):
            question(dead=frozenset([broker("b,2")]))

    def test_cut_link_that_is_not_there(self):
        with pytest.raises(InvalidTopology, match=r"no link joins B\(a, 0\) and B\(c, 0\)"):
            question(cut=frozenset(links("a,0>c,0")))

    @pytest.mark.parametrize("down", [{"dead": {LINK[1]}}, {"cut": {LINK[::-1]}}])
    @pytest.mark.parametrize("busy", [{"overloaded": {LINK}}, {"queue_lengths": {LINK: 3}}])
    def test_nothing_waits_for_a_link_that_is_down(self, down: dict, busy: dict):
        with pytest.raises(InvalidConfiguration, match="is down: nothing can wait for it"):
            question(**down, **busy)


class TestErrors:
    def test_two_subscribers_of_one_name(self):
        with pytest.raises(InvalidSubscription, match="two subscribers are called 'S1'"):
            question(subscribers=(subscriber("S1", "a,0"), subscriber("S1", "c,0")))

    def test_overloaded_link_that_is_not_there(self):
        with pytest.raises(InvalidTopology, match=r"no link joins B\(b, 2\) and B\(c, 0\)"):
            question(overloaded=frozenset(links("b,2>c,0")))

    def test_queue_of_a_link_that_is_not_there(self):
        with pytest.raises(InvalidTopology, match=r"no link joins B\(a, 0\) and B\(c, 0\)"):
            question(queue_lengths={links("a,0>c,0").pop(): 1})

    def test_overloaded_link_with_an_empty_queue(self):
        with pytest.raises(InvalidConfiguration, match="let at least 1 message wait"):
            question(overloaded=frozenset([LINK]), queue_lengths={LINK: 0})

    @pytest.mark.parametrize("length", [-1, QUEUE_LENGTH_MAX + 1])
    def test_queue_length_out_of_bounds(self, length: int):
        with pytest.raises(InvalidConfiguration, match="has 0 to 1,000,000,000 messages"):
            question(queue_lengths={LINK: length})
