from octopis.demo.fault.outcome import FaultOutcome
from octopis.demo.fault.picture import draw_fault


def test_deliveries_are_drawn_around_the_kill(outcome: FaultOutcome):
    (axes,) = draw_fault(outcome).axes
    labels = [each.get_label() for each in axes.patches if each.get_label()]
    assert labels == ["subscribers elsewhere", "subscribers behind the broker"]
    assert {text.get_text().strip() for text in axes.texts} == {"B(b, 0) is killed", "runs again"}
    behind = axes.patches[-1].get_data()
    assert list(behind.values) == outcome.rates_behind
    assert behind.edges[0] == -1.0
    assert axes.get_ylim()[0] == 0
