"""`octopis demo`: one slow link, four ways of routing, and a broker that is killed, live."""

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.console import Console
from rich.markup import escape

from octopis.cli import options, output
from octopis.demo.comparison import cautions, check_faultless, findings
from octopis.demo.display import comparison_table
from octopis.demo.fault import cast
from octopis.demo.fault.outcome import check_went_on, fault_findings
from octopis.demo.report import OVERLAY, REPORT, SCENARIO
from octopis.demo.run import Demonstrated, run_demo
from octopis.demo.stage import PlainStage, Stage, TerminalStage
from octopis.demo.workload import FULL, SEED, SMALL
from octopis.overlay.settings import PORT_MAX
from octopis.pipeline.spark.settings import parse_conf


class SizeName(Enum):
    """How much is played."""

    FULL = "full"
    SMALL = "small"


_PLANS = {SizeName.FULL: (FULL, cast.FULL), SizeName.SMALL: (SMALL, cast.SMALL)}


def demo(  # noqa: PLR0913, PLR0917 - each is an option of the command
    out: Annotated[
        Path, typer.Option(help="The folder for the report; an earlier demo there is replaced.")
    ] = Path("out/demo"),
    seed: Annotated[
        int, typer.Option(min=0, help="Of quotes, subscriptions, and who sits where.")
    ] = SEED,
    size: Annotated[
        SizeName, typer.Option(help="`small` plays a fifth, to see quickly whether all works.")
    ] = SizeName.FULL,
    no_gateway: Annotated[
        bool, typer.Option("--no-gateway", help="Serve no dashboard while brokers run.")
    ] = False,
    gateway_port: Annotated[
        int, typer.Option(min=0, max=PORT_MAX, help="And at which port; 0 for any that is free.")
    ] = 0,
    conf: options.Conf = None,
    as_json: output.JsonFlag = False,
) -> None:
    """Play one scenario through a live overlay with a slow link, under BID, SNR, DNR and TNR.

    Spark makes a workload of stock quotes and works out who must get what.
    18 real brokers start on this machine, with one link slowed down.
    Real clients play the same notifications, once under each algorithm.
    Then, under TNR, a broker on the way is killed while notifications go through it.
    Spark checks every delivery; a report with pictures is left in --out.

    A dashboard shows all of it in a browser while it happens; its address is printed first.

    It takes about a minute and a half. Ctrl-C stops it at any time and leaves nothing behind.
    """
    plan, fault_plan = _PLANS[size]
    plan = replace(plan, seed=seed)
    stage = _stage(as_json=as_json)
    port = None if no_gateway or not _has_gateway(stage) else gateway_port
    shown = run_demo(plan, fault_plan, out, stage, parse_conf(conf or []), port)
    if as_json:
        output.print_json({**shown.document(), "report": str(out / REPORT)})
    else:
        _print(shown, out)
    check_faultless(shown.rows)
    check_went_on(shown.fault)


def _has_gateway(stage: Stage) -> bool:
    """Tell whether there can be a gateway; say so where not, as everything else goes on."""
    try:
        options.needs_gateway()
    except ModuleNotFoundError as missing:
        stage.say(f"No dashboard: {missing.name} is missing; pip install 'octopis[gateway]'")
        return False
    return True


def _stage(*, as_json: bool) -> Stage:
    """Show it on standard output, or beside the JSON on standard error."""
    stream = sys.stderr if as_json else sys.stdout
    if stream.isatty():
        return TerminalStage(Console(file=stream, highlight=False))
    return PlainStage(Console(file=stream, highlight=False, width=160))


def _print(shown: Demonstrated, out: Path) -> None:
    output.say("")
    output.console().print(comparison_table(shown.rows))
    output.say("")
    for caution in cautions(shown.rows):
        output.console().print(f"[bold yellow]{escape(caution)}[/bold yellow]")
    for sentence in findings(shown.rows):
        output.say(sentence)
    output.say("")
    for sentence in fault_findings(shown.fault):
        output.say(sentence)
    output.say(f"\nThe report, with pictures: {out / REPORT}")
    output.say("Next:")
    commands = {
        f"octopis overlay up --config {out / OVERLAY}": "this overlay, for yourself",
        f"octopis overlay play {out / SCENARIO}": "the same notifications through it",
        "octopis route explain --help": "where one notification goes, and why",
        "octopis evaluate": "the paper's experiments",
    }
    width = max(map(len, commands))
    for command, what in commands.items():
        # Never wrapped: a command is there to be copied.
        output.console().print(f"  {command:{width}}  [dim]{what}[/dim]", soft_wrap=True)
