"""Law 1: errors and the core do no input or output, and know no time and no chance."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import octopis

ROOT = Path(octopis.__file__).parent
ROOMS = ("errors.py", "core")

NETWORK = {"asyncio", "uvloop", "socket", "socketserver", "ssl", "select", "selectors"}
WEB = {"http", "urllib", "requests"}
TIME_AND_CHANCE = {"time", "datetime", "sched", "random", "secrets", "uuid"}
PARALLEL = {"threading", "multiprocessing", "concurrent", "subprocess", "signal", "queue"}
FILES = {"os", "io", "pathlib", "shutil", "tempfile", "glob", "fileinput", "mmap", "sqlite3"}
TERMINAL = {"logging", "typer", "rich"}
DATA_FRAMES = {"pyspark", "pandas", "pyarrow", "matplotlib"}
FORBIDDEN_MODULES = NETWORK | WEB | TIME_AND_CHANCE | PARALLEL | FILES | TERMINAL | DATA_FRAMES
FORBIDDEN_CALLS = {"open", "print", "input", "breakpoint", "exec", "eval", "__import__"}


def modules() -> list[Path]:
    return sorted(
        path
        for room in ROOMS
        for path in ([ROOT / room] if room.endswith(".py") else (ROOT / room).rglob("*.py"))
    )


def breaches(source: str) -> Iterator[str]:
    """Yield each breach of the law, also inside functions and classes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (_imports(node, name.name) for name in names if _forbidden(name.name))
            case ast.ImportFrom(module=str(module), level=0) if _forbidden(module):
                yield _imports(node, module)
            case ast.Call(func=ast.Name(id=name)) if name in FORBIDDEN_CALLS:
                yield f"line {node.lineno} calls {name}()"
            case ast.Call(func=ast.Attribute(attr="import_module")):
                yield f"line {node.lineno} imports by name"


def _forbidden(module: str) -> bool:
    return module.partition(".")[0] in FORBIDDEN_MODULES


def _imports(node: ast.stmt, module: str) -> str:
    return f"line {node.lineno} imports {module}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_module_does_no_input_or_output(path: Path):
    assert list(breaches(path.read_text(encoding="utf-8"))) == []


def test_the_rooms_are_there():
    names = {path.relative_to(ROOT).parts[:2] for path in modules()}
    assert {("errors.py",), ("core", "model"), ("core", "routing"), ("core", "wire")} <= names


@pytest.mark.parametrize(
    ("source", "breach"),
    [
        ("import time", "line 1 imports time"),
        ("import os.path", "line 1 imports os.path"),
        ("import json, random", "line 1 imports random"),
        ("from concurrent.futures import Future", "line 1 imports concurrent.futures"),
        ("from datetime import datetime as moment", "line 1 imports datetime"),
        ("def f():\n    import socket", "line 2 imports socket"),
        ("class C:\n    def f(self):\n        from pathlib import Path", "line 3 imports pathlib"),
        ("def f():\n    return open('x')", "line 2 calls open()"),
        ("print('x')", "line 1 calls print()"),
        ("import importlib\nimportlib.import_module('os')", "line 2 imports by name"),
    ],
)
def test_planted_breach_is_caught(source: str, breach: str):
    assert list(breaches(source)) == [breach]


@pytest.mark.parametrize(
    "source",
    ["import json", "from octopis.core.topology import scot", "self.open()", "from . import time"],
)
def test_what_is_allowed_passes(source: str):
    assert list(breaches(source)) == []
