import os

import pytest

from octopis.core.topology import from_catalogue
from octopis.overlay.supervisor import cores, share_brokers
from support.live import line


@pytest.mark.parametrize("name", ["figure-3", "paper"])
@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_every_broker_is_in_one_process_and_processes_are_alike(name: str, processes: int):
    scot = from_catalogue(name).scot
    shares = share_brokers(scot, processes)
    assert sorted(broker for share in shares for broker in share) == sorted(scot.brokers)
    assert len(shares) == processes
    sizes = [len(share) for share in shares]
    assert max(sizes) == -(-len(scot.brokers) // processes)


def test_neighbours_are_apart_where_that_can_be():
    first, second = share_brokers(line(10), 2)
    assert [broker.region for broker in first] == list("acegi")
    assert [broker.region for broker in second] == list("bdfhj")


def test_there_are_never_more_processes_than_brokers():
    assert [len(share) for share in share_brokers(line(2), 8)] == [1, 1]


def test_only_cores_that_this_process_may_use_are_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5, 7}, raising=False)
    assert cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert cores() == 4
