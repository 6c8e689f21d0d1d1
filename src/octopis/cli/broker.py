"""`octopis broker`: one broker of an overlay, for one broker per machine."""

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from octopis.broker.tracing import TraceOptions
from octopis.cli.overlay import LevelOption, TraceOption
from octopis.cli.overlay_options import AlgorithmOption, configured_overlay
from octopis.errors import InvalidConfiguration
from octopis.overlay.deployment import Addresses, run
from octopis.overlay.process import LOG_FORMAT
from octopis.trace import Level

app = typer.Typer(help="One broker of an overlay, in the foreground.", no_args_is_help=True)


@app.command(name="run")
def run_broker(  # noqa: PLR0913, PLR0917 - each is an option of the command
    config: Annotated[
        Path, typer.Option(help="The overlay's TOML file, the same for all of its brokers.")
    ],
    broker: Annotated[
        str, typer.Option(metavar="REGION,CLUSTER", help="Which broker this is, as in b,2.")
    ],
    algorithm: AlgorithmOption = None,
    trace: TraceOption = None,
    level: LevelOption = Level.DELIVERIES,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Log also clients that come and go.")
    ] = False,
) -> None:
    """Run one broker until Ctrl-C or SIGTERM; then it drains its queues and stops."""
    overlay = configured_overlay(None, config, algorithm).configuration
    chosen = overlay.scot.broker(broker)
    for other in overlay.scot.neighbours(chosen):
        if not overlay.address(other).port:
            raise InvalidConfiguration(
                f"{config} does not say where {other}, a neighbour of {chosen}, listens: give "
                f'[brokers."{other.short}"] a port'
            )
    logging.basicConfig(
        stream=sys.stderr, level=logging.DEBUG if verbose else logging.INFO, format=LOG_FORMAT
    )
    log = logging.getLogger("octopis")

    def ready(addresses: Addresses) -> None:
        log.info("%s takes requests at octopis://%s", chosen, addresses[chosen])

    log.info("%s starts", chosen)
    run(overlay, [chosen], ready, None if trace is None else TraceOptions(trace, level))
