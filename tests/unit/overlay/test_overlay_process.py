import subprocess
import sys
from pathlib import Path

import msgspec

from octopis.overlay.deployment import open_listeners, planned
from octopis.overlay.process import ProcessOrder
from octopis.overlay.settings import format_overlay, parse_overlay
from octopis.trace import Level
from support.overlay_command import SMALL


def started(path: Path, order: ProcessOrder, listeners: list[int]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-P", "-m", "octopis.overlay.process"]
    with (path / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, msgspec.json.encode(order).decode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=listeners,
        )


def test_process_runs_its_brokers_and_stops_when_its_orders_end(tmp_path: Path):
    overlay = parse_overlay(SMALL, "small")
    listeners = open_listeners(planned(overlay.configuration, 0))
    document = tmp_path / "overlay.toml"
    document.write_text(format_overlay(overlay), encoding="utf-8")
    numbers = {broker.short: listener.fileno() for broker, listener in listeners.items()}
    order = ProcessOrder(str(document), numbers, str(tmp_path / "trace"), Level.SUMMARY)
    with started(tmp_path, order, list(numbers.values())) as process:
        for listener in listeners.values():
            listener.close()
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"drain\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"queued 0\n"
        process.stdin.close()
        assert process.wait(timeout=20) == 0
    assert (tmp_path / "log").read_text(encoding="utf-8").count("has stopped") == 4
    assert len(list((tmp_path / "trace").glob("*/run.json"))) == 4


def test_document_that_makes_no_sense_ends_it_with_one_clear_line(tmp_path: Path):
    (tmp_path / "overlay.toml").write_text("[rooting]\n", encoding="utf-8")
    order = ProcessOrder(str(tmp_path / "overlay.toml"), {})
    with started(tmp_path, order, []) as process:
        assert process.wait(timeout=20) == 2
    (line,) = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert "did you mean 'routing'" in line
