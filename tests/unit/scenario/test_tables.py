from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.core.filters import parse_filter
from octopis.errors import InvalidConfiguration
from octopis.scenario.tables import (
    PUBLISHERS,
    SUBSCRIPTIONS,
    TIME_NS_MAX,
    Publisher,
    Subscriber,
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
COUNT = range(2_000)


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


def damage(path: Path) -> None:
    """Spoil the first half of a file: its rows, but not what says where they are."""
    content = bytearray(path.read_bytes())
    for place in range(20, len(content) // 2):
        content[place] ^= 0xFF
    path.write_bytes(content)


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

    @pytest.mark.parametrize("time_ns", [-1, TIME_NS_MAX + 1, 2**63 - 1])
    def test_time_that_no_run_reaches_is_refused_with_its_row(self, path: Path, time_ns: int):
        message = refusal(subscribers, path, ANN, BOB | {"subscribe_ns": time_ns})
        limits = "subscribe_ns must be from 0 to 100,000,000,000,000,000"
        assert message == f"{path}, row 1: {limits}, not {time_ns:,}"

    @pytest.mark.parametrize("time_ns", [0, TIME_NS_MAX])
    def test_first_and_last_time_are_taken(self, path: Path, time_ns: int):
        (found,) = subscribers(path, ANN | {"subscribe_ns": time_ns})
        assert found.subscribe_ns == time_ns

    @pytest.mark.parametrize(
        ("broker", "reason"),
        [("z,0", "names 'z'"), ("a,3", "the clusters are 0 to 2"), ("a", "is not a broker")],
    )
    def test_broker_that_is_not_there_is_refused_with_its_row(
        self, path: Path, broker: str, reason: str
    ):
        message = refusal(subscribers, path, ANN, BOB | {"broker": broker})
        assert message.startswith(f"{path}, row 1: ")
        assert reason in message


class TestPublishers:
    def test_row_is_a_publisher_at_a_broker(self, path: Path):
        assert publishers(path, NYSE, FEED) == [
            Publisher("nyse", A0, False),
            Publisher("feed", B2, True),
        ]

    def test_empty_table_has_no_publishers(self, path: Path):
        assert publishers(path) == []

    def test_name_that_was_there_before_is_refused_with_its_row(self, path: Path):
        message = refusal(publishers, path, NYSE, FEED, NYSE | {"broker": "c,1"})
        assert message == f"{path}, row 2: publisher 'nyse' was there before"

    @pytest.mark.parametrize("column", PUBLISHERS.names)
    def test_null_is_refused_with_its_row(self, path: Path, column: str):
        message = refusal(publishers, path, NYSE, FEED | {column: None})
        assert message == f"{path}, row 1: every column needs a value"

    def test_broker_that_is_not_there_is_refused_with_its_row(self, path: Path):
        message = refusal(publishers, path, NYSE, FEED | {"broker": "z,0"})
        assert message.startswith(f"{path}, row 1: ")
        assert "names 'z'" in message


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
        write(path, [ANN | NYSE])
        path.write_bytes(path.read_bytes()[:-20])
        assert refusal(read, path).startswith(f"{path} is not a Parquet file: ")

    def test_folder_is_refused(self, path: Path, read):
        path.mkdir()
        assert refusal(read, path).startswith(f"{path} is not a Parquet file: ")

    def test_file_with_damaged_pages_is_refused(self, path: Path, read):
        write(path, [ANN | NYSE | {"publisher": f"p{n}", "subscription": f"s{n}"} for n in COUNT])
        damage(path)
        assert refusal(read, path).startswith(f"{path}: ")

    def test_name_with_a_colon_is_no_address(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read
    ):
        monkeypatch.chdir(tmp_path)
        write(tmp_path / "run:1.parquet", [ANN | NYSE])
        assert len(read(Path("run:1.parquet"))) == 1
