"""What users say of a source: each mistake has a sentence that says what to do."""

import msgspec
import pytest

from octopis.errors import InvalidConfiguration, InvalidFilter, InvalidSubscription
from octopis.pipeline.streaming.offsets import Offset, located, parse_place, restored
from octopis.pipeline.streaming.options import Mode, batch_options, stream_options
from octopis.pipeline.streaming.ranges import Range, split
from octopis.pipeline.streaming.source import check_version

GOOD = {"address": "octopis://127.0.0.1:7400", "subscription": "risk", "filter": "price > 50"}


def test_options_come_in_lower_case_and_have_defaults_that_are_finite():
    said = GOOD | {"maxoffsetspertrigger": "7", "failondataloss": "False", "mode": "failfast"}
    options = stream_options(said)
    assert (options.max_offsets, options.fail_on_data_loss) == (7, False)
    assert options.mode is Mode.FAILFAST
    assert stream_options(GOOD).max_offsets == 500_000
    path = {"path": "octopis://h:1", "subscription": "risk"}
    assert stream_options(path).address == "octopis://h:1"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"address": "tcp://127.0.0.1:7400"}, "write octopis://host:port"),
        ({"address": ""}, "say where"),
        ({"path": "octopis://h:1"}, "say the address once"),
        ({"maxOffsetPerTrigger": "1"}, "did you mean 'maxOffsetsPerTrigger'"),
        ({"colour": "red"}, "there are address, path"),
        ({"endingOffsets": "latest"}, "an option of spark.read, not of spark.readStream"),
        ({"secret": "x"}, "OCTOPIS_SECRET"),
        ({"minPartitions": "0"}, "whole number from 1, not '0'"),
        ({"maxBytesPerTrigger": "1e6"}, "whole number from 1"),
        ({"failOnDataLoss": "maybe"}, "true or false, not 'maybe'"),
        ({"mode": "DROPMALFORMED"}, "PERMISSIVE or FAILFAST"),
        ({"startingOffsets": "first"}, 'as in {"position": 120}'),
        ({"startingOffsets": '{"position": -1}'}, "no position -1"),
        ({"subscription": "x" * 129}, "at most 128"),
    ],
)
def test_what_is_wrong_is_said(said: dict[str, str], told: str):
    with pytest.raises(InvalidConfiguration) as failure:
        stream_options(GOOD | said)
    assert told in str(failure.value)


def test_a_filter_that_does_not_parse_is_told_with_its_place():
    with pytest.raises(InvalidFilter, match="column"):
        stream_options(GOOD | {"filter": "price >"})


def test_without_a_name_it_is_said_what_a_name_is_for():
    with pytest.raises(InvalidConfiguration, match="at most once"):
        stream_options({"address": GOOD["address"], "filter": "a > 1"})
    with pytest.raises(InvalidConfiguration, match="say what to read"):
        stream_options({"address": GOOD["address"], "subscription": ""})
    with pytest.raises(InvalidConfiguration, match=r"spark\.read reads what a durable"):
        batch_options(GOOD | {"subscription": ""})
    with pytest.raises(InvalidConfiguration, match="from the latest"):
        batch_options(GOOD | {"startingOffsets": "latest"})


@pytest.mark.parametrize(
    "said",
    [
        {"startingOffsets": "earliest"},
        {"failOnDataLoss": "true"},
        {"maxBytesPerTrigger": "1000"},
        {"minPartitions": "4"},
    ],
)
def test_what_only_a_durable_subscription_can_do_is_refused_without_one(said: dict[str, str]):
    with pytest.raises(InvalidConfiguration, match=f"{next(iter(said))} is about what a durable"):
        stream_options(GOOD | {"subscription": ""} | said)


def test_a_secret_comes_from_a_file_or_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTOPIS_SECRET", "from outside")
    assert stream_options(GOOD).secret() == "from outside"
    file = tmp_path / "secret"
    options = stream_options(GOOD | {"secretFile": str(file)})
    with pytest.raises(InvalidConfiguration, match="driver and executors need"):
        options.secret()
    file.write_text("")
    with pytest.raises(InvalidConfiguration, match="is empty"):
        options.secret()
    file.write_text("mine\n")
    assert options.secret() == "mine"
    assert "mine" not in repr(options)


def test_an_offset_is_the_same_text_each_time():
    text = '{"subscription":"risk","epoch":7,"position":120}'
    found = restored(msgspec.json.decode(text), "risk")
    assert found == Offset("risk", 7, 120)
    assert msgspec.json.encode(found.as_json()).decode() == text


def test_a_checkpoint_of_another_subscription_is_refused():
    offset = Offset("risk", 7, 120).as_json()
    with pytest.raises(InvalidConfiguration, match="'risk', not of 'other'"):
        restored(offset, "other")
    with pytest.raises(InvalidConfiguration, match="no offset of this source"):
        restored({"partition": 1}, "risk")


def test_places_are_found_where_they_are_still():
    end = Offset("risk", 7, 100)
    assert located("startingOffsets", "earliest", 40, end).position == 40
    assert located("startingOffsets", "latest", 40, end).position == 100
    whole = parse_place("startingOffsets", '{"subscription":"risk","epoch":7,"position":50}')
    assert located("startingOffsets", whole, 40, end).position == 50
    for gone in (39, 101):
        with pytest.raises(InvalidSubscription, match="after 40, up to 100"):
            located("startingOffsets", gone, 40, end)
    with pytest.raises(InvalidSubscription, match="another subscription"):
        located("startingOffsets", Offset("risk", 8, 50), 40, end)


@pytest.mark.parametrize(("length", "least", "tasks"), [(0, 4, 0), (3, 4, 3), (100, 4, 4)])
def test_ranges_of_tasks_are_the_whole_once(length: int, least: int, tasks: int):
    ranges = split(Offset("risk", 7, 1_000), 1_000 + length, least)
    assert len(ranges) == tasks
    at = 1_000
    for each in ranges:
        assert isinstance(each, Range)
        assert (each.after.position, each.after.epoch) == (at, 7)
        assert each.upto > at
        at = each.upto
    assert at == 1_000 + length


def test_a_large_range_has_tasks_for_all_cores():
    assert len(split(Offset("risk", 7, 0), 500_000, 1)) == 4


def test_an_old_pyspark_is_refused_by_name():
    check_version("4.2.0.dev1")
    with pytest.raises(
        InvalidConfiguration, match=r"needs PySpark 4\.2 or newer, and this is 4\.1"
    ):
        check_version("4.1.1")
