"""What README and docs show works as it is written there."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from octopis import connect_sync
from octopis.benchmarks.processes import free_ports
from octopis.cli.commands import COMMANDS, load_command
from support.overlay_command import Shell, wait_until

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
README = ROOT / "README.md"
URL = "octopis://127.0.0.1:7400"
"""Where pages connect to; tests run their own overlay elsewhere."""

GATEWAY = "http://127.0.0.1:7480"
SPARK = ("workload", "sweep", "trace")
"""Commands that start a Spark each: tests/pipeline/test_page.py runs those of a page in one."""

LONG = ("bench", "evaluate", "demo")
"""Commands that take minutes: `make docs-check` runs them; tests of their own run them small."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def shown(block: str) -> list[list[str]]:
    """Return the `octopis` commands that a block shows at a prompt."""
    lines = block.replace("\\\n", " ").splitlines()
    found = [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ octopis")]
    return [words[1:] for words in found]


def is_long(block: str) -> bool:
    """Tell whether a block takes minutes, or needs what such a one has left in its usual folder."""
    return any(words[0] in LONG for words in shown(block)) or "out/" in block


def in_reading_order() -> list[Path]:
    """Return README, and then the pages as its list of what to read on has them."""
    listed = README.read_text(encoding="utf-8").partition("## Read on")[2]
    return [README, *(ROOT / name for name in re.findall(r"\]\((docs/[^)#]+\.md)\)", listed))]


def commands(page: Path, *, long: bool = False) -> list[list[str]]:
    """Return the commands of a page that need no Spark: the quick ones, or the long ones."""
    found = [block for block in blocks(page, "console") if is_long(block) is long]
    return [words for block in found for words in shown(block) if words[0] not in SPARK]


def mentions(page: Path) -> list[list[str]]:
    """Return the commands that a page names within its text."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    found = re.findall(r"`octopis ([^`]+)`", text.replace("\n", " "))
    return [shlex.split(words) for words in found]


def id_of(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_python_on_the_page_runs(page: Path, tmp_path: Path):
    connecting = [block for block in blocks(page, "python") if URL in block]
    for block in blocks(page, "python"):
        if block not in connecting:
            exec(compile(block, str(page), "exec"), {})  # noqa: S102 - our own page
    if connecting:
        with running_overlay(tmp_path) as url:
            run_against(url, connecting)


@contextmanager
def running_overlay(folder: Path) -> Iterator[str]:
    """Run an overlay as `overlay up` does, at any port, and yield where to connect."""
    shell = Shell(folder)
    with shell.up("--topology", "figure-7", "--durable", "kept") as up:
        yield up.url("a,0")
    shell.end()


def run_against(url: str, programs: list[str]) -> None:
    """Run programs that connect: first those that subscribe, which must then print something."""
    placed = [program.replace(URL, url) for program in programs]
    subscribers = [
        subprocess.Popen([sys.executable, "-u", "-c", program], stdout=subprocess.PIPE)
        for program in placed
        if ".subscribe(" in program
    ]
    try:
        with connect_sync(url) as client:
            wait_until(lambda: client.status()["subscriptions"] == len(subscribers))
        for program in placed:
            if ".subscribe(" not in program:
                subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        for subscriber in subscribers:
            assert subscriber.stdout is not None
            assert subscriber.stdout.readline()
    finally:
        for subscriber in subscribers:
            subscriber.kill()
            subscriber.communicate()


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_commands_on_the_page_run(page: Path, tmp_path: Path):
    run_all(commands(page), tmp_path, limit_s=60)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_long_commands_on_the_page_run(page: Path, tmp_path: Path):
    run_all(commands(page, long=True), tmp_path, limit_s=1800)


@pytest.mark.long
def test_all_pages_can_be_followed_one_after_another_in_one_folder(tmp_path: Path):
    for page in in_reading_order():
        for table in blocks(page, "toml"):
            named = re.match(r"# (\w+\.toml)\n", table)
            if named or "[[runs]]" in table:
                (tmp_path / (named[1] if named else "runs.toml")).write_text(
                    table, encoding="utf-8"
                )
        for code in blocks(page, "py"):
            if "open(" in code:  # makes the data that commands read
                subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
        words = [words for block in blocks(page, "console") for words in shown(block)]
        run_all(words, tmp_path, limit_s=1800)


def test_requests_on_the_gateway_page_are_answered_well(tmp_path: Path):
    page = ROOT / "docs" / "gateway.md"
    lines = [line[2:] for block in blocks(page, "console") for line in block.splitlines()]
    requests = [line for line in lines if line.startswith("curl ")]
    shell = Shell(tmp_path)
    words = ("--topology", "figure-7", "--durable", "kept", "--gateway-port", "0")
    with shell.up(*words) as up:
        address = up.state["gateway"]
        for line in requests:
            done = subprocess.run(
                ["/bin/bash", "-c", f"{line} --fail-with-body".replace(GATEWAY, address)],
                capture_output=True,
                check=False,
                timeout=60,
            )
            follows = "--max-time" in line
            assert done.returncode == (28 if follows else 0), f"{line}: {done.stdout!r}"
            assert done.stdout, line
    shell.end()
    assert len(requests) > 10


def test_no_two_pages_write_to_the_same_place():
    taken: dict[str, str] = {}
    for page in in_reading_order():
        shown_there = [words for block in blocks(page, "console") for words in shown(block)]
        for words in (*shown_there, *mentions(page)):
            if "--out" in words:
                place = words[words.index("--out") + 1]
                assert taken.setdefault(place, page.name) == page.name, shlex.join(words)
    assert len(taken) > 10


def test_all_pages_are_in_the_list_of_what_to_read_on():
    assert {*in_reading_order()} == {*PAGES}


def test_guide_shows_dynamic_routing_that_goes_around(tmp_path: Path):
    (words,) = [words for words in commands(ROOT / "docs" / "guide.md") if words[0] == "route"]
    answers = json.loads(Shell(tmp_path).run(*words, "--json").stdout)
    over_it = {
        each["algorithm"]: any(hop["overloaded"] for hop in each["hops"]) for each in answers
    }
    assert over_it == {"snr": True, "dnr": False, "bid": True, "tnr": False}
    assert all(each["reached"] for answer in answers for each in answer["subscribers"])


def test_routing_page_tells_what_its_commands_say(octopis):
    page = ROOT / "docs" / "routing.md"
    asked = [words for words in commands(page) if "--svg" in words]
    told = []
    for words in asked:
        plain = words[: words.index("--svg")]
        answers = {each["algorithm"]: each for each in json.loads(octopis(*plain, "--json")[1])}
        told.append(answers)
        figure = words[words.index("--svg") + 1].removeprefix("docs/").removesuffix(".svg")
        text = page.read_text(encoding="utf-8")
        assert all(f"({figure}-{algorithm}.svg)" in text for algorithm in answers)
    congested, dead = told
    assert {name: each["ims"] for name, each in congested.items()} == {
        "snr": 8,
        "dnr": 8,
        "bid": 8,
        "tnr": 4,
    }
    waiting = {name for name, each in congested.items() if _waits(each)}
    assert waiting == {"snr", "bid"}
    lost = {
        name: [each["name"] for each in answer["subscribers"] if each["lost"]]
        for name, answer in dead.items()
    }
    assert lost == {"snr": ["S3"], "tnr": []}


def _waits(answer: dict[str, Any]) -> bool:
    return any(hop["overloaded"] for hop in answer["hops"])


def run_all(commands: list[list[str]], folder: Path, limit_s: float) -> None:
    """Run commands in their order, in one folder; every one must go well."""
    shell = Shell(folder)
    in_background = []
    try:
        for words in commands:
            if words[:2] == ["overlay", "up"]:
                with_gateway = ["--gateway-port", "0"] if "--gateway" in words else []
                words += ["--port", "0", *with_gateway]  # many tests run at a time
            if "--metrics-port" in words:
                words[words.index("--metrics-port") + 1] = str(free_ports(8)[0])
            if "--background" in words:
                in_background.append(shell.start(*words, stdin=subprocess.DEVNULL))
                assert in_background[-1].wait(timeout=limit_s) == 0
                continue
            done = shell.run(*words, limit_s=limit_s)
            assert done.returncode == 0, f"octopis {shlex.join(words)}: {done.stderr}"
        for each in in_background:
            printed, _ = each.communicate(timeout=30)
            assert each.returncode == 0
            assert printed.count("\n") == 1, "what was published after it must not be lost"
    finally:
        shell.run("overlay", "down")
        shell.end()


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_commands_named_in_the_text_exist_with_their_options(page: Path):
    for name, *rest in mentions(page):
        words = [name, *rest]
        assert name in COMMANDS, f"there is no octopis {shlex.join(words)}"
        command = load_command(name)
        while rest and rest[0] in getattr(command, "commands", {}):
            command = command.commands[rest.pop(0)]
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        used = {word for word in rest if word.startswith("--")} - {"--help"}
        assert used <= known, f"octopis {shlex.join(words)}: {used - known}"


def rooms() -> list[str]:
    """Return the rooms and files that the contributors' page lists, as core/wire/."""
    page = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
    (listing,) = re.findall(r"```\n(errors.py.*?)```", page, re.DOTALL)
    found, outer = [], ""
    for line in listing.splitlines():
        name = line.split()[0]
        if line[0] != " ":
            outer = name
        found.append(name if name == outer else outer + name)
    return found


def test_rooms_on_the_page_are_those_of_the_tree():
    source = ROOT / "src" / "octopis"
    assert [name for name in rooms() if not (source / name).exists()] == []
    there = {f"{path.parent.relative_to(source)}/" for path in source.rglob("__init__.py")}
    assert there - {"./"} <= {*rooms()}


def test_rooms_on_the_page_stand_in_the_order_of_their_imports():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = reversed(project["tool"]["importlinter"]["contracts"][0]["layers"])
    in_order = [name for layer in layers for name in re.findall(r"octopis\.(\w+)", layer)]
    names = [name.rstrip("/").removesuffix(".py") for name in rooms()]
    assert [name for name in names if "/" not in name] == in_order


def test_pages_show_commands_and_code():
    assert len(commands(ROOT / "README.md")) >= 4
    assert any(blocks(page, "python") for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=id_of)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
