"""Output folders that are whole or not there at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from octopis.errors import InvalidConfiguration


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """Give a folder beside `target` to write into; it takes the target's name when all went well.

    Raises InvalidConfiguration where `target` holds something already, or cannot be written.
    Whatever else goes wrong, nothing is left behind.
    """
    target = target.absolute()
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        if target.is_dir() and not any(target.iterdir()):
            target.rmdir()
        if target.exists():
            raise InvalidConfiguration(f"{target} exists: choose another folder, or remove it")
        draft.mkdir(parents=True)
    except OSError as failure:
        reason = f"cannot write {target}: {failure.strerror}"
        raise InvalidConfiguration(reason) from failure
    try:
        yield draft
        draft.rename(target)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
