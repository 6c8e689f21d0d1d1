"""What is staged is found again after a death, wherever it lies in the log by then."""

from collections.abc import Sequence

import pytest

from octopis.core.delivery.lasting.memory import Publishers
from octopis.core.delivery.lasting.records import Decision, Staged, decode_record
from octopis.core.delivery.lasting.staging import Attempt, Staging
from octopis.core.delivery.lasting.store import Shelf
from octopis.errors import InvalidNotification
from support.moving import TrialStore

ATTEMPT = Attempt(b"q", 0, 0, 7)


def staged(*sizes: int) -> tuple[TrialStore, Staging]:
    store = TrialStore(1)
    staging = Staging(Shelf(store))
    for number, size in enumerate(sizes):
        staging.stage(ATTEMPT, sum(sizes[:number]), size, b"rows %d" % number)
    return store, staging


def next_life(records: Sequence[tuple[int, bytes]], store: TrialStore) -> Staging:
    staging = Staging(Shelf(store))
    for position, body in records:
        record = decode_record(body)
        assert isinstance(record, Staged | Decision)
        staging.found(position, record)
    staging.recovered(Publishers())
    return staging


def test_rows_come_in_pieces_that_follow_each_other():
    _, staging = staged(1_000, 500)
    assert staging.staged(ATTEMPT) == 1_500
    with pytest.raises(InvalidNotification, match="row 1,600 is staged after row 1,500"):
        staging.stage(ATTEMPT, 1_600, 1, b"rows")


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
        commit = again.decide(b"q", 0, [(0, 7, 1_500)])
        assert commit is not None
        assert [each.position for each in commit.pieces] == [moved, second[0]]


def test_what_stands_behind_a_damaged_piece_does_not_count():
    store, _ = staged(1_000, 500, 200)
    first, _, third = enumerate(store._log, 1)
    again = next_life([first, third], store)
    assert again.staged(ATTEMPT) == 1_000
    again.stage(ATTEMPT, 1_000, 700, b"rows once more")
    assert again.staged(ATTEMPT) == 1_700
