"""What everybody on the machine may write or read in the security folder, and must not.

Whoever can write there lets himself in: by a role, by a key for tokens, by an authority. So nothing
is taken from what everybody may write. What everybody may read gives secrets away, and is warned
of. What a group may do is the operator's choice: who writes the files may be another than who runs
the brokers.
"""

import stat
from collections.abc import Iterable
from pathlib import Path

from octopis.errors import InvalidConfiguration

_FEW = 5


def check_written_by_few(paths: Iterable[Path]) -> None:
    """Raise InvalidConfiguration where everybody may write one of these; some may not be there."""
    found = _open_to_all(paths, stat.S_IWOTH)
    if found:
        raise InvalidConfiguration(
            f"everybody on this machine may write {listed(found)}, and could let himself in: take "
            "that away with chmod o-w"
        )


def read_by_all(paths: Iterable[Path]) -> list[Path]:
    """Return those of these files that everybody may read; some may not be there."""
    return _open_to_all(paths, stat.S_IROTH)


def mode_of(path: Path) -> int:
    """Return who may do what with a file, 0 where it is not there."""
    try:
        return path.stat().st_mode
    except OSError:  # whoever reads it says what is wrong
        return 0


def state_of(path: Path) -> tuple[int, ...]:
    """Return what tells that a file is another one now, or that others may do more with it."""
    try:
        found = path.stat()
    except OSError:  # whoever reads it says what is wrong
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode


def listed(paths: list[Path]) -> str:
    """Return some of many paths, and how many more there are."""
    few = ", ".join(map(str, paths[:_FEW]))
    return f"{few} and {len(paths) - _FEW} more" if len(paths) > _FEW else few


def _open_to_all(paths: Iterable[Path], bit: int) -> list[Path]:
    return [path for path in dict.fromkeys(paths) if mode_of(path) & bit]
