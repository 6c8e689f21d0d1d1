"""The laws of target routing's rule, on random overlays, targets, loads, views and faults."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.routing import Reason
from support import target_laws as laws

SEEDS = st.integers(0, 2**32 - 1)
LAWS = {
    laws.nobody_is_served_twice_whatever_brokers_see: 1000,
    laws.paths_are_shortest_while_all_is_open: 600,
    laws.overload_changes_ways_but_not_who_is_reached: 600,
    laws.living_targets_are_reached_while_others_are_dead: 600,
    laws.targets_are_reached_while_links_are_cut: 400,
}
"""Each law with how many examples of it are tried here; 20,000 of each were, once."""


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law_holds(law):
    @given(seed=SEEDS)
    @settings(max_examples=LAWS[law], deadline=None)
    def holds(seed: int) -> None:
        law(seed)

    holds()


def test_random_journeys_have_every_reason():
    reasons: Counter[Reason] = Counter()
    for seed in range(150):
        for law in LAWS:
            reasons.update(hop.copy.reason for hop in law(seed).hops)
    wanted = {reason for reason in Reason if reason.value in WORDS}
    assert min(reasons[each] for each in wanted) >= 10, reasons
    assert set(reasons) == wanted


WORDS = ("target", "late", "early", "around overload", "around fault", "waits")
