import sys
from collections.abc import Callable

import pytest

from octopis.cli.main import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def octopis(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the whole command in this process; return exit status, standard output and error."""

    def run_main(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["octopis", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return run_main
