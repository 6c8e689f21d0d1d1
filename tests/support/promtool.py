"""Prometheus' own tool, which reads rules, scrapes and expressions as Prometheus does."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PLACE = "OCTOPIS_PROMTOOL"
"""Says where it is, if that is not on the path."""

REQUIRED = "OCTOPIS_PROMTOOL_REQUIRED"
"""With it, a missing promtool is a failure; CI sets it."""

HOW = (
    "there is no promtool here, so what Prometheus is told is not checked by its own reader: it "
    f"comes with Prometheus (Debian, Ubuntu: the package prometheus); {PLACE} says where it is"
)


def promtool_place() -> str:
    """Return where promtool is, or skip the test, or fail where it is required."""
    given = os.environ.get(PLACE)
    found = given if given and Path(given).exists() else shutil.which("promtool")
    if found is None:
        if os.environ.get(REQUIRED):
            pytest.fail(HOW)
        pytest.skip(HOW)
    return found


def promtool(*words: str | Path, said: str = "") -> "subprocess.CompletedProcess[str]":
    """Run it to its end; what it reads of its standard input is `said`."""
    return subprocess.run(
        [promtool_place(), *map(str, words)],
        input=said,
        capture_output=True,
        text=True,
        check=False,
    )
