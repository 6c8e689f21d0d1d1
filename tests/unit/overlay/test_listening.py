import socket

import pytest

from octopis.client.address import Address
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.overlay.deployment import address_of, open_listeners, planned
from support.live import line, overlay

A, B, C = line(3).brokers


def test_ports_follow_each_other_from_7400():
    assert planned(overlay(line(3)), None) == {
        A: Address(port=7400),
        B: Address(port=7401),
        C: Address(port=7402),
    }


def test_configured_ports_are_kept_and_not_given_twice():
    placed = overlay(line(3), addresses={B: Address(port=7400)})
    assert [each.port for each in planned(placed, None).values()] == [7401, 7400, 7402]


def test_first_port_overrides_the_configured_ones():
    placed = overlay(line(3), addresses={B: Address(port=7400)})
    assert [each.port for each in planned(placed, 8000).values()] == [8000, 8001, 8002]
    assert [each.port for each in planned(placed, 0).values()] == [0, 0, 0]


def test_too_few_ports_are_an_error():
    with pytest.raises(InvalidConfiguration, match="not enough ports from 65534 on"):
        planned(overlay(line(3)), 65_534)


def test_brokers_listen_at_known_places_before_anything_runs():
    listeners = open_listeners(planned(overlay(line(3)), 0))
    try:
        assert len({address_of(listener).port for listener in listeners.values()}) == 3
        for listener in listeners.values():
            socket.create_connection(address_of(listener)).close()
    finally:
        for listener in listeners.values():
            listener.close()


def test_port_that_is_taken_leaves_no_socket_open():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        place = Address(port=taken.getsockname()[1])
        free = open_listeners({A: Address()})[A]
        first = address_of(free)
        free.close()
        with pytest.raises(OperationFailed, match=r"B\(b, 0\) cannot listen.*nothing was started"):
            open_listeners({A: first, B: place})
        open_listeners({A: first})[A].close()
