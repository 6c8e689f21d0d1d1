from octopis.core.model import BrokerId
from octopis.core.routing import LinkStatus
from octopis.core.routing.algorithms.dnr import Plan, plan, targets


def icol(cluster: int, length: int = 0, *, up: bool = True) -> LinkStatus:
    return link(BrokerId("b", cluster), length, up=up, is_icol=True)


def acol(region: str, length: int = 0, *, up: bool = True) -> LinkStatus:
    return link(BrokerId(region, 2), length, up=up, is_icol=False)


def link(to: BrokerId, length: int, *, up: bool, is_icol: bool) -> LinkStatus:
    made = LinkStatus(to, is_icol=is_icol, is_up=up)
    made.queue_length = length
    return made


def summary(found: Plan) -> tuple[str, list[LinkStatus], LinkStatus | None, int]:
    return found.case.name, found.plain, found.carrier, found.cbv_p


def test_targets_at_the_publishers_host_are_the_matching_links():
    within, across = acol("a"), icol(0)
    assert targets([within, across], 0, [across, icol(1)]) == ([within], [across])


def test_targets_elsewhere_are_the_matching_acols_and_exactly_the_pending_clusters():
    within, first, second, third = acol("a"), icol(0), icol(1), icol(3)
    found = targets([within], 0b1010, [first, second, third])
    assert found == ([within], [second, third])


def test_every_target_gets_a_plain_copy_where_nothing_is_overloaded():
    within, at_its_longest = acol("a", 99), icol(0, 10)
    found = plan([within], [at_its_longest], 0)
    assert summary(found) == ("static", [within, at_its_longest], None, 0)


def test_free_icol_with_the_shortest_queue_carries_and_the_overloaded_one_gets_nothing():
    within, longer, shorter, full = acol("a"), icol(0, 5), icol(1, 4), icol(3, 11)
    found = plan([within], [longer, shorter, full], 0)
    assert summary(found) == ("I", [within, longer], shorter, 0b1000)


def test_free_acol_carries_where_no_icol_is_free():
    other, idle, full = acol("c", 1), acol("a"), icol(0, 99)
    assert summary(plan([other, idle], [full], 0)) == ("II", [other], idle, 0b1)


def test_least_overloaded_icol_carries_the_others_where_nothing_is_free():
    within, least, most = acol("a", 11), icol(3, 20), icol(0, 30)
    assert summary(plan([within], [most, least], 0)) == ("III", [within], least, 0b1)


def test_link_that_is_down_never_carries():
    gone, idle, full = icol(1, up=False), acol("a", 3), icol(0, 99)
    found = plan([acol("c", up=False), idle], [gone, full], 0)
    assert (found.case.name, found.carrier) == ("II", idle)
    assert gone in found.plain  # its copy is lost there, and counted


def test_links_are_judged_by_the_window_that_has_ended_by_now():
    growing, idle = icol(0, 2), icol(1)
    growing.entering = 9  # 2 * (1 + 9) / (1 + 0) = 20 in the window after
    before = plan([], [growing, idle], 0)
    after = plan([], [growing, idle], 50_000_000)
    assert before.carrier is None
    assert (after.carrier, after.cbv_p) == (idle, 0b1)
