"""Logins through a gateway: what is not tried again, and who has to wait."""

import asyncio

import pytest

from octopis.errors import ConnectionFailed, LoginFailed
from octopis.gateway.members.logins import AFTER_FAILURES, Logins
from octopis.gateway.problems import Problem
from octopis.gateway.security import Security, expiry_of, token_of
from octopis.gateway.settings import GatewayLimits


async def fail(logins: Logins, key: bytes, host: str, failure: Exception) -> Problem:
    with pytest.raises(Problem) as found:
        async with logins.turn(key, host):
            raise failure
    return found.value


def test_refused_token_is_refused_again_without_asking_and_others_are_not():
    async def work() -> None:
        logins = Logins(GatewayLimits())
        found = await fail(logins, b"bad", "here", LoginFailed("it is bad"))
        assert found.status == 401
        with pytest.raises(Problem, match="it is bad"):
            logins.check(b"bad", "elsewhere")
        logins.check(b"other", "here")

    asyncio.run(work())


def test_right_token_is_let_in_at_once_whatever_failed_and_a_wrong_one_hears_late():
    async def work() -> None:
        logins, loop = Logins(GatewayLimits()), asyncio.get_running_loop()
        for number in range(3):
            await fail(logins, bytes([number]), "here", LoginFailed("no"))
        began = loop.time()
        async with logins.turn(b"good", "here"):
            pass
        assert loop.time() - began < 0.2
        for host, least, most in (("here", 0.35, 2.0), ("elsewhere", 0.0, 0.2)):
            began = loop.time()
            await fail(logins, host.encode(), host, LoginFailed("no"))
            assert least < loop.time() - began < most

    asyncio.run(work())


async def stay(logins: Logins, key: bytes, host: str) -> None:
    """Log in with a token that is wrong, which the broker says late."""
    async with logins.turn(key, host):
        await asyncio.sleep(4.5)
        raise LoginFailed("no")


async def slow_failures(logins: Logins, hosts: list[str]) -> list[asyncio.Task[None]]:
    """Begin logins that fail, as far as they may be under way."""
    begun = []
    for number, host in enumerate(hosts):
        try:
            logins.check(b"%d" % number, host)
        except Problem:
            continue
        begun.append(asyncio.create_task(stay(logins, b"%d" % number, host)))
        await asyncio.sleep(0)
    return begun


def test_network_with_failures_takes_few_turns_and_not_for_long():
    async def work() -> None:
        logins, loop = Logins(GatewayLimits()), asyncio.get_running_loop()
        await fail(logins, b"bad", "2001:db8::1", LoginFailed("no"))
        began = loop.time()
        hosts = [
            f"2001:db8::{number:x}" for number in range(100)
        ]  # they are one network of 64 bits
        begun = await slow_failures(logins, hosts)
        assert len(begun) == AFTER_FAILURES
        logins.check(b"good", "203.0.113.9")
        async with logins.turn(b"good", "203.0.113.9"):
            pass
        with pytest.raises(Problem) as found:
            logins.check(b"good", "2001:db8::ffff")
        assert found.value.status == 429
        ended = await asyncio.gather(*begun, return_exceptions=True)
        assert [each.status for each in ended if isinstance(each, Problem)] == [429, 429]
        assert loop.time() - began < 3.0
        logins.check(b"good", "2001:db8::ffff")

    asyncio.run(work())


def test_wrong_token_whose_answer_waits_takes_no_turn():
    async def work() -> None:
        logins = Logins(GatewayLimits(logins=1, logins_per_host=1))
        for number in range(3):
            await fail(logins, bytes([number]), "here", LoginFailed("no"))
        late = asyncio.create_task(fail(logins, b"bad", "here", LoginFailed("no")))
        await asyncio.sleep(0.05)
        for host in ("here", "elsewhere"):
            logins.check(b"good", host)
            async with logins.turn(b"good", host):
                pass
        assert not late.done()
        assert (await late).status == 401

    asyncio.run(work())


def test_logins_under_way_from_one_address_are_bounded():
    async def work() -> None:
        logins = Logins(GatewayLimits())
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
        logins = Logins(GatewayLimits())
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
