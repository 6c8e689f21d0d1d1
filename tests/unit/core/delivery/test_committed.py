"""What was published is known for good where a query may come back, and for a while where not."""

import pytest

from octopis.core.delivery.lasting.committed import Committed
from octopis.errors import InvalidNotification
from support.moving import TrialStore

QUERIES = 3


def next_life(store: TrialStore) -> Committed:
    store.sync()
    return Committed(store, QUERIES)


def test_the_last_batch_of_a_query_stays_known_however_many_one_off_batches_come():
    store = TrialStore(1)
    committed = Committed(store, QUERIES)
    committed.note(b"q", 7, is_one_off=False)
    for number in range(20):
        committed.note(b"%d" % number, 0, is_one_off=True)
    for each in (committed, next_life(store)):
        assert each.has(b"q", 7)
        assert each.has(b"q", 3)
        assert not each.has(b"q", 8)


def test_the_latest_one_off_batches_are_known_also_in_the_next_lives():
    store = TrialStore(1)
    committed = Committed(store, QUERIES)
    for number in reversed(range(20)):
        committed.note(b"%d" % number, 0, is_one_off=True)
    again = next_life(store)
    again.note(b"more", 0, is_one_off=True)
    for each in (again, next_life(store)):
        known = [number for number in range(20) if each.has(b"%d" % number, 0)]
        assert known == [0, 1]
        assert each.has(b"more", 0)
    assert len(store._state) == QUERIES


def test_a_query_too_many_is_refused_and_those_that_are_known_go_on():
    committed = Committed(TrialStore(1), QUERIES)
    for number in range(QUERIES):
        committed.check(b"%d" % number)
        committed.note(b"%d" % number, 0, is_one_off=False)
    committed.check(b"0")
    with pytest.raises(InvalidNotification, match=r"3 queries .* Raise durability\.queries_max"):
        committed.check(b"one more")


def test_a_note_never_goes_back():
    committed = Committed(TrialStore(1), QUERIES)
    committed.note(b"q", 2, is_one_off=False)
    committed.note(b"q", 1, is_one_off=False)
    assert committed.has(b"q", 2)
