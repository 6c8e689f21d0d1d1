from octopis.core.model import BrokerId, ClusterBitVector
from octopis.core.routing.dnr import choose, left_out, split
from octopis.core.routing.link_status import PlannedQueue


def icol(cluster: int, length: int) -> PlannedQueue:
    return PlannedQueue(BrokerId("b", cluster), length, 10)


def acol(region: str, length: int) -> PlannedQueue:
    return PlannedQueue(BrokerId(region, 2), length, 10)


def up(*queues: PlannedQueue) -> set[BrokerId]:
    return {queue.link for queue in queues}


def test_queue_at_its_longest_is_free_and_one_longer_is_overloaded():
    at, above = icol(0, 10), icol(1, 11)
    assert split([at, above]) == ([at], [above])


def test_free_icol_with_the_shortest_queue_carries():
    longer, shorter, full = icol(0, 5), icol(1, 4), icol(3, 99)
    case, carrier = choose([acol("a", 0)], [longer, shorter], [full], up(longer, shorter))
    assert (case.name, carrier) == ("I", shorter)
    assert left_out([full], carrier) == ClusterBitVector.of([3])


def test_free_acol_carries_where_no_icol_is_free():
    idle, full = acol("a", 0), icol(0, 99)
    case, carrier = choose([acol("c", 1), idle], [], [full], up(idle))
    assert (case.name, carrier) == ("II", idle)


def test_least_overloaded_icol_carries_the_others_where_nothing_is_free():
    least, most = icol(3, 20), icol(0, 30)
    case, carrier = choose([acol("a", 11)], [], [most, least], up(acol("a", 11)))
    assert (case.name, carrier) == ("III", least)
    assert left_out([most, least], carrier) == ClusterBitVector.of([0])


def test_link_that_is_down_never_carries():
    gone, idle, full = icol(1, 0), acol("a", 3), icol(0, 99)
    case, carrier = choose([idle], [gone], [full], up(idle))
    assert (case.name, carrier) == ("II", idle)
