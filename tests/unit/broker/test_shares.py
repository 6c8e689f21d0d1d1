"""What the clients of a user take together is counted as they come, change and go."""

import pytest
from msgspec.structs import replace

from octopis.broker.clients.shares import ClientShares, SharesOf
from octopis.broker.settings import Limits
from octopis.core.filters import parse_filter
from octopis.errors import InvalidSubscription

LIMITS = replace(Limits(), subscriptions_per_client=3, terms_per_client=10)
ONE, FOUR = parse_filter("a = 1"), parse_filter("a = 1 AND b = 1 AND c = 1 AND d = 1")


@pytest.fixture
def users() -> SharesOf:
    return SharesOf(LIMITS, "a user")


def client(users: SharesOf | None, name: str, owner: str = "alice") -> ClientShares:
    return ClientShares(LIMITS, name, owner, users)


def take(shares: ClientShares, *names: str) -> None:
    for each in names:
        shares.note(each, shares.share_of(each, ONE))


def test_a_subscription_that_goes_from_client_to_client_counts_once_when_the_first_is_told(users):
    first, second = client(users, "first"), client(users, "second")
    take(first, "s")
    for giver, taker in [(first, second), (second, first)] * 5:
        take(taker, "s")  # it is there before the other is told
        giver.forget("s")
    take(second, "t", "u")
    with pytest.raises(InvalidSubscription, match="a user has at most 3 subscriptions"):
        take(first, "v")


def test_what_is_noted_again_counts_as_it_is_now(users):
    first, second = client(users, "first"), client(users, "second")
    for _ in range(5):
        first.note("s", first.share_of("s", FOUR))
    second.note("t", second.share_of("t", FOUR))
    with pytest.raises(InvalidSubscription, match="a user has at most 10 terms"):
        second.share_of("u", FOUR)
    first.note("s", first.share_of("s", ONE))
    second.share_of("u", FOUR)


def test_a_client_that_is_gone_takes_nothing_and_may_go_twice(users):
    first, other = client(users, "first"), client(users, "first", "bob")
    take(first, "a", "b", "c")
    take(other, "a", "b", "c")
    for _ in range(2):
        first.end()
    take(client(users, "second"), "a", "b", "c")
    with pytest.raises(InvalidSubscription, match="at most 3"):
        take(client(users, "third", "bob"), "d")
    other.end()
    assert len(users) == 1


def test_where_nobody_logs_in_a_client_counts_for_itself():
    for name in ("one", "two"):
        take(client(None, name), "a", "b", "c")
