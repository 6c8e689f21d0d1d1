from pathlib import Path

from octopis.demo.fault.cast import Cast
from octopis.demo.fault.outcome import FaultOutcome
from octopis.demo.fault.picture import draw_fault, draw_way_around
from octopis.report.pictures import write_figure


def test_deliveries_are_drawn_around_the_kill(outcome: FaultOutcome):
    (axes,) = draw_fault(outcome).axes
    labels = [each.get_label() for each in axes.patches if each.get_label()]
    assert labels == ["subscribers elsewhere", "subscribers behind the broker"]
    assert {text.get_text().strip() for text in axes.texts} == {"B(b, 0) is killed", "runs again"}
    behind = axes.patches[-1].get_data()
    assert list(behind.values) == outcome.rates_behind
    assert behind.edges[0] == -1.0
    assert axes.get_ylim()[0] == 0


def test_way_around_the_dead_broker_is_drawn(cast: Cast, tmp_path: Path):
    write_figure(draw_way_around(cast), [tmp_path / "way.svg"])
    assert "around a fault" in (tmp_path / "way.svg").read_text(encoding="utf-8")
