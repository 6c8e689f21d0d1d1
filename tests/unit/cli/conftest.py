from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from octopis.scenario.folder import Scenario, read_scenario

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def sim(octopis: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `octopis sim`, in a folder that is empty at first."""
    monkeypatch.chdir(tmp_path)
    return partial(octopis, "sim")


@pytest.fixture
def example(sim: Run) -> Callable[..., Scenario]:
    """Make a scenario in the folder `scenario`, and return it."""

    def make(*words: str) -> Scenario:
        status, _, error = sim("example", "--out", "scenario", *words)
        assert (status, error) == (0, "")
        return read_scenario(Path("scenario"))

    return make
