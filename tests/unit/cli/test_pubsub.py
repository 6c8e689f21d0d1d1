from pathlib import Path

import pytest

from octopis.cli.notifications import format_line, parse_line
from octopis.cli.options import default_url
from octopis.client.streams import Received
from octopis.core.filters import DIALECTS
from octopis.errors import InvalidNotification
from support.processes import free_ports


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTOPIS_STATE", str(tmp_path / "state"))


@pytest.fixture
def nowhere() -> str:
    return f"octopis://127.0.0.1:{free_ports(1)[0]}"


def test_line_that_sub_prints_is_one_that_pub_reads():
    received = Received({"x": 1, "name": "ü"}, b"\x00\xff", "p", 3, 12, ("s1", "s2"))
    line = format_line(received)
    assert line == (
        '{"attributes": {"x": 1, "name": "ü"}, "payload": "AP8=", "publisher": "p", '
        '"sequence": 3, "intended_ns": 12, "subscriptions": ["s1", "s2"]}\n'
    )
    assert parse_line(line.encode()) == ({"x": 1, "name": "ü"}, b"\x00\xff")


def test_plain_object_is_attributes_and_null_is_an_absent_one():
    assert parse_line(b'{"attributes": "x", "y": null}') == ({"attributes": "x"}, b"")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{bad}", "this is not JSON: .* at column 2"),
        (b"\xff", "not text in UTF-8"),
        (b"[1]", "a JSON object of attributes"),
        (b'{"x": [1]}', "x"),
        (b'{"attributes": {}, "payloat": ""}', "unknown key 'payloat'"),
        (b'{"attributes": {}, "payload": "*"}', "not base64"),
        (b'{"attributes": {}, "payload": 1}', "not base64"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_line_that_makes_no_sense_is_explained(line: bytes, said: str):
    with pytest.raises(InvalidNotification, match=said):
        parse_line(line)


def test_pub_wants_attributes_or_a_file_and_not_both(octopis, nowhere: str):
    for words in ((), ("x=1", "--file", "y")):
        status, _, said = octopis("pub", nowhere, *words)
        assert (status, "say what to publish" in said) == (2, True)


def test_wrong_attribute_is_found_before_anything_is_sent(octopis, nowhere: str):
    assert octopis("pub", nowhere, "price")[2].startswith("octopis: write attributes as name=value")


def test_sub_wants_a_filter(octopis, nowhere: str):
    status, _, said = octopis("sub", nowhere)
    assert (status, "say what to subscribe to" in said) == (2, True)


def test_sub_offers_the_dialects_that_clients_take_and_refuses_others(octopis, nowhere: str):
    status, printed, _ = octopis("sub", "--help")
    assert status == 0
    offered = " ".join(printed.replace("│", " ").split())
    assert f"How filters are written: {' or '.join(DIALECTS)}." in offered
    for dialect, filter_ in {"sql": "x > 1", "padres": "[x,>,1]"}.items():
        status, _, said = octopis("sub", nowhere, filter_, "--dialect", dialect)
        assert "no broker can be reached" in said, "so it was understood"
    status, _, said = octopis("sub", nowhere, "x > 1", "--dialect", "python")
    assert (status, said) == (
        2,
        "octopis: there is no filter dialect 'python', only sql and padres\n",
    )


@pytest.mark.parametrize("words", [("pub", "x=1"), ("sub", "x > 1")])
def test_broker_that_is_not_there_is_one_clear_sentence(octopis, nowhere: str, words):
    command, what = words
    status, _, said = octopis(command, nowhere, what)
    assert status == 1
    assert f"no broker can be reached at {nowhere}" in said


def test_default_address_is_7400_where_no_overlay_runs():
    assert default_url() == "octopis://127.0.0.1:7400"
