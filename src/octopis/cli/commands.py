"""Which commands there are, and where: the module of a command is imported when it is called.

So the light commands neither wait for Spark, Arrow and Matplotlib nor need them to be installed,
and the others say which extra brings what they lack.
"""

from functools import update_wrapper
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from octopis.errors import MissingExtra
from octopis.files import check_local


class CommandPlace(NamedTuple):
    """Where a command or a group of commands is, and what the list of commands says of it."""

    place: str
    summary: str
    extra: str = ""
    """What to install where it lacks anything, if that is more than the extra of what it lacks."""


COMMANDS = {
    "pub": CommandPlace(
        "octopis.cli.live.pub:pub",
        "Publish a notification, or many from JSON lines; say how many were accepted.",
    ),
    "sub": CommandPlace(
        "octopis.cli.live.sub:sub",
        "Subscribe, and print one line of JSON for each notification, until Ctrl-C.",
    ),
    "sweep": CommandPlace(
        "octopis.cli.runs:sweep",
        "Run a table of simulations, one in each Spark task; started again, go on where it "
        "stopped.",
    ),
    "evaluate": CommandPlace(
        "octopis.cli.evaluate:evaluate",
        "Run the paper's experiments under BID, SNR, DNR and our TNR, and compare with the paper.",
        "all",
    ),
    "demo": CommandPlace(
        "octopis.cli.demo:demo",
        "Play one scenario through a live overlay with a slow link, under BID, SNR, DNR and TNR.",
        "all",
    ),
    "topology": CommandPlace(
        "octopis.cli.topology:app", "Overlays: list, show, check, plan, draw."
    ),
    "filter": CommandPlace(
        "octopis.cli.filter:app", "Subscriptions: check, explain, covers, convert."
    ),
    "route": CommandPlace("octopis.cli.route:app", "Routing: explain a path, show the cases."),
    "sim": CommandPlace(
        "octopis.cli.sim:app",
        "Overlays in virtual time: example, run, replay, soak.",
    ),
    "overlay": CommandPlace(
        "octopis.cli.live.overlay:app",
        "Live overlays on this machine: up, list, status, down, play, config.",
    ),
    "durable": CommandPlace(
        "octopis.cli.live.durable:app",
        "Durable subscriptions of a live overlay: list, show, move, drop.",
    ),
    "broker": CommandPlace(
        "octopis.cli.live.overlay:broker_app", "One broker of an overlay, in the foreground."
    ),
    "gateway": CommandPlace(
        "octopis.cli.live.gateway:app",
        "HTTP, WebSocket, server-sent events and CloudEvents for a live overlay: run.",
        "gateway",
    ),
    "store": CommandPlace("octopis.cli.store:app", "What brokers keep on disk: check."),
    "security": CommandPlace(
        "octopis.cli.security.app:app",
        "Who may do what: init, renew, client, password, token, show, check, audit.",
    ),
    "workload": CommandPlace(
        "octopis.cli.workload:app",
        "From data to scenarios, on Spark: ingest, estimate, build, truth.",
    ),
    "trace": CommandPlace(
        "octopis.cli.runs:trace_app",
        "What runs have left behind: metrics and check on Spark, plot.",
    ),
    "bench": CommandPlace(
        "octopis.cli.bench.app:app",
        "Measure OctopiS here: matching, routing, simulator, faults, calibrate, broker, gateway, "
        "metrics, security, store, durable, pipeline; attack, kills, channels, durable-kills, "
        "streaming-kills, fuzz.",
    ),
}

_LIBRARIES = {
    "pyspark": ("Spark", "pipeline"),
    "py4j": ("Spark", "pipeline"),
    "pyarrow": ("Arrow", "pipeline"),
    "pandas": ("pandas", "pipeline"),
    "matplotlib": ("Matplotlib", "report"),
    "httptools": ("httptools", "gateway"),
    "prometheus_client": ("prometheus-client", "gateway"),
    "starlette": ("Starlette", "gateway"),
    "uvicorn": ("Uvicorn", "gateway"),
    "websockets": ("websockets", "gateway"),
    "opentelemetry": ("OpenTelemetry", "tracing"),
    "cryptography": ("cryptography", "security"),
    "jwt": ("PyJWT", "security"),
    "scramp": ("scramp", "security"),
}
"""What `pip install octopis` leaves out: what people call it, and the extra that brings it."""


class Commands(TyperGroup):
    """The top of the command line: it knows its commands by their lines, and loads one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the words name, with everything that it needs."""
        name, command, rest = super().resolve_command(ctx, args)  # raises where there is none
        return name, command if name is None else load_command(name), rest


def add_commands(app: typer.Typer) -> None:
    """Let `app` list all commands, none of which is loaded yet."""
    for name, command in COMMANDS.items():
        app.command(name=name, help=command.summary)(_stand_in)


def load_command(name: str) -> Any:
    """Import a command and return it, ready to be called."""
    found = resolve_name(COMMANDS[name].place)
    whole = typer.Typer(rich_markup_mode="rich", add_completion=False)
    if isinstance(found, typer.Typer):
        whole.add_typer(found, name=name)
        group: Any = typer.main.get_command(whole)
        return _taking_paths(group.commands[name])
    whole.command(name=name)(found)
    return _taking_paths(typer.main.get_command(whole))


def _taking_paths(command: Any) -> Any:
    """Let a command, and those below it, refuse addresses such as s3://... for files and folders.

    Here, for all of them: none can be forgotten.
    """
    for below in getattr(command, "commands", {}).values():
        _taking_paths(below)
    act = command.callback
    if act is None:
        return command

    def called(**given: Any) -> Any:
        for value in given.values():
            for each in value if isinstance(value, list | tuple) else [value]:
                if isinstance(each, Path):
                    check_local(each)
        return act(**given)

    command.callback = update_wrapper(called, act)
    return command


def missing_extra(failure: ModuleNotFoundError, arguments: list[str]) -> MissingExtra | None:
    """Return what to say where a command lacks a library of an extra; None for other failures."""
    library = (failure.name or "").partition(".")[0]
    if library not in _LIBRARIES:
        return None
    known_as, extra = _LIBRARIES[library]
    words = [word for word in arguments if not word.startswith("-")]
    command = COMMANDS[words[0]]
    called = words[: 2 if command.place.endswith("app") else 1]
    return MissingExtra(" ".join(called), known_as, command.extra or extra)


def _stand_in() -> None:
    raise AssertionError("a command is loaded before it is called")
