"""Every module of these rooms has a test file of its own, at the same place under tests/unit."""

from pathlib import Path

import pytest

import octopis

SOURCES = Path(octopis.__file__).parent
TESTS = Path(__file__).parent
ROOMS = (
    "model",
    "topology",
    "filters",
    "matching",
    "routing",
    "wire",
    "trace",
    "workload",
    "simulator",
    "live",
    "pipeline",
    "evaluation",
    "demo",
)


def missing_tests(sources: Path, tests: Path) -> list[str]:
    """Return the test files that ought to be there."""
    names = [path.stem for path in sorted(sources.glob("*.py")) if path.stem != "__init__"]
    return [f"test_{name}.py" for name in names if not (tests / f"test_{name}.py").exists()]


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_has_its_test(room: str):
    assert list((SOURCES / room).glob("*.py")), f"there is no room {room}"
    assert missing_tests(SOURCES / room, TESTS / room) == []


def test_module_without_test_is_caught(tmp_path: Path):
    sources, tests = tmp_path / "sources", tmp_path / "tests"
    sources.mkdir()
    tests.mkdir()
    for name in ("__init__.py", "tested.py", "forgotten.py"):
        (sources / name).touch()
    (tests / "test_tested.py").touch()
    assert missing_tests(sources, tests) == ["test_forgotten.py"]
