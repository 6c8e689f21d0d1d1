from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.errors import InvalidConfiguration, InvalidInput
from octopis.filters import parse_filter
from octopis.workload.tables import (
    BATCH,
    NOTIFICATION_COLUMNS,
    PUBLISHERS,
    SUBSCRIPTIONS,
    Publisher,
    Subscriber,
    count_notifications,
    read_publications,
    read_publishers,
    read_subscribers,
)
from support.overlays import A0, B2, CHAIN

ANN = {
    "subscription": "s1",
    "client": "ann",
    "broker": "a,0",
    "filter": "price > 10",
    "subscribe_ns": 0,
}
BOB = ANN | {"subscription": "s2", "client": "bob", "broker": "B(b, 2)"}
NYSE = {"publisher": "nyse", "broker": "a,0", "high_rate": False}
FEED = {"publisher": "feed", "broker": "b,2", "high_rate": True}
QUOTE = {"publisher": "nyse", "sequence": 0, "intended_ns": 5, "attributes": {"price": 11.5}}
HERE = [Publisher("nyse", A0, False), Publisher("feed", B2, True)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.parquet"


def write(path: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> None:
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def subscribers(path: Path, *rows: dict[str, Any]) -> list[Subscriber]:
    write(path, list(rows), SUBSCRIPTIONS)
    return read_subscribers(path, CHAIN)


def publishers(path: Path, *rows: dict[str, Any]) -> list[Publisher]:
    write(path, list(rows), PUBLISHERS)
    return read_publishers(path, CHAIN)


def publications(path: Path, *rows: dict[str, Any]):
    write(path, list(rows))
    return list(read_publications(path, HERE))


def refusal(read, *arguments) -> str:
    with pytest.raises(InvalidConfiguration) as caught:
        read(*arguments)
    return str(caught.value)


class TestSubscribers:
    def test_row_is_a_subscription_of_a_client_at_a_broker(self, path: Path):
        assert subscribers(path, ANN, BOB) == [
            Subscriber("s1", "ann", A0, parse_filter("price > 10"), 0),
            Subscriber("s2", "bob", B2, parse_filter("price > 10"), 0),
        ]

    def test_rows_are_sorted_by_time_and_equal_times_keep_their_order(self, path: Path):
        times = {"w": 20, "x": 10, "y": 20, "z": 10}
        rows = [ANN | {"subscription": name, "subscribe_ns": ns} for name, ns in times.items()]
        found = [each.subscription for each in subscribers(path, *rows)]
        assert found == ["x", "z", "w", "y"]

    def test_empty_table_has_no_subscribers(self, path: Path):
        assert subscribers(path) == []

    def test_client_may_have_several_subscriptions(self, path: Path):
        found = subscribers(path, ANN, ANN | {"subscription": "s9"})
        assert [each.client for each in found] == ["ann", "ann"]

    def test_id_that_was_there_before_is_refused_with_its_row(self, path: Path):
        message = refusal(subscribers, path, ANN, BOB, ANN)
        assert message == f"{path}, row 2: the id 's1' was there before"

    @pytest.mark.parametrize("column", SUBSCRIPTIONS.names)
    def test_null_is_refused_with_its_row(self, path: Path, column: str):
        message = refusal(subscribers, path, ANN, BOB | {column: None})
        assert message == f"{path}, row 1: every column needs a value"

    def test_bad_filter_is_refused_with_its_row_and_reason(self, path: Path):
        message = refusal(subscribers, path, ANN, BOB | {"filter": "price >"})
        assert message.startswith(f"{path}, row 1: expected ")
        assert "column 8" in message

    def test_time_before_the_beginning_is_refused_with_its_row(self, path: Path):
        message = refusal(subscribers, path, ANN | {"subscribe_ns": -1})
        assert message == f"{path}, row 0: subscribe_ns must be 0 or more, not -1"

    @pytest.mark.parametrize(
        ("broker", "reason"),
        [("z,0", "names 'z'"), ("a,3", "the clusters are 0 to 2"), ("a", "is not a broker")],
    )
    def test_broker_that_is_not_there_is_refused(self, path: Path, broker: str, reason: str):
        with pytest.raises(InvalidInput, match=reason):
            subscribers(path, ANN | {"broker": broker})


class TestPublishers:
    def test_row_is_a_publisher_at_a_broker(self, path: Path):
        assert publishers(path, NYSE, FEED) == HERE

    def test_empty_table_has_no_publishers(self, path: Path):
        assert publishers(path) == []

    def test_name_that_was_there_before_is_refused_with_its_row(self, path: Path):
        message = refusal(publishers, path, NYSE, FEED, NYSE | {"broker": "c,1"})
        assert message == f"{path}, row 2: publisher 'nyse' was there before"

    @pytest.mark.parametrize("column", PUBLISHERS.names)
    def test_null_is_refused_with_its_row(self, path: Path, column: str):
        message = refusal(publishers, path, NYSE, FEED | {column: None})
        assert message == f"{path}, row 1: every column needs a value"

    def test_broker_that_is_not_there_is_refused(self, path: Path):
        with pytest.raises(InvalidInput, match="names 'z'"):
            publishers(path, NYSE | {"broker": "z,0"})


class TestColumns:
    """What subscriptions and publishers have in common."""

    def test_order_of_columns_does_not_matter_and_further_ones_are_ignored(self, path: Path):
        rows = [{"note": "early", **dict(reversed(ANN.items()))}]
        write(path, rows)
        assert read_subscribers(path, CHAIN) == subscribers(path, ANN)

    def test_strings_may_be_dictionary_encoded_and_integers_small(self, path: Path):
        name = pa.dictionary(pa.int32(), pa.string())
        narrow = pa.schema(
            [
                (field.name, pa.int16() if field.type == pa.int64() else name)
                for field in SUBSCRIPTIONS
            ]
        )
        write(path, [ANN, BOB], narrow)
        assert read_subscribers(path, CHAIN) == subscribers(path, ANN, BOB)

    @pytest.mark.parametrize("column", SUBSCRIPTIONS.names)
    def test_missing_column_of_subscriptions_is_named(self, path: Path, column: str):
        write(path, [{name: value for name, value in ANN.items() if name != column}])
        message = refusal(read_subscribers, path, CHAIN)
        assert message == f"{path}: the column {column} is missing"

    @pytest.mark.parametrize("column", PUBLISHERS.names)
    def test_missing_column_of_publishers_is_named(self, path: Path, column: str):
        write(path, [{name: value for name, value in NYSE.items() if name != column}])
        message = refusal(read_publishers, path, CHAIN)
        assert message == f"{path}: the column {column} is missing"

    @pytest.mark.parametrize(
        ("column", "value"),
        [("subscribe_ns", 1.5), ("subscribe_ns", "soon"), ("filter", {"a": 1}), ("client", [1])],
    )
    def test_wrong_type_in_subscriptions_is_refused(self, path: Path, column: str, value: Any):
        write(path, [ANN | {column: value}])
        assert refusal(read_subscribers, path, CHAIN).startswith(f"{path}: ")

    def test_wrong_type_in_publishers_is_refused(self, path: Path):
        write(path, [NYSE | {"high_rate": "maybe"}])
        assert refusal(read_publishers, path, CHAIN).startswith(f"{path}: ")


READERS = {
    "subscriptions": lambda path: read_subscribers(path, CHAIN),
    "publishers": lambda path: read_publishers(path, CHAIN),
    "count": count_notifications,
    "notifications": lambda path: list(read_publications(path, HERE)),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
class TestFiles:
    def test_missing_file_is_named(self, path: Path, read):
        assert refusal(read, path) == f"there is no {path}"

    @pytest.mark.parametrize("content", [b"", b"PAR1", b"subscription,client\n" * 10])
    def test_file_that_is_no_parquet_is_refused(self, path: Path, read, content: bytes):
        path.write_bytes(content)
        assert refusal(read, path).startswith(f"{path} is not a Parquet file: ")

    def test_file_that_was_cut_short_is_refused(self, path: Path, read):
        write(path, [ANN | NYSE | QUOTE])
        path.write_bytes(path.read_bytes()[:-20])
        assert refusal(read, path).startswith(f"{path} is not a Parquet file: ")

    def test_folder_is_refused(self, path: Path, read):
        path.mkdir()
        assert refusal(read, path).startswith(f"{path} is not a Parquet file: ")


class TestPublications:
    def test_rows_come_in_columns_with_publishers_as_numbers(self, path: Path):
        later = {"publisher": "feed", "sequence": 3, "intended_ns": 7, "attributes": {"price": 2.0}}
        (batch,) = publications(path, QUOTE, later)
        assert batch.publishers == [0, 1]
        assert batch.sequences == [0, 3]
        assert batch.intended_ns == [5, 7]
        assert batch.attributes == [{"price": 11.5}, {"price": 2.0}]

    def test_null_attribute_is_absent(self, path: Path):
        quote = QUOTE | {"attributes": {"symbol": "S1", "price": None}}
        tick = QUOTE | {"attributes": {"symbol": None, "price": 2.0}}
        nothing = QUOTE | {"attributes": {"symbol": None, "price": None}}
        (batch,) = publications(path, quote, tick, nothing)
        assert batch.attributes == [{"symbol": "S1"}, {"price": 2.0}, {}]

    def test_value_that_is_false_in_python_is_no_null(self, path: Path):
        attributes = {"count": 0, "share": 0.0, "open": False, "note": ""}
        (batch,) = publications(path, QUOTE | {"attributes": attributes})
        assert batch.attributes == [attributes]

    def test_null_in_place_of_attributes_is_a_notification_without_any(self, path: Path):
        (batch,) = publications(path, QUOTE, QUOTE | {"attributes": None})
        assert batch.attributes == [{"price": 11.5}, {}]

    def test_notifications_come_in_batches_in_their_order(self, path: Path):
        count = 2 * BATCH + 1
        rows = [QUOTE | {"sequence": number, "intended_ns": number} for number in range(count)]
        batches = publications(path, *rows)
        assert [len(batch.publishers) for batch in batches] == [BATCH, BATCH, 1]
        assert [each for batch in batches for each in batch.sequences] == list(range(count))

    def test_empty_table_has_no_notifications(self, path: Path):
        attributes = pa.struct([("price", pa.float64())])
        types = pa.string(), pa.int64(), pa.int64(), attributes
        write(path, [], pa.schema(zip(NOTIFICATION_COLUMNS, types, strict=True)))
        assert list(read_publications(path, HERE)) == []
        assert count_notifications(path) == 0

    def test_rows_are_counted(self, path: Path):
        write(path, [QUOTE] * 7)
        assert count_notifications(path) == 7

    @pytest.mark.parametrize("column", NOTIFICATION_COLUMNS)
    def test_missing_column_is_named(self, path: Path, column: str):
        row = {name: value for name, value in QUOTE.items() if name != column}
        message = refusal(publications, path, row)
        assert message == f"{path}: the column {column} is missing"

    def test_further_columns_are_ignored(self, path: Path):
        assert publications(path, {"note": 1, **QUOTE}) == publications(path, QUOTE)

    @pytest.mark.parametrize("name", ["nasdaq", None])
    def test_publisher_that_is_not_there_is_refused_with_its_row(self, path: Path, name):
        message = refusal(publications, path, QUOTE, QUOTE | {"publisher": name})
        assert message == f"{path}, row 1: no publisher {name!r}"

    def test_times_may_be_equal_and_begin_at_zero(self, path: Path):
        (batch,) = publications(path, QUOTE | {"intended_ns": 0}, QUOTE | {"intended_ns": 0})
        assert batch.intended_ns == [0, 0]

    @pytest.mark.parametrize("time_ns", [4, -1, None])
    def test_time_that_falls_or_is_missing_is_refused_with_its_row(self, path: Path, time_ns):
        message = refusal(publications, path, QUOTE, QUOTE | {"intended_ns": time_ns})
        assert message == f"{path}, row 1: intended_ns must not be empty and must not fall"

    def test_time_before_the_beginning_is_refused(self, path: Path):
        message = refusal(publications, path, QUOTE | {"intended_ns": -1})
        assert message.startswith(f"{path}, row 0: intended_ns ")

    def test_time_that_falls_between_two_batches_is_refused_with_its_row(self, path: Path):
        rows = [QUOTE] * BATCH + [QUOTE | {"intended_ns": 4}]
        assert refusal(publications, path, *rows).startswith(f"{path}, row {BATCH}: ")
