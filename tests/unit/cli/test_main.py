import signal
import subprocess
import sys
from pathlib import Path

import pytest

from octopis import __version__
from octopis.cli import demo
from octopis.cli.commands import COMMANDS, load_command

OCTOPIS = Path(sys.executable).with_name("octopis")


def test_version_is_printed(octopis):
    assert octopis("--version") == (0, f"octopis {__version__}\n", "")


def test_help_names_every_command(octopis):
    status, printed, _ = octopis("--help")
    assert status == 0
    told = printed.replace("octopis pub, sub", "octopis pub, octopis sub")
    for name in COMMANDS:
        assert f"octopis {name}" in told


def all_commands() -> list[list[str]]:
    found = [[]]
    for name in COMMANDS:
        groups = [([name], load_command(name))]
        while groups:
            words, command = groups.pop()
            found.append(words)
            groups += [([*words, n], each) for n, each in getattr(command, "commands", {}).items()]
    return found


def test_help_of_every_command_is_whole_at_80_columns(octopis, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for words in all_commands():
        status, printed, _ = octopis(*words, "--help")
        assert status == 0
        cut = [line for line in printed.splitlines() if "…" in line or len(line) > 80]
        assert not cut, f"octopis {' '.join(words)} --help"


def test_unknown_command_is_one_sentence_with_a_suggestion(octopis):
    status, printed, error = octopis("topologi")
    assert (status, printed) == (2, "")
    assert error == "octopis: No such command 'topologi'. Did you mean 'topology'?\n"


def test_unknown_option_is_one_sentence(octopis):
    status, _, error = octopis("topology", "list", "--jsn")
    assert status == 2
    assert error.startswith("octopis: No such option: --jsn")
    assert error.count("\n") == 1


def test_internal_fault_is_one_sentence_and_a_traceback_only_on_request(octopis, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("seven")

    monkeypatch.setattr(demo, "run_demo", broken)
    status, _, error = octopis("demo")
    assert status == 1
    assert error == "octopis: internal error (ZeroDivisionError: seven); run again with --debug\n"
    status, _, error = octopis("demo", "--debug")
    assert status == 1
    assert "Traceback" in error


def test_interrupt_is_one_word_and_no_traceback(octopis, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run_demo", interrupted)
    assert octopis("demo") == (130, "", "octopis: stopped\n")


@pytest.mark.parametrize("lines", [0, 1])
def test_reader_that_goes_away_is_no_fault(lines: int):
    shell = f"{OCTOPIS} topology show paper | head -n {lines}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)  # noqa: S607
    assert done.stderr == ""


@pytest.mark.parametrize("seen", ["typer", "octopis.errors", "rich"])
def test_ctrl_c_while_the_command_is_being_imported_is_one_line(seen: str):
    # Python says on standard error which module it has just imported.
    command = [sys.executable, "-X", "importtime", "-m", "octopis", "topology", "show", "paper"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if f" {seen}" in line:
                process.send_signal(signal.SIGINT)
                break
        said = [line for line in process.stderr if not line.startswith("import time:")]
    assert (process.returncode, said) == (130, ["octopis: stopped\n"])


def test_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "octopis", "--version"], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("octopis ")
    assert done.returncode == 0
