import pytest

from octopis.trace.schemas import SCHEMAS
from octopis.trace.summary import Level


def test_levels_are_chosen_by_their_names():
    assert [level.value for level in Level] == ["summary", "deliveries", "full"]


def test_every_level_has_all_tables_of_the_one_before_and_more():
    summary, deliveries, full = (set(level.tables) for level in Level)
    assert summary < deliveries < full


def test_full_level_has_every_table():
    assert set(Level.FULL.tables) == set(SCHEMAS)


@pytest.mark.parametrize("table", ["ims", "queues", "stored"])
def test_tables_with_a_row_per_message_are_at_full_level_alone(table: str):
    assert [level for level in Level if table in level.tables] == [Level.FULL]


@pytest.mark.parametrize("level", Level)
def test_no_level_has_a_table_twice(level: Level):
    assert len(set(level.tables)) == len(level.tables)
