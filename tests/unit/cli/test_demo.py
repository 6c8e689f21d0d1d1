import json
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)


def test_demo_shows_the_overlays_of_the_paper(octopis, tmp_path: Path):
    status, printed, _ = octopis("demo")
    assert status == 0
    drawn = sorted(path.name for path in (tmp_path / "out" / "demo").glob("*.png"))
    assert drawn == ["figure-3.png", "figure-7-dnr.png", "figure-7-snr.png", "paper.png"]
    assert "reaches all 75 brokers with 74 messages\ninstead of 366 by flooding" in printed
    assert "Whichever 4 brokers die, the others stay connected" in printed


def test_demo_routes_around_overloaded_links(octopis):
    _, printed, _ = octopis("demo")
    assert "SNR: 6 IMs, 4 of 4 subscribers reached" in printed
    assert "DNR: 4 IMs, case II x1, 4 of 4 subscribers reached" in printed
    static, dynamic = printed.split("DNR: 4 IMs")
    assert static.count("(overloaded)") == 2
    assert "(overloaded)" not in dynamic


def test_demo_as_json_into_another_folder(octopis, tmp_path: Path):
    _, printed, _ = octopis("demo", "--out", "elsewhere", "--json")
    shown = json.loads(printed)
    assert [each["brokers"] for each in shown["overlays"].values()] == [18, 75]
    assert [each["ims"] for each in shown["routes"]] == [6, 4]
    assert all((tmp_path / picture).exists() for picture in shown["pictures"])
