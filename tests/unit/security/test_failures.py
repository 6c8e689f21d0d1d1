"""Failed logins slow down the answers to their address, and to no other."""

import pytest

from octopis.security.bounds.failures import FailedLogins


def test_delay_doubles_from_a_tenth_of_a_second_to_five():
    failures = FailedLogins()
    assert failures.delay("192.0.2.1", 0) == 0
    seen = []
    for _ in range(9):
        failures.failed("192.0.2.1", 0)
        seen.append(failures.delay("192.0.2.1", 0))
    assert seen == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert failures.delay("192.0.2.2", 0) == 0
    assert failures.total == 9


def test_failures_are_forgotten_one_a_minute():
    failures = FailedLogins()
    for _ in range(100):
        failures.failed("192.0.2.1", 0)
    assert failures.delay("192.0.2.1", 59) == 5.0
    assert failures.delay("192.0.2.1", 60) == 3.2
    assert failures.delay("192.0.2.1", 150) == 1.6
    failures.failed("192.0.2.1", 150)
    assert failures.delay("192.0.2.1", 209) == 3.2
    assert failures.delay("192.0.2.1", 1000) == 0
    assert len(failures) == 0


def test_table_is_bounded_and_forgets_the_oldest():
    failures = FailedLogins(addresses_max=100)
    for number in range(1000):
        failures.failed(f"198.51.{number // 250}.{number % 250}", number / 100)
    assert len(failures) == 100
    assert failures.delay("198.51.3.249", 10) == 0.1
    assert failures.delay("198.51.0.1", 10) == 0


def test_all_addresses_of_one_ipv6_host_are_one():
    failures = FailedLogins()
    failures.failed("2001:db8::1", 0)
    failures.failed("2001:db8::2%eth0", 0)
    assert failures.delay("2001:db8::ffff:3", 0) == 0.2
    assert failures.delay("2001:db8:0:1::1", 0) == 0
    failures.failed("::ffff:192.0.2.1", 0)
    assert failures.delay("192.0.2.1", 0) == 0.1
    failures.failed("a socket", 0)
    assert failures.delay("a socket", 0) == 0.1


def test_passwords_of_one_address_have_their_turns_one_after_the_other():
    failures = FailedLogins()
    assert [failures.turn("192.0.2.1", 0, 4.5) for _ in range(3)] == [0, 0, 0]  # nothing failed
    for _ in range(4):
        failures.failed("192.0.2.1", 0)
    seen = [failures.turn("192.0.2.1", 0, 4.5) for _ in range(9)]
    assert seen[:6] == pytest.approx([0.8, 1.6, 2.4, 3.2, 4.0, 4.5])
    assert seen[6:] == [None] * 3
    assert failures.turn("192.0.2.2", 0, 4.5) == 0
    assert failures.turn("192.0.2.1", 4.0, 8.5) == pytest.approx(1.6)


def test_who_waits_until_it_must_be_answered_has_no_shorter_turn():
    failures = FailedLogins()
    for _ in range(9):
        failures.failed("192.0.2.1", 0)
    assert failures.turn("192.0.2.1", 4.4, 4.5) == pytest.approx(0.1)
    assert failures.turn("192.0.2.1", 4.4, 4.5) is None
    assert failures.turn("192.0.2.1", 4.9, 9.3) is None
    assert failures.turn("192.0.2.1", 5.0, 9.5) == 4.5
    assert failures.turn("192.0.2.1", 20.0, 19.9) is None  # too late for any answer
