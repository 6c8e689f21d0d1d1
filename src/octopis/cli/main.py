"""The `octopis` command: its map, its options, and how every error reaches the user."""

import sys
import traceback
from typing import Annotated

import typer
from typer.exceptions import TyperException

from octopis.cli import output
from octopis.cli.commands import Commands, add_commands, missing_extra
from octopis.errors import OctopisError
from octopis.version import __version__

_MAP = """OctopiS: content-based publish/subscribe whose brokers route around congestion.

Start with [bold]octopis demo[/bold], then look around:

  [cyan]octopis topology[/cyan]   overlays: list, show, check, plan, draw
  [cyan]octopis filter[/cyan]     subscriptions: check, explain, covers, convert
  [cyan]octopis route[/cyan]      notifications: explain their way, show the cases
  [cyan]octopis sim[/cyan]        overlays in virtual time: example, run, replay, soak
  [cyan]octopis overlay[/cyan]    live brokers on this machine: up, list, status, down, play, config
  [cyan]octopis broker[/cyan]     one live broker in the foreground, for one broker per machine: run
  [cyan]octopis pub[/cyan], [cyan]sub[/cyan]   publish and subscribe from the shell
  [cyan]octopis gateway[/cyan]    HTTP, WebSocket and events for a live overlay, and its page: run
  [cyan]octopis store[/cyan]      what brokers keep on disk: check
  [cyan]octopis durable[/cyan]    subscriptions that outlive their readers: list, show, move, drop
  [cyan]octopis security[/cyan]   who may do what: init, client, password, token, check, audit
  [cyan]octopis workload[/cyan]   scenarios from your data, on Spark: ingest, estimate, build, truth
  [cyan]octopis sweep[/cyan]      many simulations at once, on Spark
  [cyan]octopis trace[/cyan]      what runs have left behind: metrics, check, plot
  [cyan]octopis evaluate[/cyan]   the paper's experiments, and our results beside the paper's
  [cyan]octopis bench[/cyan]      measure: matching, routing, simulator, broker, pipeline

Each command explains itself with --help.
"""

_INTERRUPTED = 130

app = typer.Typer(
    name="octopis",
    cls=Commands,
    help=_MAP,
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
add_commands(app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"octopis {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback when something goes wrong.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Take the options that stand before any command."""


def main() -> None:
    """Run the command; one clear sentence on standard error where it goes wrong."""
    # --debug is for the moment of need: let it stand anywhere in the line.
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        status = app(args=arguments, standalone_mode=False)
        if status == _INTERRUPTED:  # typer has caught Ctrl-C, and says nothing
            _report("stopped", _INTERRUPTED, debug=False)
    except OctopisError as error:
        status = _report(str(error), error.exit_status, debug=debug)
    except TyperException as error:
        status = _report(error.format_message(), error.exit_code, debug=debug)
    except (KeyboardInterrupt, typer.Abort):
        status = _report("stopped", _INTERRUPTED, debug=False)
    except BrokenPipeError:
        output.be_quiet()
        status = 0
    except ModuleNotFoundError as error:
        status = _report_missing(error, arguments, debug=debug)
    except Exception as error:  # noqa: BLE001 - the last resort promises one sentence
        status = _report(_internal(error), 1, debug=debug)
    sys.exit(status)


def _report_missing(error: ModuleNotFoundError, arguments: list[str], *, debug: bool) -> int:
    missing = missing_extra(error, arguments)
    if missing is None:
        return _report(_internal(error), 1, debug=debug)
    return _report(str(missing), missing.exit_status, debug=debug)


def _internal(error: Exception) -> str:
    return f"internal error ({type(error).__name__}: {error}); run again with --debug"


def _report(message: str, status: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    if message:
        sys.stderr.write(f"octopis: {message}\n")
    return status
