from pathlib import Path

from octopis.core.routing import Algorithm
from octopis.demo.ways import draw_way
from octopis.demo.workload import Feed, SlowedLink
from octopis.report.pictures import write_figure
from octopis.scenario.folder import Scenario


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
