"""Look through a store without changing anything: what it holds, and what of it is damaged."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from octopis.errors import StoreDamaged, StoreFailed, StoreLocked
from octopis.store import state
from octopis.store.files import ReadOnlyFiles, RealFiles
from octopis.store.folder import FORMAT, LOCK, Format, read_format, reason, segment_name
from octopis.store.recovery import Damage, describe, look, read_segment


class Report(Struct):
    """What a store holds. Which records are still needed only its broker knows."""

    folder: str
    version: int
    owner: str
    epoch: int
    segments: int = 0
    records: int = 0
    bytes: int = 0
    damages: list[Damage] = []
    unfinished: list[Damage] = []
    """An end that was being written when the process or machine died: no damage."""
    state: dict[str, int] = {}
    """How many small values there are of each kind."""


def stores_in(folder: Path) -> list[Path]:
    """Return the store in a folder, or those of the folders in it; raise StoreFailed for none."""
    try:
        if (folder / FORMAT).exists():
            return [folder]
        found = [path.parent for path in sorted(folder.glob(f"*/{FORMAT}"))]
    except OSError as failure:
        raise StoreFailed(str(folder), reason(failure)) from failure
    if not found:
        what = "holds no store" if folder.is_dir() else "is no folder"
        raise StoreFailed(str(folder), f"it {what}: give a broker's folder, or one of such folders")
    return found


def check(folder: Path) -> Report:
    """Read all of a store. Raises StoreLocked while its broker runs, StoreFailed for no store."""
    files = ReadOnlyFiles()
    try:
        lock = files.lock(folder / LOCK)
    except BlockingIOError as failure:
        raise StoreLocked(str(folder)) from failure
    except OSError as failure:
        raise StoreFailed(str(folder), f"{LOCK}: {reason(failure)}") from failure
    try:
        known = read_format(folder, files)
        return _report(folder, files, known)
    except OSError as failure:
        raise StoreFailed(str(folder), reason(failure)) from failure
    finally:
        files.close(lock)


def _report(folder: Path, files: ReadOnlyFiles, known: Format) -> Report:
    report = Report(str(folder), known.version, known.owner, known.epoch)
    try:
        kept = _read_state(folder)
    except StoreDamaged as failure:
        report.damages.append(Damage(state.NAME, 0, 0, failure.reason))
        return report
    report.state = {kind: len(items) for kind, items in sorted(kept.items.items()) if items}
    for first, until in sorted(kept.segments.items()):
        data = read_segment(folder, files, first)
        report.segments += 1
        if data is None:
            report.damages.append(Damage(segment_name(first), 0, 0, "it is missing"))
            continue
        found = look(data, first, until, kept.synced, known.salt)
        report.bytes += len(data)
        report.records += len(found.scan.offsets) - sum(
            hole.until - hole.first for hole in found.scan.holes
        )
        report.damages += [describe(first, hole) for hole in found.lost]
        if found.torn is not None:
            report.unfinished.append(describe(first, found.torn))
    return report


def _read_state(folder: Path) -> state.State:
    """Return the small state from a copy: SQLite cannot open a database and leave it as it is."""
    with TemporaryDirectory() as copied:
        for path in folder.glob(f"{state.NAME}*"):
            shutil.copy(path, copied)
        if not (Path(copied) / state.NAME).exists():
            raise StoreDamaged(str(folder), f"{state.NAME} is missing")
        found = state.State(Path(copied), RealFiles())
        found.close()
        return found
