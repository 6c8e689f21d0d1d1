import pytest

from octopis.core.filters import parse_filter
from octopis.core.matching import block as module
from octopis.core.matching.block import Block
from octopis.core.matching.layout import Member, slots_of
from octopis.core.model import Value

Attributes = dict[str, Value]


def block(*texts: str) -> Block:
    return Block([Member(number, 0, parse_filter(text)) for number, text in enumerate(texts)])


def owners(made: Block, batch: list[Attributes]) -> list[list[int]]:
    """Return the owners of the candidates of each notification."""
    rows, slots = slots_of(made.candidates(batch))
    found: list[list[int]] = [[] for _ in batch]
    for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
        found[row].append(int(made.owners[slot]))
    return found


MIXED: list[Attributes] = [
    {"a": 1}, {"a": 2.5}, {"a": "x"}, {"a": True}, {"a": False}, {}, {"a": "xy"}, {"b": 1},
]  # fmt: skip
TEXTS = (
    "a = 1", "a > 2", "a = 'x'", "a LIKE 'x%'", "a", "NOT a", "a IS NULL", "a IS NOT NULL", "TRUE",
    "a <> 1", "b = 1 OR a = 1",
)  # fmt: skip


def test_candidates_are_the_matches_with_mixed_kinds_in_a_batch():
    made = block(*TEXTS)
    expected = [
        [number for number, text in enumerate(TEXTS) if parse_filter(text).matches(attributes)]
        for attributes in MIXED
    ]
    assert owners(made, MIXED) == expected
    assert [owners(made, [attributes])[0] for attributes in MIXED] == expected


@pytest.mark.parametrize("working_bytes", [1, 2**19])
def test_batch_in_parts_gives_the_same(monkeypatch: pytest.MonkeyPatch, working_bytes: int):
    monkeypatch.setattr(module, "_WORKING_BYTES", working_bytes)
    made = block(*(f"a BETWEEN {n} AND {n + 3}" for n in range(100)))
    batch: list[Attributes] = [{"a": n} for n in range(-2, 110)]
    assert owners(made, batch) == [
        [n for n in range(100) if n <= value <= n + 3] for value in range(-2, 110)
    ]


@pytest.mark.parametrize("rows_bits_max", [1, 8 * 10**9])
def test_coarse_cells_close_their_gaps(monkeypatch: pytest.MonkeyPatch, rows_bits_max: int):
    monkeypatch.setattr(module, "_ROWS_BITS_MAX", rows_bits_max)
    made = block(*(f"a BETWEEN {n} AND {n + 3} OR a = {n + 50}" for n in range(100)))
    assert bool(len(made._gap_slots)) is (rows_bits_max == 1)
    for value in range(-2, 160):
        expected = [n for n in range(100) if n <= value <= n + 3 or value == n + 50]
        assert owners(made, [{"a": value}]) == [expected]
        assert owners(made, [{"a": value}] * 2) == [expected] * 2


def test_residual_slots_are_candidates_until_they_are_evaluated():
    made = block("a LIKE 'x%y' AND b = 1", "b = 1")
    batch: list[Attributes] = [{"a": "xz", "b": 1}, {"a": "z", "b": 1}]
    assert owners(made, batch) == [[0, 1], [1]]
    (slot,) = made.residual
    assert made.residual[slot].truth(batch[0]) is False
    assert [slots.tolist() for slots in slots_of(made.residual_bits[None])] == [[0], [slot]]


def test_removed_subscription_is_a_candidate_no_more():
    made = block("a = 1 OR b = 1", "a = 1", "TRUE", "FALSE")
    assert made.size == 4
    assert owners(made, [{"a": 1, "b": 1}]) == [[0, 0, 1, 2]]
    made.remove(0)
    made.remove(3)
    assert made.size == 2
    assert owners(made, [{"a": 1, "b": 1}]) == [[1, 2]]


def test_block_without_slots_and_batch_without_notifications():
    assert owners(block("FALSE"), MIXED) == [[]] * len(MIXED)
    assert owners(block(*TEXTS), []) == []
