from octopis.core.model import BrokerId, Notification
from octopis.core.routing import NotificationMessage, Reason
from octopis.core.routing.link_status import PlannedQueue, least_loaded

COPY = NotificationMessage(Notification({}))


def queue(region: str, cluster: int, length: int = 0, longest: float = 10) -> PlannedQueue:
    return PlannedQueue(BrokerId(region, cluster), length, longest)


def test_planned_copies_count_as_queued():
    planned = queue("a", 0, length=9)
    planned.add(COPY, Reason.MATCH)
    assert not planned.is_congested()
    planned.add(COPY, Reason.CASE_I)
    assert planned.is_congested()
    assert planned.messages == [COPY, COPY]
    assert planned.reasons == [Reason.MATCH, Reason.CASE_I]


def test_least_loaded_is_the_shortest_and_then_the_lowest():
    assert least_loaded([queue("a", 0, 2), queue("b", 1, 1)]).link == ("b", 1)
    assert least_loaded([queue("a", 2), queue("a", 1), queue("a", 3)]).link == ("a", 1)
    assert least_loaded([queue("c", 0), queue("b", 0)]).link == ("b", 0)
