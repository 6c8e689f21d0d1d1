import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path

import pytest

from octopis.cli.main import main
from octopis.cli.notifications import format_line, parse_line
from octopis.cli.options import default_url
from octopis.client.client import Client
from octopis.client.streams import Received
from octopis.client.sync_client import connect_sync
from octopis.core.filters import DIALECTS
from octopis.errors import InvalidNotification
from support.live import Brokers, fall_silent, in_a_thread, line, overlay
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


def test_line_of_a_durable_subscription_has_its_position_and_pub_reads_it_all_the_same():
    line = format_line(Received({"x": 1}, b"", "p", 3, 12, ("risk",), 17))
    assert json.loads(line)["position"] == 17
    assert parse_line(line.encode()) == ({"x": 1}, b"")


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


def test_address_that_stands_for_a_filter_is_refused_with_how_it_is_written(octopis):
    for words in (
        ("sub", "localhost:7400", "price > 1"),
        ("sub", "price > 1", "127.0.0.1"),
        ("pub", "tcp://broker.example:7400", "price=1"),
        ("pub", "octopis://one:7400", "octopis://other:7400", "price=1"),
        ("sub", "[::1]:7400", "price > 1"),
    ):
        status, _, said = octopis(*words)
        assert status == 2
        assert "is an address: give one, before everything else, and write it octopis://" in said
    status, _, said = octopis("sub", "localhost:7400", "price > 1")
    assert said.startswith("octopis: 'localhost:7400' is an address")
    assert said.endswith("octopis://localhost:7400\n")


def test_port_of_something_else_is_named_in_the_error(octopis):
    for answer in (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"):
        with foreign_port(answer) as port:
            status, _, said = octopis("pub", f"octopis://127.0.0.1:{port}", "x=1")
        assert status == 1
        assert f" octopis://127.0.0.1:{port}: " in said


@contextmanager
def foreign_port(answer: bytes) -> Iterator[int]:
    """Listen as something that is no broker: it answers, or resets the connection at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            if answer:
                connection.recv(4_096)
                connection.sendall(answer)
            else:
                reset = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


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


# Subscribe, then publish


def silent_b(live: Brokers) -> None:
    fall_silent(next(broker for broker in live.values() if broker.id.short == "b,0"))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "settled", partialmethod(Client.settled, timeout_s=0.3))


def test_subscribe_in_the_background_and_publish_never_loses(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def octopis(*words: str) -> None:
        monkeypatch.setattr(sys, "argv", ["octopis", *words])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert not stopped.value.code

    printed = said = ""
    with in_a_thread(overlay(line(3, 2))) as urls:
        for price in range(5):
            octopis("sub", urls["c,1"], f"price = {price}", "--count", "1", "--background")
            octopis("pub", urls["a,0"], f"price={price}")
            deadline = time.monotonic() + 30
            while f'{{"price": {price}}}' not in printed:
                assert time.monotonic() < deadline, said
                out, error = capfd.readouterr()
                printed, said = printed + out, said + error
                time.sleep(0.01)
    assert said.count("subscribed at every broker; process ") == 5


def test_background_that_cannot_begin_says_why_and_ends_with_that_status(
    nowhere: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "argv", ["octopis", "sub", nowhere, "x > 1", "--background"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 1
    printed, said = capfd.readouterr()
    assert printed == ""
    assert said.startswith(f"octopis: no broker can be reached at {nowhere}")
    assert len(said.splitlines()) == 1


@pytest.mark.usefixtures("impatient")
def test_sub_says_when_every_broker_knows_and_when_that_is_not_sure(octopis):
    for prepare, expected in {
        (lambda _: None): "octopis: subscribed at every broker\n",
        silent_b: "octopis: subscribed, but not every broker is known to know all subscriptions: "
        "no word in time from b,0\n",
    }.items():
        with in_a_thread(overlay(line(2)), prepare) as urls:
            with publishing_later(urls["a,0"]):
                status, printed, said = octopis("sub", urls["a,0"], "x = 1", "--count", "1")
        assert (status, len(printed.splitlines())) == (0, 1)
        assert said == f"octopis: subscribed at B(a, 0)\n{expected}"


@contextmanager
def publishing_later(url: str) -> Iterator[None]:
    """Publish something one second from now."""

    def publish() -> None:
        time.sleep(1.0)
        with connect_sync(url) as client:
            client.publish({"x": 1})

    thread = threading.Thread(target=publish)
    thread.start()
    yield
    thread.join()


@pytest.mark.usefixtures("impatient")
def test_pub_that_waits_publishes_only_where_every_broker_confirms(octopis):
    with in_a_thread(overlay(line(2))) as urls:
        assert octopis("pub", urls["a,0"], "x=1", "--wait")[:2] == (0, "accepted: 1 notification\n")
    with in_a_thread(overlay(line(2)), silent_b) as urls:
        status, printed, said = octopis("pub", urls["a,0"], "x=1", "--wait")
        assert (status, printed) == (1, "")
        assert said.endswith("no word in time from b,0\n")
        with connect_sync(urls["a,0"]) as client:
            assert client.status()["published"] == 0
