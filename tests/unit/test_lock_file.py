import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!~ ;\[]", text)[0].lower() for text in requirements}


def test_every_requirement_is_pinned_with_hashes():
    blocks = re.split(r"\n(?=[a-z0-9])", LOCK.strip())
    assert len(blocks) > 30
    for block in blocks:
        assert re.match(r"[a-z0-9._-]+==[^ ]+ ", block), block.splitlines()[0]
        assert "--hash=sha256:" in block


def test_no_index_and_no_host_is_named():
    assert "://" not in LOCK
    assert "index" not in LOCK
    assert "find-links" not in LOCK


def test_every_declared_dependency_is_locked():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    groups = ("pipeline", "report", "security", "gateway", "tracing", "connect", "dev")
    wanted = [text for extra in groups for text in extras[extra]]
    declared = names([*project["dependencies"], *wanted])
    locked = names([line for line in LOCK.splitlines() if "==" in line])
    assert declared <= locked


def test_what_spark_connect_needs_is_locked():
    needed = {"googleapis-common-protos", "grpcio", "grpcio-status", "zstandard"}
    assert needed <= names([line for line in LOCK.splitlines() if "==" in line])
