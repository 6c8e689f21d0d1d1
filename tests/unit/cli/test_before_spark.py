"""What can be known before Spark starts is said before: a typo costs no seconds."""

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from octopis.cli.commands import COMMANDS, load_command
from octopis.cli.options import load_profile
from octopis.cli.topology import load
from octopis.errors import InvalidConfiguration, SparkDied
from octopis.pipeline.runs.run_table import Loaders, parse_runs
from octopis.pipeline.runs.sweep import scenario_folder
from support.quotes import HEADER, write_lines
from support.sim_command import refused
from support.traces import make_scenario, make_trace

ON_SPARK = ["workload ingest", "workload build", "workload truth", "sweep", "trace metrics"]
ON_SPARK += ["trace check", "evaluate", "demo", "bench pipeline"]


@pytest.fixture
def told(octopis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command in an empty folder, where it must not get as far as Spark."""
    monkeypatch.chdir(tmp_path)

    def no_spark(*_settings: object, **_more: object) -> None:
        pytest.fail("must not come here")

    for place in ("octopis.cli.spark.open_spark", "octopis.cli.evaluate.open_spark"):
        monkeypatch.setattr(place, no_spark)
    return lambda line: refused(octopis, *line.split())


def test_a_header_without_prices(told):
    write_lines(Path("a.csv"), "Date,Symbol,Volume", "2023-01-02,A,1")
    for line in ("workload ingest a.csv", "evaluate --quotes a.csv"):
        assert "no column for open, high, low, close" in told(line)
    assert not Path("out").exists()


def test_a_file_with_another_ending(told):
    Path("a.xls").touch()
    assert "a.xls must end in one of .csv" in told("workload ingest a.xls")


def test_an_output_folder_that_is_not_empty(told):
    write_lines(Path("a.csv"), HEADER)
    make_scenario(Path("s"))
    make_trace(Path("s"), Path("t"))
    for line in (
        "workload ingest a.csv --out s",
        "workload build --out s",
        "workload truth s --out s",
        "trace metrics t --out s",
    ):
        assert told(line) == "s is not empty: choose another folder, or remove it"


def test_an_output_folder_that_cannot_be_written(told):
    write_lines(Path("runs.toml"), "[[runs]]", 'algorithm = "snr"')
    for line in ("workload ingest --synthetic", "workload build", "sweep runs.toml"):
        assert told(f"{line} --out runs.toml/out").endswith("Not a directory")


def test_quotes_that_nobody_ingested(told):
    assert "gone holds no ingested data" in told("workload build --quotes gone")


def test_a_sweeps_folder_with_another_scenario_of_the_name(told):
    table = write_lines(Path("runs.toml"), "[[runs]]", 'algorithm = "snr"')
    text = table.read_text(encoding="utf-8")
    (run,) = parse_runs(text, table, Loaders(load, load_profile)).runs
    folder = scenario_folder(run, Path("out"))
    folder.mkdir(parents=True)
    write_lines(folder / "scenario.toml", "name = 1")
    assert "holds another scenario of that name" in told("sweep runs.toml --out out")


def test_a_trace_that_is_none_or_not_whole(told):
    make_trace(make_scenario(Path("s")), Path("t"))
    assert "s holds no finished trace" in told("trace metrics t s")
    assert "s holds no finished trace" in told("trace check s --scenario s")
    Path("t/deliveries.parquet").write_bytes(b"PAR1")
    for line in ("trace metrics t", "trace check t --scenario s"):
        assert "is not a whole Parquet file" in told(line)


@pytest.mark.parametrize("name", ON_SPARK)
def test_settings_of_spark_that_make_no_sense(told, name: str):
    words = {"sweep": "runs.toml", "trace metrics": "t", "trace check": "t --scenario s"}
    make_trace(make_scenario(Path("s")), Path("t"))
    write_lines(Path("runs.toml"), "[[runs]]", 'algorithm = "snr"')
    words |= {"workload truth": "s", "workload ingest": "--synthetic"}
    said = told(f"{name} {words.get(name, '')} --conf memory=1g")
    assert said.startswith("--conf takes KEY=VALUE with one of Spark's keys")
    assert not Path("out").exists()


def test_address_of_spark_that_makes_no_sense(octopis, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("octopis.pipeline.spark.session.check_java", pytest.fail)
    for line in ("workload ingest --synthetic", "workload build", "evaluate"):
        said = refused(octopis, *line.split(), "--master", "local4")
        assert said == "there is no Spark at 'local4'; did you mean 'local[4]'?"
    assert list(tmp_path.iterdir()) == []


def commands() -> list[tuple[str, Any]]:
    """Return every command that does something, with its words."""
    found, waiting = [], [(name, load_command(name)) for name in COMMANDS]
    while waiting:
        words, command = waiting.pop()
        below = getattr(command, "commands", {})
        waiting += [(f"{words} {name}", each) for name, each in below.items()]
        if not below:
            found.append((words, command))
    return found


def test_every_option_that_is_a_path_refuses_addresses():
    checked = set()
    for words, command in commands():
        for option in signature(command.callback).parameters.values():
            if "Path" in str(option.annotation):
                address: Any = Path("s3://bucket/x")
                value = [address] if "list" in str(option.annotation) else address
                with pytest.raises(InvalidConfiguration, match=r"^s3://bucket/x is an address"):
                    command.callback(**{option.name: value})
                checked.add(words)
    assert {*ON_SPARK[:-1], "sim run", "overlay up", "topology draw", "trace plot"} <= checked


def test_table_of_runs_takes_no_address_for_a_scenario(told):
    write_lines(Path("runs.toml"), "[[runs]]", 'scenario = "s3://b/s"', 'algorithm = "snr"')
    assert told("sweep runs.toml").startswith("s3://b/s is an address")


def test_command_that_goes_on_says_so_when_spark_dies(octopis, tmp_path: Path, monkeypatch):
    def dies(*_settings: object, **_more: object) -> None:
        raise SparkDied("it was killed", "4g")

    for place in ("octopis.cli.spark.open_spark", "octopis.cli.evaluate.open_spark"):
        monkeypatch.setattr(place, dies)
    monkeypatch.chdir(tmp_path)
    write_lines(Path("runs.toml"), "[[runs]]", 'algorithm = "snr"')
    died = (
        "octopis: Spark has died: it was killed; it had 4g, and --conf spark.driver.memory=SIZE "
        "gives it another size; "
    )
    for line in ("sweep runs.toml", "evaluate"):
        status, _, error = octopis(*line.split())
        goes_on = f"{died}started again, the command goes on where it stopped"
        assert (status, error.splitlines()[-1]) == (1, goes_on)
    status, _, error = octopis("workload", "ingest", "--synthetic")
    assert (status, error) == (1, f"{died}start the command again\n")
