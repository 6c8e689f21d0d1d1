"""Light commands work without the libraries of extras; others say what to install."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from octopis.cli.commands import COMMANDS, load_command

GATEWAY = ("httptools", "prometheus_client", "starlette", "uvicorn", "websockets")
SECURITY = ("cryptography", "jwt", "scramp")
TRACING = ("opentelemetry",)
HEAVY = ("pyspark", "py4j", "pandas", "pyarrow", "matplotlib", *GATEWAY, *SECURITY, *TRACING)

PROGRAM = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout

refused, heavy, lines = json.loads(sys.argv[1])

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in refused:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refused())
from octopis.cli.main import main

found = []
for line in lines:
    sys.argv = ["octopis", *line]
    printed, told = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(printed), redirect_stderr(told):
            main()
    except SystemExit as ended:
        imported = [name for name in heavy if name in sys.modules]
        found.append([ended.code or 0, printed.getvalue(), told.getvalue(), imported])
print(json.dumps(found))
"""
"""Calls the whole command line by line, in a Python that cannot import what is refused."""


class Done(NamedTuple):
    status: int
    printed: str
    told: str
    imported: list[str]


def run(folder: Path, lines: list[str], refused: tuple[str, ...] = HEAVY) -> dict[str, Done]:
    """Run commands as if only some of the libraries were installed."""
    asked = json.dumps([refused, HEAVY, [line.split() for line in lines]])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, asked],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stderr == ""
    return {line: Done(*found) for line, found in zip(lines, json.loads(done.stdout), strict=True)}


LIGHT = [
    "--help",
    "filter check a=1",
    "topology show figure-3",
    "route explain figure-3 --publish a,0",
    "overlay config",
    "overlay up --help",
    "overlay status --help",
    "broker run --help",
    "pub --help",
    "sub --help",
    "bench routing --help",
    "security init --help",
]


def test_light_commands_work_without_the_extras(tmp_path: Path):
    for line, done in run(tmp_path, LIGHT).items():
        assert (done.status, done.told) == (0, ""), line
        assert done.printed, line


def test_light_commands_import_nothing_of_the_extras(tmp_path: Path):
    for line, done in run(tmp_path, LIGHT, refused=()).items():
        assert (done.status, done.told, done.imported) == (0, "", []), line


ON_SPARK = "(Spark|Arrow)"
"""Such commands need both; what they miss first is a matter of their imports."""

NEEDS = {
    "sweep runs.toml": ("sweep", ON_SPARK, "pipeline"),
    "trace check t": ("trace check", ON_SPARK, "pipeline"),
    "workload truth s": ("workload truth", ON_SPARK, "pipeline"),
    "bench pipeline": ("bench pipeline", ON_SPARK, "pipeline"),
    "sim example": ("sim example", "Arrow", "pipeline"),
    "overlay play s": ("overlay play", "Arrow", "pipeline"),
    "overlay up --trace t": ("overlay up", "Arrow", "pipeline"),
    "bench simulator": ("bench simulator", "Arrow", "pipeline"),
    "gateway run": ("gateway run", "(Starlette|Uvicorn|httptools)", "gateway"),
    "overlay up --gateway": ("overlay up", "httptools", "gateway"),
    "overlay up --tracing-endpoint http://127.0.0.1:4318": (
        "overlay up",
        "OpenTelemetry",
        "tracing",
    ),
    "bench gateway": ("bench gateway", "httptools", "gateway"),
    "topology draw figure-3": ("topology draw", "Matplotlib", "report"),
    "security init s --topology figure-7": ("security init", "cryptography", "security"),
    "route cases --svg c.svg": ("route cases", "Matplotlib", "report"),
    "demo": ("demo", ON_SPARK, "all"),
    "evaluate": ("evaluate", ON_SPARK, "all"),
}


def to_type(extra: str) -> str:
    return f"pip install 'octopis[{extra}]' (in a checkout: pip install -e '.[{extra}]')"


def test_command_that_lacks_an_extra_names_it_and_leaves_nothing(tmp_path: Path):
    for line, done in run(tmp_path, list(NEEDS)).items():
        command, library, extra = NEEDS[line]
        said = rf"octopis: {command} needs {library}: {re.escape(to_type(extra))}\n"
        assert done.status == 2
        assert re.fullmatch(said, done.told), done.told
    assert list(tmp_path.iterdir()) == []


def test_commands_that_draw_in_the_end_ask_for_matplotlib_before_they_begin(tmp_path: Path):
    for line, done in run(tmp_path, ["demo", "evaluate"], refused=("matplotlib",)).items():
        said = f"octopis: {line} needs Matplotlib: {to_type('all')}\n"
        assert (done.status, done.printed, done.told) == (2, "", said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_list_of_commands_says_what_each_command_says(name: str):
    whole = " ".join(load_command(name).help.partition("\n\n")[0].split())
    assert COMMANDS[name].summary == whole
