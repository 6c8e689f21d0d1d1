"""The same scenario gives the same bytes, whatever order Python's sets and dictionaries have."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.simulations import digests

RUN_ALL = """
import sys
from pathlib import Path
from octopis.core.routing import Algorithm
from octopis.simulator.run import run
from octopis.trace import Level
from octopis.scenario.plan import ScenarioPlan
from octopis.scenario.example import write_example
from octopis.scenario.folder import read_scenario
from octopis.scenario.document import CutLink, SlowLink
from octopis.core.routing.options import RoutingOptions

root = Path(sys.argv[1])
SLOW = SlowLink("b,0", "b,1", 200.0, 2000.0, 20000.0)
CUT = CutLink("b,0", "e,0", 3000.0, 6000.0)
for algorithm in Algorithm:
    for name, faults in (("slow", (SLOW,)), ("cut", (SLOW, CUT))):
        plan = ScenarioPlan(
            routing=RoutingOptions(algorithm, 3.0),
            name=name,
            faults=faults,
            subscribers=60,
            publishers=6,
            notifications_each=20,
            high_rate_notifications=300,
            seed=11,
        )
        scenario = root / f"{algorithm.value}-{name}-scenario"
        write_example(plan, scenario)
        run(read_scenario(scenario), root / f"{algorithm.value}-{name}-trace", level=Level.FULL)
print(hash("octopis"))
"""


def start(folder: Path, hash_seed: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", RUN_ALL, str(folder)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Generate and run everything in two processes with different hash seeds."""
    folders = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    processes = [start(folder, seed) for folder, seed in zip(folders, "12", strict=True)]
    hashes = set()
    for process in processes:
        printed, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        hashes.add(printed)
    assert len(hashes) == 2, "the processes hash alike, so nothing was tried"
    return folders


def of_kind(folder: Path, kind: str) -> dict[str, dict[str, str]]:
    return {path.name: digests(path) for path in sorted(folder.glob(f"*-{kind}"))}


def test_generated_scenarios_are_equal_to_the_byte(runs: tuple[Path, Path]):
    one, other = (of_kind(folder, "scenario") for folder in runs)
    assert one == other
    assert [len(files) for files in one.values()] == [4] * 8


def test_traces_of_every_algorithm_are_equal_to_the_byte(runs: tuple[Path, Path]):
    one, other = (of_kind(folder, "trace") for folder in runs)
    assert one == other
    assert [len(files) for files in one.values()] == [8] * 8
    # Every run is another one: no file was compared with itself.
    assert len({files["deliveries.parquet"] for files in one.values()}) == 8
