"""Overlays of several processes, run from within a test."""

from pathlib import Path

from octopis.overlay.supervisor import OverlayOrder
from support.overlay_command import SMALL


def small_order(folder: Path, **options: object) -> OverlayOrder:
    """Return an order for four brokers in two processes, at free ports."""
    given = {"configuration": SMALL, "state": str(folder), "processes": 2, "first_port": 0}
    return OverlayOrder(**{**given, **options})  # type: ignore[arg-type]
