"""The folder that a demonstration leaves: whole, or as it was before."""

from pathlib import Path

from octopis.errors import InvalidConfiguration

REPORT = "report.html"
COMPARISON = "comparison.json"
DELIVERIES = "deliveries.parquet"
SCENARIO = "scenario"
OVERLAY = "overlay.toml"
PICTURES = ("queue", "delays", "way-snr", "way-dnr")
ENDINGS = (".png", ".svg")
CONTENTS = frozenset(
    (
        REPORT,
        COMPARISON,
        DELIVERIES,
        SCENARIO,
        OVERLAY,
        *(f"{name}{ending}" for name in PICTURES for ending in ENDINGS),
    )
)


def check_folder(target: Path) -> None:
    """Raise InvalidConfiguration where `target` holds what no demonstration has left there."""
    if target.exists() and not target.is_dir():
        raise InvalidConfiguration(f"{target} is a file: choose another folder with --out")
    try:
        held = sorted(path.name for path in target.iterdir()) if target.exists() else []
    except OSError as failure:
        raise InvalidConfiguration(f"cannot read {target}: {failure.strerror}") from failure
    others = [name for name in held if name not in CONTENTS]
    if others or (held and COMPARISON not in held):
        raise InvalidConfiguration(
            f"{target} holds {(others or held)[0]}, which is not from a demo: choose another "
            "folder with --out"
        )
