import pytest

from octopis.core.routing import Algorithm
from octopis.errors import InvalidConfiguration
from octopis.overlay.settings import configured, variables

TEXT = '[topology]\ncatalogue = "figure-3"\n[routing]\nalgorithm = "bid"\nwindow_ms = 20\n'


def test_environment_overrides_the_file_and_flags_override_both():
    environment = {"OCTOPIS_ROUTING_ALGORITHM": "snr", "OCTOPIS_ROUTING_WINDOW_MS": "30"}
    flags = {("routing", "window_ms"): 40, ("routing", "algorithm"): None}
    found = configured(TEXT, "overlay.toml", environment, flags).configuration
    assert (found.routing.algorithm, found.routing.window_ms) == (Algorithm.SNR, 40)


def test_without_either_the_file_holds():
    environment = {"OCTOPIS_STATE": "somewhere", "HOME": "/"}
    found = configured(TEXT, "overlay.toml", environment).configuration
    assert (found.routing.algorithm, found.routing.window_ms) == (Algorithm.BID, 20)


def test_tables_that_the_file_does_not_have_can_be_set():
    environment = {
        "OCTOPIS_LIMITS_DRAIN_S": "0.5",
        "OCTOPIS_CLIENT_QUEUES_POLICY": "drop_oldest",
        "OCTOPIS_LINKS_LATENCY_MS": "1",
        "OCTOPIS_INSECURE": "true",
    }
    found = configured(TEXT, "overlay.toml", environment).configuration
    assert found.limits.drain_s == 0.5
    assert found.client_queues.policy.value == "drop_oldest"
    assert found.insecure
    assert {shape.latency_ms for shape in found.shapes.values()} == {1.0}


def test_unknown_variable_is_an_error_with_a_suggestion():
    with pytest.raises(InvalidConfiguration, match="did you mean 'OCTOPIS_ROUTING_ALGORITHM'"):
        configured(TEXT, "overlay.toml", {"OCTOPIS_ROUTING_ALGORITM": "snr"})


def test_wrong_value_names_the_environment():
    with pytest.raises(InvalidConfiguration, match=r"the environment: routing\.algorithm"):
        configured(TEXT, "overlay.toml", {"OCTOPIS_ROUTING_ALGORITHM": "fast"})


def test_every_variable_stands_for_one_key():
    known = variables()
    assert len(set(known.values())) == len(known)
    assert known["OCTOPIS_QUEUES_CAPACITY"] == ("queues", "capacity")
