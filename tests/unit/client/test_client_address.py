import pytest

from octopis.client.address import parse_addresses
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
        "octopis://me@host",
        "octopis://one,,two",
    ],
)
def test_anything_else_is_refused(text: str):
    with pytest.raises(InvalidConfiguration, match="is no address of a broker"):
        parse_addresses(text)
