"""Logins through a gateway: what is not tried again, and who has to wait."""

import asyncio

import pytest

from octopis.errors import ConnectionFailed, LoginFailed
from octopis.gateway.members.logins import Logins
from octopis.gateway.problems import Problem
from octopis.gateway.security import Security, expiry_of, token_of


async def fail(logins: Logins, key: bytes, host: str, failure: Exception) -> Problem:
    with pytest.raises(Problem) as found:
        async with logins.turn(key, host):
            raise failure
    return found.value


def test_refused_token_is_refused_again_without_asking_and_others_are_not():
    async def work() -> None:
        logins = Logins()
        found = await fail(logins, b"bad", "here", LoginFailed("it is bad"))
        assert found.status == 401
        with pytest.raises(Problem, match="it is bad"):
            logins.check(b"bad", "elsewhere")
        logins.check(b"other", "here")

    asyncio.run(work())


def test_address_with_failures_waits_and_others_do_not():
    async def work() -> None:
        logins, loop = Logins(), asyncio.get_running_loop()
        for number in range(3):
            await fail(logins, bytes([number]), "here", LoginFailed("no"))
        waited = []
        for host in ("here", "elsewhere"):
            began = loop.time()
            async with logins.turn(b"good", host):
                waited.append(loop.time() - began)
        assert waited[0] > 0.35
        assert waited[1] < 0.2

    asyncio.run(work())


def test_logins_under_way_from_one_address_are_bounded():
    async def work() -> None:
        logins = Logins()
        turns = [logins.turn(bytes([number]), "here") for number in range(8)]
        for turn in turns:
            await turn.__aenter__()
        with pytest.raises(Problem) as found:
            logins.check(b"more", "here")
        assert found.value.status == 429
        logins.check(b"more", "elsewhere")
        for turn in turns:
            await turn.__aexit__(None, None, None)
        logins.check(b"more", "here")

    asyncio.run(work())


def test_broker_that_is_not_trusted_is_no_fault_of_the_token():
    async def work() -> None:
        logins = Logins()
        failure = LoginFailed("its certificate is not trusted")
        failure.__cause__ = OSError("TLS")
        assert (await fail(logins, b"good", "here", failure)).status == 502
        logins.check(b"good", "here")
        with pytest.raises(ConnectionFailed):
            async with logins.turn(b"good", "here"):
                raise ConnectionFailed("nobody is there")
        logins.check(b"good", "here")

    asyncio.run(work())


@pytest.mark.parametrize(
    "token", ["", "hunter2", "a.b", "a.b.c", "a.e30.c", "ä.e30.c", "a." * 9_000]
)
def test_what_is_no_token_is_refused_without_its_text(token: str):
    with pytest.raises(Problem) as found:
        expiry_of(token)
    assert found.value.status == 401
    assert not token or token not in str(found.value)


def test_token_stands_behind_bearer_alone():
    def said(text: str) -> str:
        return token_of({"headers": [(b"authorization", text.encode())]})

    assert said("bearer abc") == "abc"
    for text in ("Basic YTpi", "abc"):
        with pytest.raises(Problem):
            said(text)
    assert not token_of({"headers": []})


def test_nothing_that_is_shown_has_a_token():
    assert "secret" not in repr(Security("ca.pem").of("secret"))
