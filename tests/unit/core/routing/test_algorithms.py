import pytest

from octopis.core.routing import Algorithm, Broker
from octopis.core.routing.algorithms.bid import Flooding, IdentifiedRouting
from octopis.core.routing.algorithms.dnr import DynamicRouting
from octopis.core.routing.algorithms.sbp import TwoStepBroadcast
from octopis.core.routing.algorithms.snr import StaticRouting
from support.overlays import B0, CHAIN


def test_names_are_those_of_the_command_line():
    assert [algorithm.value for algorithm in Algorithm] == ["snr", "dnr", "bid", "tnr"]
    assert Algorithm("dnr") is Algorithm.DNR


@pytest.mark.parametrize(
    ("algorithm", "spreading", "routing"),
    [
        (Algorithm.SNR, TwoStepBroadcast, StaticRouting),
        (Algorithm.DNR, TwoStepBroadcast, DynamicRouting),
        (Algorithm.BID, Flooding, IdentifiedRouting),
    ],
)
def test_algorithm_is_chosen_when_the_broker_is_made(
    algorithm: Algorithm, spreading: type, routing: type
):
    broker = Broker(B0, CHAIN, algorithm)
    assert broker.algorithm is algorithm
    assert type(broker._subscriptions) is spreading
    assert type(broker._notifications) is routing
