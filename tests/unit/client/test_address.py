import pytest

from octopis.client.address import Backoff, parse_addresses, user_of
from octopis.errors import InvalidConfiguration


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("octopis://127.0.0.1:7411", [("127.0.0.1", 7411)]),
        ("octopis://localhost", [("localhost", 7400)]),
        ("octopis://[::1]:7400/", [("::1", 7400)]),
        ("octopis://one:1,two:2, three", [("one", 1), ("two", 2), ("three", 7400)]),
    ],
)
def test_addresses_are_read(text: str, addresses: list):
    assert parse_addresses(text) == addresses


@pytest.mark.parametrize(
    "text",
    [
        "",
        "127.0.0.1:7400",
        "http://127.0.0.1:7400",
        "octopis://",
        "octopis://:7400",
        "octopis://host:port",
        "octopis://host:99999",
        "octopis://host/path",
        "octopis://me@host/path",
        "octopis://one,,two",
    ],
)
def test_anything_else_is_refused(text: str):
    with pytest.raises(InvalidConfiguration, match="is no address of a broker"):
        parse_addresses(text)


def test_user_stands_before_the_host_and_is_the_same_for_all_hosts():
    assert user_of("octopis://host:7400") is None
    assert user_of("octopis://alice@one:1,two:2") == "alice"
    assert user_of("octopis://a%40b@one") == "a@b"
    assert parse_addresses("octopis://alice@one:1,alice@two") == [("one", 1), ("two", 7400)]
    with pytest.raises(InvalidConfiguration, match="for one user"):
        parse_addresses("octopis://alice@one,bob@two")
    with pytest.raises(InvalidConfiguration, match="names no user"):
        parse_addresses("octopis://@one")


@pytest.mark.parametrize(
    "text",
    [
        "octopis://alice:hunter2@host",
        "octopis://alice:hunter2@host:7400,other",
        "octopis://alice:hunt,er2@host",
        "octopis://alice:hunt@er2@host",
        "tcp://alice:hunter2@host",
    ],
)
def test_password_never_stands_in_the_address_and_is_not_repeated(text: str):
    with pytest.raises(InvalidConfiguration) as refusal:
        parse_addresses(text)
    assert "hunt" not in str(refusal.value)
    assert "er2" not in str(refusal.value).replace("er2@", "")


def test_waits_double_up_to_the_most_and_are_spread():
    backoff = Backoff(first_s=0.1, most_s=1.0)
    waits = [backoff.next() for _ in range(8)]
    for wait, full in zip(waits, [0.1, 0.2, 0.4, 0.8, 1, 1, 1, 1], strict=True):
        assert full / 2 <= wait <= full


def test_two_that_failed_together_do_not_come_back_together():
    waits = {Backoff().next() for _ in range(20)}
    assert len(waits) > 1


def test_reset_starts_anew():
    backoff = Backoff(first_s=0.1, most_s=1.0)
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 0.1
