"""Where running overlays of this user are: one folder each, locked as long as the overlay runs.

The lock goes with its process, however that ends; so a folder that nobody has locked is stale.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from octopis.core.model.suggestion import did_you_mean
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.files import write_json

STATE_FILE = "state.json"
CONFIGURATION_FILE = "overlay.toml"
_LOCK_FILE = "lock"


class OverlayState(msgspec.Struct, frozen=True, kw_only=True):
    """A running overlay, as others find it."""

    name: str
    """What `overlay status` and `overlay down` call it: topology and first port."""

    topology: str
    algorithm: str
    pid: int
    started_ns: int
    ready: bool
    folder: str
    addresses: dict[str, str]
    processes: list[list[str]]
    """The brokers of each process."""

    stop_s: float
    """How long stopping it takes at most."""

    credentials: str = ""
    """Under security, the file of credentials that commands here take, where one is known."""

    gateway: str = ""
    """Where its gateway is, as http://127.0.0.1:7480; empty without one."""

    metrics: list[str] = []
    """Where each process shows its metrics, in their order; empty: nowhere."""

    @property
    def url(self) -> str:
        """Where to connect: the first broker."""
        return f"octopis://{next(iter(self.addresses.values()))}"


def state_base(given: Path | None, environment: Mapping[str, str]) -> Path:
    """Return the folder of all overlays: as given, or OCTOPIS_STATE, or the user's own place."""
    if given is not None:
        return given
    if environment.get("OCTOPIS_STATE"):
        return Path(environment["OCTOPIS_STATE"])
    if environment.get("XDG_RUNTIME_DIR"):
        return Path(environment["XDG_RUNTIME_DIR"]) / "octopis"
    return Path(tempfile.gettempdir()) / f"octopis-{os.getuid()}"


class StateFolder:
    """The folder of an overlay that this process runs. Use it as a context manager.

    It goes when the overlay has ended in order; after a failure it stays, with its logs.
    """

    def __init__(self, base: Path, name: str) -> None:
        self.name = re.sub(r"[^\w.-]", "_", name)
        self.path = base / self.name
        self._base = base
        self._lock = -1

    def __enter__(self) -> "StateFolder":
        try:
            self._base.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_own(self._base)
            self._lock = self._claim()
            for stale in self.path.iterdir():
                if stale.name != _LOCK_FILE:
                    stale.unlink()
        except OSError as failure:
            raise OperationFailed(
                f"cannot keep the overlay's state in {self.path}: {failure.strerror}; choose "
                "another place with --state or OCTOPIS_STATE"
            ) from failure
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def write(self, state: OverlayState) -> None:
        """Let others find the overlay; they see all of it or nothing."""
        write_json(self.path / STATE_FILE, state)

    def _claim(self) -> int:
        while True:
            self.path.mkdir(mode=0o700, exist_ok=True)
            path = self.path / _LOCK_FILE
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                raise OperationFailed(
                    f"the overlay {self.name} runs already: octopis overlay down {self.name} "
                    "stops it"
                ) from None
            try:
                if path.stat().st_ino == os.fstat(lock).st_ino:
                    return lock
            except FileNotFoundError:
                pass  # another's folder went just now: make it anew
            os.close(lock)


def check_own(base: Path) -> None:
    """Raise OperationFailed where others could say in our name which overlays run.

    A state tells commands which credentials to take, which authority to trust and what to stop.
    """
    own = os.getuid()
    found = base.stat()
    if found.st_uid != own or base.lstat().st_uid not in {own, 0}:
        fault = "is another user's"
    elif found.st_mode & stat.S_IWOTH:
        fault = "can be written by every user"
    else:
        return
    raise OperationFailed(f"{base} {fault}: choose another with --state or OCTOPIS_STATE")


def overlays(base: Path) -> tuple[list[OverlayState], list[OverlayState]]:
    """Return the overlays that run, and those that ended without saying so; the latest last."""
    found: tuple[list[OverlayState], list[OverlayState]] = ([], [])
    if base.exists():
        check_own(base)
    for path in sorted(base.glob(f"*/{STATE_FILE}")):
        try:
            state = msgspec.json.decode(path.read_bytes(), type=OverlayState)
        except FileNotFoundError:  # it ended while we looked
            continue
        except msgspec.DecodeError as failure:
            raise InvalidConfiguration(
                f"{path} is not the state of an overlay: {failure}; remove its folder"
            ) from failure
        found[not is_running(state)].append(state)
    for each in found:
        each.sort(key=lambda state: state.started_ns)
    return found


def is_running(state: OverlayState) -> bool:
    """Tell whether somebody holds the lock of an overlay's folder."""
    try:
        lock = os.open(Path(state.folder) / _LOCK_FILE, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(lock)


def find(base: Path, name: str | None, *, only: bool = False) -> OverlayState:
    """Return the overlay of that name, or the latest; with `only`, there must not be several.

    Raises OperationFailed where there is none, InvalidConfiguration where the name is wrong.
    """
    running, stale = overlays(base)
    names = [state.name for state in running]
    if name is not None and name in names:
        return running[names.index(name)]
    if name is None and running:
        if only and len(running) > 1:
            raise InvalidConfiguration(
                f"several overlays run: say which of {', '.join(names)}, or --all"
            )
        return running[-1]
    for state in reversed(stale):
        if name in {None, state.name}:
            age_s = max(0.0, time.time() - state.started_ns / 1e9)
            raise OperationFailed(
                f"no overlay runs; {state.name}, started {age_s:,.0f} s ago, has ended without "
                f"an orderly stop: its logs are in {state.folder}"
            )
    if name is None:
        raise OperationFailed("no overlay runs: start one with octopis overlay up")
    hint = did_you_mean(name, names) or (f"; there are {', '.join(names)}" if names else "")
    raise InvalidConfiguration(f"no overlay {name!r} runs{hint}")
