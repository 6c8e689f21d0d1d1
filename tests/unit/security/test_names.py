"""Whose a certificate is: one URI, exactly, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octopis.core.model import BrokerId
from octopis.errors import InvalidConfiguration, InvalidTopology
from octopis.security.names import (
    broker_in,
    broker_named,
    broker_uri,
    client_in,
    client_named,
    client_uri,
    days_left,
    names_of,
    not_after,
    serial,
    serial_text,
    written,
)

B2 = "urn:octopis:broker:b,2"


def is_label(text: str) -> bool:
    try:
        BrokerId.parse(f"{text},0")
    except InvalidTopology:
        return False
    return text == text.strip()


awkward = st.text(st.sampled_from("ab.%/~_-:;é ²B0@'\"+&=?#\\"), min_size=1, max_size=8)
labels = (st.text(min_size=1, max_size=8) | awkward).filter(is_label)
brokers = st.builds(BrokerId, labels, st.integers(0, 300))


def certificate(*names: tuple[str, str], called: str = "x") -> dict[str, object]:
    return {"subject": ((("commonName", called),),), "subjectAltName": names}


@given(brokers)
def test_broker_is_found_again_by_its_name(broker: BrokerId):
    uri = broker_uri(broker)
    assert uri.isascii()
    assert uri.isprintable()
    assert "/" not in uri
    assert broker_in([uri, "urn:other:thing"]) == broker.short


@given(brokers, brokers)
def test_no_two_brokers_share_a_name(one: BrokerId, other: BrokerId):
    assert (broker_uri(one) == broker_uri(other)) == (one == other)
    assert (written(one).encode() == written(other).encode()) == (one == other)


@given(brokers, brokers)
def test_certificate_with_two_names_of_ours_is_nobodys(one: BrokerId, other: BrokerId):
    assert broker_in([broker_uri(one), broker_uri(other)]) is None
    assert broker_in([broker_uri(one), client_uri("alice")]) is None
    assert client_in([broker_uri(one), client_uri("alice")]) is None
    assert broker_in([broker_uri(one), broker_uri(other).upper()]) is None


@given(st.text(), st.sampled_from([broker_in, client_in]))
def test_whatever_stands_there_is_one_exact_name_or_none(text: str, read):
    for uri in (text, f"urn:octopis:broker:{text}", f"urn:octopis:client:{text}"):
        found = read([uri])
        if found is not None:
            made = broker_uri(BrokerId.parse(found)) if read is broker_in else client_uri(found)
            assert made == uri


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "urn:octopis:broker:",
        "urn:octopis:broker:b",
        "urn:octopis:broker:b,",
        "urn:octopis:broker:b,x",
        "urn:octopis:broker:b,2 ",
        "urn:octopis:broker:b,2\x00",
        "urn:octopis:broker:b,2\n",
        "urn:octopis:broker:b, 2",
        "urn:octopis:broker:b,02",
        "urn:octopis:broker:b%2C2",
        "urn:octopis:broker:%62,2",
        "urn:octopis:broker:%c3%a9,2",
        "urn:octopis:broker:é,2",
        "urn:octopis:broker:%FF,2",
        "urn:octopis:broker:b,2/",
        "urn:octopis:broker:b,2?x",
        "urn:octopis:broker:B(b,2)",
        f"urn:octopis:broker:b,{'9' * 5000}",
        "URN:octopis:broker:b,2",
        "urn:OctopiS:broker:b,2",
        "xurn:octopis:broker:b,2",
        "https://example.org/urn:octopis:broker:b,2",
        "urn:octopis:client:b,2",
    ],
)
def test_name_that_is_not_written_exactly_so_is_nobodys(uri: str):
    assert broker_in([uri]) is None


def test_matching_prefix_is_another_broker():
    assert broker_in(["urn:octopis:broker:b,22"]) == "b,22"
    assert broker_in(["urn:octopis:broker:ab,2"]) == "ab,2"


def test_name_elsewhere_than_in_a_uri_counts_for_nothing():
    elsewhere = certificate(("DNS", B2), ("email", B2), ("DNS", "b,2"), called=B2)
    assert broker_named(elsewhere) is None
    assert broker_named(certificate(("URI", B2), ("DNS", "urn:octopis:broker:c,1"))) == "b,2"
    assert client_named(certificate(("DNS", "urn:octopis:client:alice"))) is None


def test_no_certificate_names_nobody():
    for nothing in (None, {}, {"subjectAltName": ()}):
        assert names_of(nothing) == ()
        assert broker_named(nothing) is None
        assert client_named(nothing) is None


@pytest.mark.parametrize("name", ["alice", "a", "0", "alice@example.org", "a.b-c_d", "x" * 64])
def test_users_are_found_again_by_their_names(name: str):
    assert client_in([client_uri(name)]) == name
    assert client_named(certificate(("URI", client_uri(name)))) == name


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", ".hidden", "-x", "a b", "a\nb", "a\n", "é", "x" * 65, "a,b", "a%2Fb"]
)
def test_users_with_names_that_could_be_misread_are_refused(name: str):
    with pytest.raises(InvalidConfiguration, match="cannot be a user's name"):
        client_uri(name)
    assert client_in([f"urn:octopis:client:{name}"]) is None


def test_end_and_serial_number_are_read():
    found = {"notAfter": "Jan  5 09:34:43 2018 GMT", "serialNumber": "0a1B"}
    assert not_after(found) == 1515144883.0
    assert serial(found) == "0A1B"
    assert serial({"serialNumber": "AB\\\nCD"}) == "ABCD"
    assert serial_text(0xA1B) == "0A1B"
    assert days_left(86_400 * 3, 86_400) == 2
