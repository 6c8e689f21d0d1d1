import pytest

from octopis.core.filters import parse_filter
from octopis.core.matching import block as module
from octopis.core.matching.alternatives import alternatives, holds
from octopis.core.matching.block import Block
from octopis.core.matching.layout import Entry, slots_of
from octopis.core.model import Value

Attributes = dict[str, Value]


def block(*texts: str, named: str = "ab") -> Block:
    """Make a block with columns for the attributes of one letter each in `named`."""
    return Block(
        [
            Entry(number, 0, *each)
            for number, text in enumerate(texts)
            for each in alternatives(parse_filter(text).tree)
        ],
        set(named),
    )


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
    assert holds(made.residual[slot], batch[0]) is False
    assert [slots.tolist() for slots in slots_of(made.residual_bits[None])] == [[0], [slot]]


def test_removed_entry_is_a_candidate_no_more():
    made = block("a = 1 OR b = 1", "a = 1", "TRUE")
    assert owners(made, [{"a": 1, "b": 1}]) == [[0, 0, 1, 2]]
    made.remove(0)
    assert owners(made, [{"a": 1, "b": 1}]) == [[0, 1, 2]]
    made.remove(1)
    made.remove(3)
    assert owners(made, [{"a": 1, "b": 1}]) == [[1]]


def test_batch_without_notifications():
    assert owners(block(*TEXTS), []) == []


def test_what_concerns_attributes_without_columns_is_evaluated():
    made = block("a = 1 AND c = 1", "a = 1 AND c IS NOT NULL", "c > 3", named="a")
    assert set(made._attributes) == {"a"}
    batch: list[Attributes] = [{"a": 1, "c": 1}, {"a": 1}, {"c": 4}, {"a": 2, "c": 4}]
    assert owners(made, batch) == [[0, 1, 2], [0, 1, 2], [2], [2]]
    rows, numbers = made.matches(batch)
    assert list(zip(rows.tolist(), numbers.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (2, 2),
        (3, 2),
    ]


def test_attribute_without_a_column_shuts_those_who_ask_for_its_absence():
    made = block("a = 1 AND x IS NULL", "a = 1 AND y IS NULL AND x IS NULL", "a = 1", named="a")
    batch: list[Attributes] = [{"a": 1}, {"a": 1, "x": 5}, {"y": 5, "a": 1}, {"x": 1, "y": 1}]
    assert not made.residual
    assert owners(made, batch) == [[0, 1, 2], [2], [0, 2], []]
    assert [owners(made, [attributes])[0] for attributes in batch] == [[0, 1, 2], [2], [0, 2], []]
    assert owners(made, [{"a": 1, "x": None}]) == [[0, 1, 2]]  # type: ignore[dict-item]  # absent


def test_rows_grow_with_the_terms_and_not_with_attributes_times_entries():
    names = [chr(code) for code in range(0x4E00, 0x4E00 + 200)]

    def rows_bytes(entries: int) -> int:
        texts = [
            f'"{names[n % 200]}" > {n} AND "{names[(n * 7 + 1) % 200]}" < {n % 1000}'
            for n in range(entries)
        ]
        return block(*texts, named="".join(names)).nbytes

    # Full height for every column would be 2,001 rows of 250 bytes for 20 terms: 25 kB a term.
    assert rows_bytes(2_000) <= 1_200 * 2 * 2_000
    assert rows_bytes(4_000) <= 1_200 * 2 * 4_000


def test_batch_of_many_kinds_of_notifications_is_read_in_parts_and_others_are_not():
    names = "abcdefghijklmnop"
    made = block(*(f"{name} > {n}" for name in names for n in range(3)), named=names)
    several: list[Attributes] = [
        {first: 2, second: 3} for first, second in zip(names[::2], names[1::2], strict=True)
    ]
    assert made._alike(several) == []  # as many parts as pairs of columns: not worth it
    batch: list[Attributes] = [
        dict.fromkeys("abcdefgh", 2), dict.fromkeys("ijklmnop", 1), dict.fromkeys("abcdefgh", 9),
    ]  # fmt: skip
    assert made._alike(batch) == [[0, 2], [1]]
    assert owners(made, batch) == [
        [3 * at + n for at in range(8) for n in range(2)],
        [3 * at for at in range(8, 16)],
        list(range(24)),
    ]
    assert owners(made, several) == [
        [6 * at, 6 * at + 1, 6 * at + 3, 6 * at + 4, 6 * at + 5] for at in range(8)
    ]


def test_absent_columns_are_joined_once_for_each_set_of_them_within_bounds(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(module, "_KEPT_MAX", 10)
    names = "abcdefgh"
    made = block(*(f"{name} = {n}" for name in names for n in range(3)), named=names)
    for subset in range(256):
        found: Attributes = {name: 1 for at, name in enumerate(names) if subset >> at & 1}
        expected = [3 * names.index(name) + 1 for name in found]
        assert owners(made, [found, found]) == [expected] * 2
        assert owners(made, [found]) == [expected]
        assert len(made._left_on) <= module._KEPT_MAX


def test_block_concerns_whoever_has_one_of_its_attributes_unless_something_needs_none():
    assert block("a = 1", "b > 2 AND a < 5").concerns([{"x": 1}, {"b": 1}])
    assert not block("a = 1", "b > 2 AND a < 5").concerns([{"x": 1}, {}])
    assert block("a = 1", "b IS NULL").concerns([{"x": 1}])
    assert block("a = 1", "x IS NULL").concerns([{"x": 1}])
