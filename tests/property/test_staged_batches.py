"""Batches are published once, whole and in order, whatever dies, is damaged, or is asked again."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octopis.core.delivery.lasting.batches import Attempt, Commit
from octopis.core.delivery.lasting.staging import Staging
from support.staging import Trial

STEPS = 150
SEEDS = 400


def tried(seed: int) -> None:
    trial = Trial(seed)
    trial.run(STEPS)
    trial.check()
    trial.check_end()


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_each_batch_is_published_once_whole_and_in_order(seed: int):
    tried(seed)


# Faults


def misses_nothing(_: Staging, __: Any) -> str:
    return ""


def all_at_once(self: Staging) -> list[Commit]:
    return list(self.commits.values())


def answers_at_once(self: Trial, commit: Commit, answer: Any = Trial._answer) -> None:
    answer(self, commit)
    for name, batch in self._finished:
        self._of(name).answered.add(batch)


def forgets_where_they_are(self: Staging, attempt: Attempt) -> None:
    rows = self._rows.pop(attempt, None)
    self.bytes -= 0 if rows is None else rows.bytes


def notes_nothing(self: Staging, commit: Commit) -> None:
    self._end(commit)


def takes_no_piece_along(*_: Any) -> None:
    """Leave pieces where they were."""


def drops_none_for_later_ones(*_: Any) -> None:
    """Let what others have followed take the room."""


FAULTS: dict[str, tuple[type, str, Any]] = {
    "publishes what is left": (Staging, "_missing", misses_nothing),
    "publishes batches of a query at the same time": (Staging, "due", property(all_at_once)),
    "notes no commit": (Staging, "finish", notes_nothing),
    "answers before the sync": (Trial, "_answer", answers_at_once),
    "forgets where records are moved to": (Staging, "moved", takes_no_piece_along),
    "lets what is left take the room": (Staging, "_drop_followed", drops_none_for_later_ones),
    "gives no rows back": (Staging, "drop", forgets_where_they_are),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_caught(fault: str, monkeypatch: pytest.MonkeyPatch):
    where, name, planted = FAULTS[fault]
    monkeypatch.setattr(where, name, planted)
    for seed in range(SEEDS):
        try:
            tried(seed)
        except AssertionError:
            return
    raise AssertionError(f"{SEEDS} trials have not noticed it")
