"""Shares: what each may hold, and what all may hold together."""

from octopis.security.bounds.shares import Shares


def test_each_has_a_share_and_all_have_one_together():
    shares: Shares[str] = Shares(2, 3)
    for key in ("a", "a", "b"):
        assert not shares.is_full(key)
        shares.take(key)
    assert (shares.of("a"), shares.total) == (2, 3)
    assert shares.is_full("c")
    shares.give_back("b")
    assert shares.is_full("a")
    assert not shares.is_full("c")


def test_what_is_held_meanwhile_is_given_back_and_nobody_is_remembered():
    shares: Shares[str] = Shares(1, 1)
    with shares.held("a"):
        assert shares.is_full("a")
    assert (len(shares), shares.total) == (0, 0)
