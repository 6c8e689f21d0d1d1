"""Target routing with a fault planted in it fails the laws that the real one passes.

So the laws can fail, and each step of the rule and of spreading is needed.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any

import msgspec
import pytest

from octopis.core.model import BrokerId
from octopis.core.routing import Broker, LinkStatus, Reason
from octopis.core.routing.algorithms import strategy as algorithms
from octopis.core.routing.algorithms.repair import Repair
from octopis.core.routing.algorithms.spreading import Spreading
from octopis.core.routing.algorithms.tnr import Crossroads, Parts, TargetPlan, is_open, onward, plan
from octopis.core.routing.messages import HostTable
from support import target_laws as laws
from support import target_trials as trials
from support.target_ways import Rule

BACK_AGAIN = trials.tables_are_whole_while_some_are_dead_and_equal_when_they_are_back
TRIALS = 1000
"""So many at most: most mutants are caught in one of the first three, the last one in 180."""


def is_caught(law: Callable[..., object], mutant: Any) -> bool:
    """Tell whether a law does not hold of a mutant, in one of the trials."""
    for seed in range(TRIALS):
        try:
            law(seed, mutant)
        except AssertionError:
            return True
    return False


# The rule


def forgets_where_it_was(here: Crossroads, targets: int, tried: int, now_ns: int) -> TargetPlan:
    copies, lost = plan(here, targets, tried, now_ns)
    return TargetPlan([each._replace(tried=tried * each.link.is_icol) for each in copies], lost)


def goes_around_to_tried_clusters(
    here: Crossroads, targets: int, tried: int, now_ns: int
) -> TargetPlan:
    copies, lost = plan(here, targets, 0, now_ns)
    return TargetPlan(
        [each._replace(tried=(each.tried | tried) * each.link.is_icol) for each in copies], lost
    )


def loses_a_bit(here: Crossroads, targets: int, tried: int, now_ns: int) -> TargetPlan:
    copies, lost = plan(here, targets, tried, now_ns)
    if copies and copies[-1].targets.bit_count() > 2:
        last = copies[-1]
        copies[-1] = last._replace(targets=last.targets & (last.targets - 1))
    return TargetPlan(copies, lost)


def sends_a_bit_twice(here: Crossroads, targets: int, tried: int, now_ns: int) -> TargetPlan:
    copies, lost = plan(here, targets, tried, now_ns)
    if len(copies) > 1:
        first, *others = copies
        copies = [first._replace(targets=first.targets | others[0].targets), *others]
    return TargetPlan(copies, lost)


class MixedEarly(Crossroads):
    """Crosses early wherever nobody of a branch is in the own cluster."""

    def split(
        self, targets: int, tried: int, closed: Container[LinkStatus] = frozenset()
    ) -> tuple[Parts, Parts]:
        parts, stuck = super().split(targets, tried, closed)
        for mask, acol in self.branches:
            part = parts.get(acol, 0) & mask
            if part and not part & self._own_cluster and not tried:
                del parts[acol]
                icol = self.icols[((part & -part).bit_length() - 1) % self.width]
                parts[icol] = parts.get(icol, 0) | part
        return parts, stuck


class EarlyAlthoughTried(Crossroads):
    """Crosses early also where it was sent around."""

    def split(
        self,
        targets: int,
        tried: int,  # noqa: ARG002 - the fault
        closed: Container[LinkStatus] = frozenset(),
    ) -> tuple[Parts, Parts]:
        return super().split(targets, 0, closed)


def as_seen_by(kind: type[Crossroads]) -> Rule:
    """Return the rule as crossroads of another kind have it."""

    def rule(here: Crossroads, targets: int, tried: int, now_ns: int) -> TargetPlan:
        other = kind.__new__(kind)
        for name in Crossroads.__slots__:
            setattr(other, name, getattr(here, name))
        return plan(other, targets, tried, now_ns)

    rule.__name__ = kind.__name__
    return rule


def keeps_tried_over_acols(here: Crossroads, targets: int, tried: int, now_ns: int) -> TargetPlan:
    copies, lost = plan(here, targets, tried, now_ns)
    return TargetPlan(
        [each if each.link.is_icol else each._replace(tried=tried) for each in copies], lost
    )


def does_not_tell_faults_from_overload(
    here: Crossroads, targets: int, tried: int, now_ns: int
) -> TargetPlan:
    """`tried` has the clusters alone, so nothing goes back to where it could wait."""
    everywhere = (1 << here.width) - 1
    copies, lost = plan(here, targets, tried | tried << here.width, now_ns)
    return TargetPlan([each._replace(tried=each.tried & everywhere) for each in copies], lost)


def waits_for_what_is_down(
    here: Crossroads,
    targets: int,
    tried: int,
    now_ns: int,  # noqa: ARG001 - a rule is asked with it
) -> TargetPlan:
    copies = [onward(here, *each, tried) for each in here.split(targets, tried)[0].items()]
    return TargetPlan(
        [each if is_open(each.link) else each._replace(reason=Reason.WAITS) for each in copies], 0
    )


def gives_up_at_once(here: Crossroads, targets: int, tried: int, now_ns: int) -> TargetPlan:
    copies, lost = plan(here, targets, tried, now_ns)
    kept = [each for each in copies if each.reason is not Reason.AROUND_FAULT]
    gone = sum(each.targets for each in copies if each.reason is Reason.AROUND_FAULT)
    return TargetPlan(kept, lost | gone)


crosses_early_with_mixed_clusters = as_seen_by(MixedEarly)
crosses_early_although_sent_around = as_seen_by(EarlyAlthoughTried)

RULES = {
    forgets_where_it_was: laws.overload_changes_ways_but_not_who_is_reached,
    goes_around_to_tried_clusters: laws.overload_changes_ways_but_not_who_is_reached,
    loses_a_bit: laws.paths_are_shortest_while_all_is_open,
    sends_a_bit_twice: laws.nobody_is_served_twice_whatever_brokers_see,
    crosses_early_with_mixed_clusters: laws.paths_are_shortest_while_all_is_open,
    crosses_early_although_sent_around: laws.overload_changes_ways_but_not_who_is_reached,
    keeps_tried_over_acols: laws.living_targets_are_reached_while_others_are_dead,
    does_not_tell_faults_from_overload: laws.living_targets_are_reached_while_others_are_dead,
    waits_for_what_is_down: laws.targets_are_reached_while_links_are_cut,
    gives_up_at_once: laws.living_targets_are_reached_while_others_are_dead,
}


# Spreading


class IgnoresGaps(Spreading):
    """Takes a change in whatever was missed before it."""

    def _follows(self, host: Any, change: Any) -> bool:
        return bool(change.generation >= host.generation)


class NeverCompares(Spreading):
    def compare(self, now_ns: int) -> None:
        pass


class SaysNothingToReturners(Spreading):
    """Does not tell a neighbour that has come back how far it has heard."""

    def link_up(self, neighbour: BrokerId, now_ns: int) -> None:
        pass


class DoesNotRenew(Spreading):
    """Numbers on as if what it wrote in a former life were of this one."""

    def _renew(self, generation: int, now_ns: int) -> None:
        pass


class KeepsWhatIsGone(Spreading):
    """Takes a whole table in, and keeps what is not in it any more."""

    def _take_part(self, sender: BrokerId, part: HostTable, now_ns: int) -> None:
        gone = self._hosts[part.host].subscriptions
        self._present.setdefault((sender, part.host), set()).update(gone)
        super()._take_part(sender, part, now_ns)


class DropsWhatIsEarly(Spreading):
    """Says nothing of a change that came too early, and forgets it."""

    def _take_in(self, sender: BrokerId, change: Any, now_ns: int) -> None:
        if self._follows(self._hosts[change.host], change):
            super()._take_in(sender, change, now_ns)


class SpreadsAsIfAllWereUp(Spreading):
    """Does not go around what is dead."""

    def pass_on(self, change: Any, now_ns: int) -> None:
        for way, part in self._here.split(change.targets & self._here.others, 0)[0].items():
            if way.is_up:
                copy = msgspec.structs.replace(change, targets=part)
                self._outbox.send(way.link, copy, Reason.SUBSCRIPTION, now_ns)


class DoesNotReroute(Repair):
    """Loses what was on the queue of a link that broke."""

    def reroute(self, messages: Sequence[Any], now_ns: int) -> int:  # noqa: ARG002 - the fault
        return 0


def with_one_life(*facts: Any, life: int = 0, **options: Any) -> Broker:  # noqa: ARG001
    """Make a broker that numbers after a restart as it did before."""
    return Broker(*facts, **options)


SPREADINGS = {
    IgnoresGaps: trials.changes_lost_on_the_wire_are_repaired,
    NeverCompares: trials.changes_lost_on_the_wire_are_repaired,
    SaysNothingToReturners: BACK_AGAIN,
    DoesNotRenew: BACK_AGAIN,
    KeepsWhatIsGone: BACK_AGAIN,
    DropsWhatIsEarly: trials.what_waits_on_a_broken_link_goes_another_way,
    SpreadsAsIfAllWereUp: BACK_AGAIN,
    DoesNotReroute: trials.what_waits_on_a_broken_link_goes_another_way,
}


@pytest.mark.parametrize("mutant", RULES, ids=lambda each: each.__name__)
def test_rule_with_a_fault_is_caught(mutant: Rule):
    assert is_caught(RULES[mutant], mutant)


@pytest.mark.parametrize("mutant", SPREADINGS, ids=lambda each: each.__name__)
def test_spreading_with_a_fault_is_caught(mutant: type, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(algorithms, mutant.__base__.__name__, mutant)
    assert is_caught(SPREADINGS[mutant], Broker)


def test_lives_that_number_alike_are_caught():
    assert is_caught(BACK_AGAIN, with_one_life)
