"""Subscriptions under target routing: known everywhere while some are dead, and equal afterwards.

Brokers die, links break, changes are lost on the wire, clients subscribe, leave and move
meanwhile, and messages arrive in any order.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import target_trials as trials

SEEDS = st.integers(0, 2**32 - 1)
LAWS = {
    trials.tables_are_whole_while_some_are_dead_and_equal_when_they_are_back: 150,
    trials.changes_lost_on_the_wire_are_repaired: 150,
    trials.what_waits_on_a_broken_link_goes_another_way: 150,
}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law_holds(law):
    @given(seed=SEEDS)
    @settings(max_examples=LAWS[law], deadline=None)
    def holds(seed: int) -> None:
        law(seed)

    holds()
