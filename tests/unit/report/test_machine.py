"""The line about the machine has what a reader of a figure needs."""

import os
import platform
import re

import numpy as np

from octopis.report import machine
from octopis.report.machine import describe, memory_peak_mb


def test_machine_is_one_line_of_cores_memory_and_versions():
    line = describe()
    assert "\n" not in line
    assert f", {os.cpu_count()} cores, " in line
    assert re.search(r", [1-9]\d* GB, ", line)
    assert f"Python {platform.python_version()}, numpy {np.__version__}" in line


def test_processor_is_found_without_the_systems_file(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "Path", lambda _path: tmp_path / "none")
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "mips")
    assert describe().startswith("mips, ")


def test_processor_is_named_by_the_systems_file(monkeypatch, tmp_path):
    (tmp_path / "cpuinfo").write_text(
        "processor\t: 0\nmodel name\t: Fast: 3 GHz\nmodel name\t: Slow\n", encoding="utf-8"
    )
    monkeypatch.setattr(machine, "Path", lambda _path: tmp_path / "cpuinfo")
    assert describe().startswith("Fast: 3 GHz, ")


def test_memory_that_was_held_is_counted():
    before = memory_peak_mb()
    held = bytearray(os.urandom(1024)) * 1024 * 300
    after = memory_peak_mb()
    assert len(held) == 300 * 1024 * 1024
    assert 1 < before <= after
    assert after > 300
