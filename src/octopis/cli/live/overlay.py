"""`octopis overlay` and `octopis broker`: live overlays on this machine, or one broker of one."""

import contextlib
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop
from rich.progress import MofNCompleteColumn

from octopis.broker.tracing import TraceOptions
from octopis.cli import options, output
from octopis.cli.live.credentials import credentials_of
from octopis.cli.live.overlay_output import (
    print_overlays,
    print_played,
    print_started,
    print_status,
)
from octopis.cli.live.secure import prepared
from octopis.cli.options import (
    AlgorithmOption,
    ConfigOption,
    CredentialsOption,
    DurableOption,
    MetricsPortOption,
    NameArgument,
    SecureOption,
    StateOption,
    TopologyOption,
    TracingEndpointOption,
    addresses_of,
    base_of,
    configured_overlay,
    needs_gateway,
    overlay_to_run,
)
from octopis.errors import InvalidConfiguration, OperationFailed
from octopis.logs import log_to_stderr
from octopis.overlay.asking import no_answer
from octopis.overlay.deployment import Addresses, run
from octopis.overlay.detached import start_detached
from octopis.overlay.gateway import DEFAULT_PORT as GATEWAY_PORT
from octopis.overlay.process import LOG_FORMAT
from octopis.overlay.registry import OverlayState, find, is_running, overlays
from octopis.overlay.settings import PORT_MAX, format_overlay
from octopis.overlay.status import ask_all, totals
from octopis.overlay.supervisor import OverlayOrder, Supervisor, cores
from octopis.trace import Level

app = typer.Typer(
    help="Live overlays on this machine: up, list, status, down, play, config.",
    no_args_is_help=True,
)

broker_app = typer.Typer(help="One broker of an overlay, in the foreground.", no_args_is_help=True)

TraceOption = Annotated[
    Path | None, typer.Option(help="Write a trace into this folder, which is new or empty.")
]
_LOOK_S = 0.02
LevelOption = Annotated[Level, typer.Option(help="How much the trace holds.")]


@app.command()
def up(  # noqa: PLR0913, PLR0917 - each is an option of the command
    topology: TopologyOption = None,
    config: ConfigOption = None,
    algorithm: AlgorithmOption = None,
    durable: DurableOption = None,
    secure: SecureOption = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Over how many processes; as many as cores.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=PORT_MAX,
            help="The first broker's port, the others follow (7400); 0 for any that are free.",
        ),
    ] = None,
    gateway: Annotated[
        bool,
        typer.Option("--gateway", help="Also a gateway: HTTP, WebSocket and a page in a browser."),
    ] = False,
    gateway_port: Annotated[
        int | None,
        typer.Option(min=0, max=PORT_MAX, help=f"Its port ({GATEWAY_PORT}); 0 for any."),
    ] = None,
    metrics_port: MetricsPortOption = None,
    tracing_endpoint: TracingEndpointOption = None,
    trace: TraceOption = None,
    level: LevelOption = Level.DELIVERIES,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when all is up, and let it run.")
    ] = False,
    state: StateOption = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Start all brokers of an overlay, and say where to connect. Ctrl-C drains and stops it."""
    overlay = overlay_to_run(
        topology, config, algorithm, durable, secure, metrics_port, tracing_endpoint
    )
    if trace is not None:
        _check_trace(trace)
    if gateway or gateway_port is not None:
        needs_gateway()
        gateway_port = GATEWAY_PORT if gateway_port is None else gateway_port
    order = OverlayOrder(
        configuration=format_overlay(overlay),
        state=str(base_of(state).absolute()),
        processes=processes or cores(),
        first_port=port,
        trace=None if trace is None else str(trace.absolute()),
        level=level,
        credentials=prepared(overlay, init=secure is not None),
        gateway_port=gateway_port,
    )

    def say(started: OverlayState) -> None:
        if as_json:
            output.print_json(msgspec.to_builtins(started))
        else:
            print_started(started, detached=detach)
        sys.stdout.flush()

    if detach:
        say(start_detached(order))
    else:
        uvloop.run(_supervise(order, say, tell_end=not as_json))


@app.command()
def status(  # noqa: PLR0913, PLR0917 - each is an option of the command
    name: NameArgument = None,
    config: ConfigOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Look again and again.")] = False,
    every_s: Annotated[float, typer.Option(min=0.1, help="How often --watch looks.")] = 1.0,
    links: Annotated[bool, typer.Option("--links", help="Show every link.")] = False,
    credentials: CredentialsOption = None,
    state: StateOption = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Ask every broker how it is: clients, queues, overloaded links, cases, deliveries, drops."""
    while True:
        called, addresses = addresses_of(name, config, state)
        given = credentials_of(addresses.values(), credentials, state)
        statuses = uvloop.run(ask_all(addresses, credentials=given))
        if as_json:
            found = {"overlay": called, "total": totals(statuses), "brokers": statuses}
            if watch:
                sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
            else:
                output.print_json(found)
        else:
            if watch and sys.stdout.isatty():
                output.console().clear()
            print_status(called, statuses, all_links=links)
        if not watch:
            break
        sys.stdout.flush()
        time.sleep(every_s)
    silent = {broker: found["error"] for broker, found in statuses.items() if "error" in found}
    if silent:
        raise no_answer(silent)


@app.command(name="list")
def list_overlays(state: StateOption = None, as_json: output.JsonFlag = False) -> None:
    """List the overlays that run here, and those that ended without an orderly stop."""
    running, ended = overlays(base_of(state))
    if as_json:
        found = {"running": running, "ended": ended}
        output.print_json(msgspec.to_builtins(found))
    else:
        print_overlays(running, ended)


@app.command()
def down(
    name: NameArgument = None,
    every: Annotated[bool, typer.Option("--all", help="Stop all that run here.")] = False,
    state: StateOption = None,
) -> None:
    """Stop an overlay that runs here: queues are drained, then every process ends."""
    if every and name is not None:
        raise InvalidConfiguration("give the name of an overlay, or --all")
    base = base_of(state)
    found = overlays(base)[0] if every else [find(base, name, only=True)]
    for each in found:
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(each.pid, signal.SIGTERM)
    asked_at = time.monotonic()
    for each in found:
        while is_running(each):
            if time.monotonic() > asked_at + each.stop_s:
                raise OperationFailed(
                    f"{each.name} has not stopped within {each.stop_s:g} s; it is process "
                    f"{each.pid}"
                )
            time.sleep(_LOOK_S)
        _let_go(each.pid)
        output.say(f"{each.name} has stopped.")
    if not found:
        output.say("No overlay runs.")


@app.command()
def config(
    topology: TopologyOption = None,
    config_file: Annotated[
        Path | None, typer.Option("--config", help="Complete this file instead.")
    ] = None,
    algorithm: AlgorithmOption = None,
) -> None:
    """Print a complete configuration file, to begin from: every key with its value."""
    overlay = configured_overlay(topology, config_file, algorithm)
    sys.stdout.write(format_overlay(overlay))


@app.command()
def play(  # noqa: PLR0913, PLR0917 - each is an option of the command
    scenario: options.ScenarioFolder,
    name: Annotated[
        str | None, typer.Option(help="Which overlay, as `overlay up` called it; the latest.")
    ] = None,
    config: ConfigOption = None,
    speed: Annotated[float, typer.Option(min=1e-3, help="So many times as fast.")] = 1.0,
    credentials: CredentialsOption = None,
    state: StateOption = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Play a scenario through a running overlay, with real clients, and say what came of it."""
    # They load Arrow, which nothing else here needs.
    from octopis.overlay.player import Play  # noqa: PLC0415
    from octopis.scenario.folder import read_scenario  # noqa: PLC0415

    loaded = read_scenario(scenario)
    called, addresses = addresses_of(name, config, state)
    given = credentials_of(addresses.values(), credentials, state)
    with output.progress_bar(MofNCompleteColumn()) as progress:
        play = Play(loaded, addresses, speed=speed, progress=progress, credentials=given)
        played = uvloop.run(play.run())
    print_played(f"{loaded.document.scenario.name} through {called}", played, as_json=as_json)


@broker_app.command(name="run")
def run_broker(  # noqa: PLR0913, PLR0917 - each is an option of the command
    config: Annotated[
        Path, typer.Option(help="The overlay's TOML file, the same for all of its brokers.")
    ],
    broker: Annotated[
        str, typer.Option(metavar="REGION,CLUSTER", help="Which broker this is, as in b,2.")
    ],
    algorithm: AlgorithmOption = None,
    durable: DurableOption = None,
    secure: SecureOption = None,
    metrics_port: MetricsPortOption = None,
    tracing_endpoint: TracingEndpointOption = None,
    trace: TraceOption = None,
    level: LevelOption = Level.DELIVERIES,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Log also clients that come and go.")
    ] = False,
) -> None:
    """Run one broker until Ctrl-C or SIGTERM; then it drains its queues and stops."""
    found = overlay_to_run(None, config, algorithm, durable, secure, metrics_port, tracing_endpoint)
    overlay = found.configuration
    chosen = overlay.scot.broker(broker)
    for other in overlay.scot.neighbours(chosen):
        if not overlay.link_address(other).port:
            port = "link_port" if overlay.is_secure else "port"
            raise InvalidConfiguration(
                f"{config} does not say where {other}, a neighbour of {chosen}, listens: give "
                f'[brokers."{other.short}"] a {port}'
            )
    log_to_stderr(LOG_FORMAT, logging.DEBUG if verbose else logging.INFO)
    log = logging.getLogger("octopis")

    def ready(addresses: Addresses) -> None:
        log.info("%s takes requests at octopis://%s", chosen, addresses[chosen])

    log.info("%s starts", chosen)
    run(overlay, [chosen], ready, None if trace is None else TraceOptions(trace, level))


def _let_go(pid: int) -> None:
    """Wait for a process that has given up its lock, but not for long: its number may be kept."""
    with contextlib.suppress(OSError):
        for _ in range(50):
            os.kill(pid, 0)
            time.sleep(_LOOK_S)


def _check_trace(folder: Path) -> None:
    """Find here what would stop the brokers, which are processes of their own, from recording."""
    import_module("pyarrow")
    if folder.exists() and any(folder.iterdir()):
        raise InvalidConfiguration(f"{folder} is not empty: choose another folder, or remove it")


async def _supervise(
    order: OverlayOrder, say: Callable[[OverlayState], None], *, tell_end: bool
) -> None:
    supervisor = Supervisor(order)
    supervisor.stop_at_signals()
    started: list[str] = []

    def ready(state: OverlayState) -> None:
        started.append(state.name)
        say(state)

    await supervisor.run(ready)
    if tell_end:
        output.say(f"{started[0]} has stopped." if started else "Stopped before it was ready.")
    if supervisor.undrained:
        sys.stderr.write(
            f"octopis: {supervisor.undrained:,} messages were still queued, and are lost: see "
            "limits.drain_s\n"
        )
