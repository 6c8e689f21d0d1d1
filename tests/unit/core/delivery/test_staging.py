"""What is staged has room of its own, and is found again after a death, wherever it lies then."""

from collections.abc import Sequence

import pytest

from octopis.core.delivery.lasting.batches import Attempt
from octopis.core.delivery.lasting.memory import Publishers
from octopis.core.delivery.lasting.records import Decision, Staged, decode_record
from octopis.core.delivery.lasting.staging import Staging
from octopis.core.delivery.lasting.store import Shelf
from octopis.errors import InvalidNotification
from support.moving import TrialStore

ATTEMPT = Attempt(b"q", 0, 0, 7)
QUOTA = 10_000
"""Of which 2,000 bytes may be staged."""

NOW_NS = 1_000


def staged(*sizes: int) -> tuple[TrialStore, Staging]:
    store = TrialStore(1)
    staging = Staging(Shelf(store), QUOTA)
    for number, size in enumerate(sizes):
        staging.stage(ATTEMPT, sum(sizes[:number]), size, b"rows %d" % number, NOW_NS)
    return store, staging


def next_life(records: Sequence[tuple[int, bytes]], store: TrialStore) -> Staging:
    staging = Staging(Shelf(store), QUOTA)
    for position, body in records:
        record = decode_record(body)
        assert isinstance(record, Staged | Decision)
        staging.found(position, record)
    staging.recovered(Publishers(), NOW_NS)
    return staging


def test_rows_come_in_pieces_that_follow_each_other():
    _, staging = staged(1_000, 500)
    assert staging.staged(ATTEMPT) == 1_500
    with pytest.raises(InvalidNotification, match="row 1,600 is staged after row 1,500"):
        staging.stage(ATTEMPT, 1_600, 1, b"rows", NOW_NS)


def test_each_row_of_a_batch_is_found_in_its_piece():
    _, staging = staged(1_000, 500)
    commit = staging.decide(b"q", 0, [(0, 7, 1_500)])
    assert commit is not None
    assert commit.count == 1_500
    assert [commit.piece(row)[1] for row in (0, 999, 1_000, 1_499)] == [0, 0, 1_000, 1_000]


def test_a_piece_that_was_written_again_behind_others_is_found_in_its_place():
    store, staging = staged(1_000, 500)
    records = list(enumerate(store._log, 1))
    (first, body), second = records
    moved = store.append(body)
    record = decode_record(body)
    assert isinstance(record, Staged)
    staging.moved(moved, record)
    for there in ([second, (moved, body)], [(first, body), second, (moved, body)]):
        again = next_life(there, store)
        assert again.staged(ATTEMPT) == 1_500
        assert again.bytes == staging.bytes
        commit = again.decide(b"q", 0, [(0, 7, 1_500)])
        assert commit is not None
        assert [each.position for each in commit.pieces] == [moved, second[0]]


def test_what_stands_behind_a_damaged_piece_does_not_count():
    store, _ = staged(1_000, 500, 200)
    first, _, third = enumerate(store._log, 1)
    again = next_life([first, third], store)
    assert again.staged(ATTEMPT) == 1_000
    again.stage(ATTEMPT, 1_000, 700, b"rows once more", NOW_NS)
    assert again.staged(ATTEMPT) == 1_700


def test_a_decided_batch_that_is_not_whole_after_a_death_has_to_be_written_again():
    store, staging = staged(1_000, 500, 200)
    staging.stage(ATTEMPT._replace(source=b"p"), 0, 10, b"rows", NOW_NS)
    assert staging.decide(b"q", 0, [(0, 7, 1_700)]) is not None
    assert staging.decide(b"p", 0, [(0, 7, 10)]) is not None
    records = list(enumerate(store._log, 1))
    del records[1]
    again = next_life(records, store)
    assert again.undone == ["1,000 of 1,700 rows of part 0 of batch 0"]
    assert list(again.commits) == [(b"p", 0)]
    assert not again.is_decided(b"q", 0)
    with pytest.raises(InvalidNotification, match=r"1,000 of 1,700 rows of part 0 .* staged here"):
        again.decide(b"q", 0, [(0, 7, 1_700)])
    again.stage(ATTEMPT._replace(attempt=8), 0, 1_700, b"rows once more", NOW_NS)
    commit = again.decide(b"q", 0, [(0, 8, 1_700)])
    assert commit is not None
    again.finish(commit)
    again.finish(again.commits[b"p", 0])
    assert again.bytes == 0


def test_batches_of_one_source_are_published_one_after_the_other():
    store, staging = staged(1_000)
    later = ATTEMPT._replace(batch=1)
    staging.stage(later, 0, 10, b"later rows", NOW_NS)
    first, second = staging.decide(b"q", 0, [(0, 7, 1_000)]), staging.decide(b"q", 1, [(0, 7, 10)])
    assert first is not None
    assert second is not None
    assert staging.due == [first]
    assert store.read([each.position for each in first.pieces])
    staging.finish(first)
    assert staging.due == [second]
    assert not staging.is_committed(b"q", 1)
    staging.finish(second)
    assert staging.is_committed(b"q", 1)
    assert staging.bytes == 0


def test_a_batch_before_one_that_is_decided_is_not_published_and_waits_for_that():
    _, staging = staged(1_000)
    later = ATTEMPT._replace(batch=1)
    staging.stage(later, 0, 10, b"later rows", NOW_NS)
    commit = staging.decide(b"q", 1, [(0, 7, 10)])
    assert staging.is_decided(b"q", 0)
    assert staging.staged(ATTEMPT) == 0
    assert staging.decide(b"q", 0, [(0, 7, 1_000)]) is commit


def test_decided_batches_go_on_in_their_order_wherever_they_lie_in_the_log_after_a_death():
    store, staging = staged(1_000)
    later = ATTEMPT._replace(batch=1)
    staging.stage(later, 0, 10, b"later rows", NOW_NS)
    staging.decide(b"q", 0, [(0, 7, 1_000)])
    staging.decide(b"q", 1, [(0, 7, 10)])
    rows, later_rows, first, second = (body for _, body in enumerate(store._log, 1))
    for body in (second, first):  # they are written again, further on
        store.append(body)
    again = next_life([(1, rows), (2, later_rows), (5, second), (6, first)], store)
    for batch in (0, 1):
        (commit,) = again.due
        assert commit.key == (b"q", batch)
        again.finish(commit)
    assert again.is_committed(b"q", 1)
    assert again.bytes == 0


def test_a_batch_waits_for_the_room_of_one_before_it_that_is_decided():
    _, staging = staged()
    for batch in range(3):
        each = ATTEMPT._replace(batch=batch)
        if batch:
            assert not staging.has_room(each, 1_500)  # it waits, and is not too long
            staging.finish(staging.due[0])
        assert staging.has_room(each, 1_500)
        staging.stage(each, 0, 10, b"x" * 1_500, NOW_NS)
        assert staging.decide(b"q", batch, [(0, 7, 10)]) is not None


def test_what_is_dropped_leaves_its_room_to_others():
    _, staging = staged(1_000, 500)
    assert staging.bytes > 0
    staging.drop(ATTEMPT)
    assert staging.bytes == 0
    assert staging.staged(ATTEMPT) == 0


def test_an_attempt_goes_for_a_later_one_where_room_is_short_and_not_before():
    _, staging = staged()
    first, second = ATTEMPT, ATTEMPT._replace(attempt=8)
    staging.stage(first, 0, 10, b"x" * 900, NOW_NS)
    assert staging.has_room(second, 900)
    staging.stage(second, 0, 10, b"x" * 900, NOW_NS)
    assert staging.staged(first) == 10
    assert staging.has_room(second, 900)
    assert staging.staged(first) == 0
    with pytest.raises(InvalidNotification, match="row 10 is staged after row 0"):
        staging.stage(first, 10, 1, b"x", NOW_NS)


def test_a_batch_that_its_query_has_left_goes_for_a_later_one_where_room_is_short():
    _, staging = staged()
    later = ATTEMPT._replace(batch=1)
    staging.stage(ATTEMPT, 0, 10, b"x" * 900, NOW_NS)
    assert staging.has_room(later, 900)
    staging.stage(later, 0, 10, b"x" * 900, NOW_NS)
    assert staging.staged(ATTEMPT) == 10
    assert staging.has_room(later, 900)
    assert staging.staged(ATTEMPT) == 0


def test_a_batch_that_is_too_long_is_refused_and_whoever_staged_first_is_not():
    _, staging = staged()
    other = ATTEMPT._replace(source=b"p")
    staging.stage(ATTEMPT, 0, 10, b"x" * 900, NOW_NS)
    staging.stage(other, 0, 10, b"x" * 500, NOW_NS)
    assert staging.has_room(ATTEMPT, 900)
    assert not staging.has_room(other, 900)
    with pytest.raises(InvalidNotification, match="2,000 bytes, 20% of durability"):
        staging.has_room(ATTEMPT, 1_100)


def test_what_nobody_goes_on_with_is_dropped_but_not_what_is_decided():
    _, staging = staged(1_000, 500)
    left, decided = ATTEMPT._replace(part=1), ATTEMPT._replace(source=b"p")
    for each in (left, decided):
        staging.stage(each, 0, 3, b"rows", NOW_NS)
    assert staging.decide(b"p", 0, [(0, 7, 3)]) is not None
    staging.touch(ATTEMPT, NOW_NS + 1)
    assert list(staging.drop_older(NOW_NS + 1)) == [(left, 3)]
    assert staging.staged(ATTEMPT) == 1_500
    assert staging.staged(decided) == 3
