from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from octopis.core.model import BrokerId
from octopis.core.topology import from_catalogue
from octopis.errors import InvalidConfiguration
from octopis.scenario.clients import Clients
from octopis.scenario.wanted import check_known, read_wanted
from support.quotes import write_lines
from support.traces import small_plan

SCOT = from_catalogue("figure-3").scot


def test_text_has_one_filter_in_each_line(tmp_path: Path):
    path = write_lines(tmp_path / "s.txt", "# hot ones", "temperature > 30", "", "ok = FALSE")
    found = read_wanted(path, SCOT)
    assert [each.filter for each in found] == ["temperature > 30", "ok = FALSE"]
    assert found[1].where == f"{path}, line 4"


def test_tables_say_whose_a_filter_is_and_where(tmp_path: Path):
    lines = ["filter,subscriber,broker", 'x > 1,ann,"a,0"', "x > 2,bob,", '"x IN (1, 2)",ann,']
    found = read_wanted(write_lines(tmp_path / "s.csv", *lines), SCOT)
    columns = {
        "filter": ["x > 1", "x > 2", "x IN (1, 2)"],
        "subscriber": ["ann", "bob", "ann"],
        "broker": ["a,0", None, None],
    }
    pq.write_table(pa.table(columns), tmp_path / "s.parquet")
    same = read_wanted(tmp_path / "s.parquet", SCOT)
    assert [each[:3] for each in found] == [each[:3] for each in same]
    plan = small_plan(subscribers=3)
    rows = Clients(plan).own_subscriptions(found).to_pylist()
    assert [row["client"] for row in rows] == ["ann", "bob", "ann"]
    assert rows[0]["broker"] == rows[2]["broker"] == BrokerId("a", 0).short
    assert Clients(plan).own_subscriptions(found).to_pylist() == rows


def test_subscriber_without_a_broker_has_one_for_all_subscriptions(tmp_path: Path):
    lines = ["filter,subscriber", *(f"x > {number},ann" for number in range(20))]
    found = read_wanted(write_lines(tmp_path / "s.csv", *lines), SCOT)
    table = Clients(small_plan(subscribers=20)).own_subscriptions(found)
    assert len(set(table.column("broker").to_pylist())) == 1


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("s.txt", ["x > 1", "x >"], "line 2: "),
        ("s.txt", ["# nothing"], "holds no subscription"),
        ("s.csv", ["filtre", "x > 1"], "has no column 'filter'; did you mean 'filtre'"),
        ("s.csv", ["filter,brokr", "x > 1,a"], "unknown column 'brokr'; did you mean 'broker'"),
        ("s.csv", ["filter,broker", '" ","a,0"'], "line 2: there is no filter"),
        ("s.csv", ["filter,broker", 'x > 1,"z,0"'], "line 2: the broker 'z,0' names 'z'"),
        (
            "s.csv",
            ["filter,subscriber,broker", 'x > 1,ann,"a,0"', 'x > 1,ann,"a,1"'],
            "line 3: 'ann' is at .* a subscriber has one broker",
        ),
        ("s.parquet", ["x"], "cannot read"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, name: str, lines: list, said: str):
    with pytest.raises(InvalidConfiguration, match=said):
        read_wanted(write_lines(tmp_path / name, *lines), SCOT)
    with pytest.raises(InvalidConfiguration, match="there is no"):
        read_wanted(tmp_path / f"gone-{name}", SCOT)


def test_attribute_that_no_row_has_is_named(tmp_path: Path):
    path = write_lines(tmp_path / "s.txt", "a = 1 AND (b > a OR NOT c LIKE 'x%')", "aa IS NULL")
    found = read_wanted(path, SCOT)
    check_known(found, ["a", "b", "c", "aa"])
    said = "line 2: no row has an attribute 'aa'; did you mean 'a'"
    with pytest.raises(InvalidConfiguration, match=said):
        check_known(found, ["a", "b", "c"])


@pytest.mark.parametrize("lines", [("s.txt", "x > 1"), ("s.csv", "filter", "x > 1")])
def test_a_file_may_begin_with_the_mark_of_its_encoding(tmp_path: Path, lines: tuple[str, ...]):
    path = tmp_path / lines[0]
    path.write_text("\ufeff" + "\r\n".join(lines[1:]), encoding="utf-8")
    assert [each.filter for each in read_wanted(path, SCOT)] == ["x > 1"]
