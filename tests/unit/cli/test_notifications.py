import asyncio
import threading
from pathlib import Path

import pytest

from octopis.cli.notifications import line_batches, parse_attributes, parse_value
from octopis.errors import InvalidNotification


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-3", -3),
        ("12.5", 12.5),
        ("1e3", 1000.0),
        ("true", True),
        ("FALSE", False),
        ("IBM", "IBM"),
        ("'12'", "12"),
        ('"true"', "true"),
        ("", ""),
        ("a=b", "a=b"),
        (" b", " b"),
    ],
)
def test_values_are_what_they_look_like(text: str, value: object):
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


def test_words_become_attributes():
    assert parse_attributes(["symbol=IBM", "price=12.5"]).attributes == {
        "symbol": "IBM",
        "price": 12.5,
    }


def test_null_in_json_is_an_absent_attribute():
    assert parse_attributes(['{"a": null, "b": 1}']).attributes == {"b": 1}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["price"], "name=value"),
        (["=5"], "name=value"),
        (["a=1", "a=2"], "given twice"),
        ([" = 5"], "name=value"),
        (
            ["temperature = 5"],
            r"as temperature=5, not 'temperature = 5'; .* \{\"temperature \": 5\}",
        ),
        ([" a=5"], "without blanks around the =, as a=5"),
        (["a= 5"], "without blanks around the =, as a=5"),
        (["{nonsense"], "not JSON"),
        (['{"a": [1]}'], "type list"),
        (["a=99999999999999999999"], "64 bits"),
    ],
)
def test_bad_attributes_are_refused(words: list[str], reason: str):
    with pytest.raises(InvalidNotification, match=reason):
        parse_attributes(words)


def test_reader_of_a_file_ends_in_silence_where_nobody_wants_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "lines"
    path.write_bytes(b'{"x": 1}\n' * 100_000)
    before = set(threading.enumerate())
    faults: list[object] = []
    monkeypatch.setattr(threading, "excepthook", faults.append)

    async def take_one() -> set[threading.Thread]:
        async for _ in line_batches(path):
            break
        while len(asyncio.all_tasks()) < 2:  # until the reader waits for room
            await asyncio.sleep(0.001)
        return set(threading.enumerate()) - before

    for reader in asyncio.run(take_one()):
        reader.join(timeout=10)
        assert not reader.is_alive()
    assert faults == []
