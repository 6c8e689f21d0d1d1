from pathlib import Path

from octopis.core.routing import Algorithm
from octopis.demo.figures import draw_delays, draw_queue, draw_way
from octopis.demo.rounds import Round
from octopis.demo.workload import Feed, SlowedLink
from octopis.report.pictures import LOOKS, write_figure
from octopis.scenario.folder import Scenario


def test_queue_has_a_line_for_each_round(rounds: list[Round], feed: Feed, link: SlowedLink):
    (axes,) = draw_queue(rounds, link, feed).axes
    assert [line.get_label() for line in axes.lines] == ["BID", "SNR", "DNR", "TNR"]
    assert list(axes.lines[0].get_ydata()) == [0, 90, 0]
    assert axes.lines[0].get_color() == LOOKS[rounds[0].algorithm].colour
    assert axes.get_ylim()[1] > 90
    assert "B(b, 2) → B(b, 0)" in axes.get_title(loc="left")


def test_delays_rise_to_all_deliveries(rounds: list[Round]):
    delays = {each.algorithm: each.played.delays_ns for each in rounds}
    (axes,) = draw_delays(delays).axes
    assert axes.get_xscale() == "log"
    assert [list(line.get_ydata()) for line in axes.lines] == [[0.5, 1.0]] * 4
    assert list(axes.lines[0].get_xdata()) == [1.5, 900.0]


def test_delay_of_nothing_and_no_delivery_at_all_can_be_drawn(rounds: list[Round], tmp_path: Path):
    figure = draw_delays({rounds[0].algorithm: [0, -5], rounds[1].algorithm: []})
    write_figure(figure, [tmp_path / "delays.svg"])
    assert (tmp_path / "delays.svg").stat().st_size > 1000


def test_dynamic_routing_goes_around_in_case_i(
    scenario: Scenario, feed: Feed, link: SlowedLink, tmp_path: Path
):
    titles = {}
    for algorithm in (Algorithm.SNR, Algorithm.DNR):
        figure = draw_way(scenario.topology, feed, link, algorithm)
        write_figure(figure, [tmp_path / "way.svg"])
        titles[algorithm] = (tmp_path / "way.svg").read_text(encoding="utf-8")
    assert "case I" in titles[Algorithm.DNR]
    assert "case I" not in titles[Algorithm.SNR]
