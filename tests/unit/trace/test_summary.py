import json
from pathlib import Path

import msgspec
import pytest

from octopis.errors import InvalidConfiguration
from octopis.trace.schemas import SCHEMAS
from octopis.trace.summary import FILE, Level, QueueBound, RunSummary, read_summary, write_summary

SUMMARY = RunSummary(
    version="1.2.3",
    source="simulator",
    scenario='a "quoted" name, süß',
    scenario_digest="0123abc",
    seed=2**64 - 1,
    algorithm="dnr",
    level="full",
    state="partial",
    reason="interrupted",
    begin_ns=1_000_000_000,
    end_ns=2**62,
    brokers=18,
    subscriptions=100,
    notifications=1_000,
    deliveries=20_000,
    deliveries_lost=3,
    subscription_ims=1_700,
    subscription_duplicates=5,
    notification_ims=7_000_000,
    sync_ims=2,
    dnr_cases={"I": 4, "III": 9},
    queue_length_max=77,
    input_wait_max_ns=12,
    queue_bounds=[
        QueueBound(source="a,0", target="a,1", first_ns=17, policy="drop_newest", dropped=3)
    ],
)


def refusal(folder: Path) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        read_summary(folder)
    return str(caught.value)


@pytest.mark.parametrize("state", ["complete", "partial", "violated"])
def test_summary_reads_back(tmp_path: Path, state: str):
    summary = msgspec.structs.replace(SUMMARY, state=state)
    write_summary(tmp_path, summary)
    assert read_summary(tmp_path) == summary


def test_summary_is_json_for_people_and_programs(tmp_path: Path):
    write_summary(tmp_path, SUMMARY)
    text = (tmp_path / FILE).read_text(encoding="utf-8")
    assert json.loads(text) == msgspec.to_builtins(SUMMARY)
    assert text.startswith('{\n  "format": 3,\n  "version": "1.2.3",\n')
    assert text.endswith("\n}\n")


def test_equal_summaries_are_equal_to_the_byte(tmp_path: Path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    write_summary(tmp_path / "one", SUMMARY)
    write_summary(tmp_path / "other", msgspec.structs.replace(SUMMARY))
    assert (tmp_path / "one" / FILE).read_bytes() == (tmp_path / "other" / FILE).read_bytes()


def test_summary_is_the_only_file_that_is_written(tmp_path: Path):
    write_summary(tmp_path, SUMMARY)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_reason_and_synchronisation_may_be_left_out(tmp_path: Path):
    facts = msgspec.to_builtins(SUMMARY)
    del facts["reason"], facts["sync_ims"]
    (tmp_path / FILE).write_text(json.dumps(facts))
    read = read_summary(tmp_path)
    assert (read.reason, read.sync_ims) == ("", 0)


def test_folder_without_a_summary_holds_no_finished_trace(tmp_path: Path):
    assert refusal(tmp_path) == f"{tmp_path} holds no finished trace: no run.json"
    assert refusal(tmp_path / "x") == f"{tmp_path / 'x'} holds no finished trace: no run.json"


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"format": 3}', b'{"version": "1'])
def test_file_that_is_no_summary_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / FILE).write_bytes(content)
    assert refusal(tmp_path).startswith(f"{tmp_path / FILE} is not a run's summary: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "finished"),
        ("source", "paper"),
        ("seed", "7"),
        ("deliveries", 1.5),
        ("dnr_cases", {"I": "many"}),
        ("queue_bounds", [{"source": "a,0"}]),
        ("notifications", None),
    ],
)
def test_value_that_makes_no_sense_is_refused_with_its_name(tmp_path: Path, name: str, value):
    facts = msgspec.to_builtins(SUMMARY) | {name: value}
    (tmp_path / FILE).write_text(json.dumps(facts))
    message = refusal(tmp_path)
    assert message.startswith(f"{tmp_path / FILE} is not a run's summary: ")
    assert f"$.{name}" in message


@pytest.mark.parametrize("number", [0, 1, 99])
def test_summary_of_another_format_is_refused(tmp_path: Path, number: int):
    write_summary(tmp_path, msgspec.structs.replace(SUMMARY, format=number))
    assert refusal(tmp_path) == (
        f"{tmp_path / FILE} is of format {number}; this version of OctopiS reads format 3"
    )


def test_summary_that_cannot_be_read_is_refused(tmp_path: Path):
    (tmp_path / FILE).mkdir()
    assert refusal(tmp_path).startswith(f"{tmp_path / FILE} is not a run's summary: ")


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
