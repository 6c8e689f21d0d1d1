"""How many connections of an address may come to nothing: some in a row, then some a second."""

from octopis.security.bounds.strangers import Strangers


def test_burst_is_used_up_and_fills_again():
    strangers = Strangers(2.0, 3, addresses_max=10)
    for _ in range(3):
        assert strangers.may_come("10.0.0.1", 100.0)
        strangers.came_to_nothing("10.0.0.1", 100.0)
    assert not strangers.may_come("10.0.0.1", 100.4)
    assert strangers.may_come("10.0.0.1", 100.5)
    assert strangers.may_come("10.0.0.2", 100.0)
    strangers.came_to_nothing("10.0.0.1", 200.0)  # it never fills beyond the burst
    strangers.came_to_nothing("10.0.0.1", 200.0)
    strangers.came_to_nothing("10.0.0.1", 200.0)
    assert not strangers.may_come("10.0.0.1", 200.0)


def test_addresses_of_one_network_share_and_are_bounded():
    strangers = Strangers(1.0, 1, addresses_max=10)
    strangers.came_to_nothing("2001:db8::1", 0.0)
    assert not strangers.may_come("2001:db8::2", 0.0)
    assert strangers.may_come("2001:db8:0:1::1", 0.0)
    for number in range(30):
        strangers.came_to_nothing(f"10.0.0.{number}", 1.0)
    assert len(strangers) == 10
    assert not strangers.may_come("10.0.0.29", 1.0)
