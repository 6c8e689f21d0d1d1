from collections.abc import Iterator
from pathlib import Path

import pytest

from support.overlay_command import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """Commands in a folder of their own; at the end, nothing that they started may be left."""
    shell = Shell(tmp_path)
    yield shell
    shell.end()
