"""Options that several commands share, each written down once.

The options of a scenario's numbers come from where they are declared: octopis.scenario.plan.
"""

from collections.abc import Callable
from functools import update_wrapper
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from octopis.cli import output
from octopis.cli.topology import load
from octopis.core.routing import CONGESTION_THRESHOLD, WINDOW_MS, Algorithm
from octopis.scenario.costs import Profile, parse_profile, profile_named
from octopis.scenario.document import QueueOptions, RoutingOptions
from octopis.scenario.plan import PLAN_NUMBERS, plan_from

CostProfile = Annotated[
    str,
    typer.Option(
        help="What work costs: paper (its 35 machines), octopis (ours), or a TOML file of "
        "`octopis bench calibrate`."
    ),
]
ScenarioFolder = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="A folder with a scenario.toml and its tables.")
]
Master = Annotated[
    str | None,
    typer.Option(
        help="Where Spark runs: spark://HOST:PORT, or local[N]. "
        "[SPARK_REMOTE, else all cores of this machine]"
    ),
]

Command = Callable[..., None]


def load_profile(name: str) -> Profile:
    """Return the profile that ships, or the one in the file, that the user named."""
    if name.endswith(".toml"):
        return parse_profile(output.read_text(Path(name)), name)
    return profile_named(name)


def _how_it_is_run(  # noqa: PLR0913 - each is an option of the command
    *,
    topology: Annotated[
        str, typer.Option(help="A name from `octopis topology list`, or a TOML file.")
    ] = "figure-3",
    algorithm: Annotated[Algorithm, typer.Option(help="How brokers route.")] = Algorithm.SNR,
    profile: CostProfile = "paper",
    congestion_threshold: Annotated[
        float, typer.Option(help="tau: above it a queue is congested.")
    ] = CONGESTION_THRESHOLD,
    window_ms: Annotated[float, typer.Option(help="t_w: queues are watched over it.")] = WINDOW_MS,
    queue_capacity: Annotated[int, typer.Option(help="Messages in an output queue.")] = 100_000,
) -> dict[str, Any]:
    return {
        "routing": RoutingOptions(algorithm, congestion_threshold, window_ms),
        "topology": load(topology),
        "profile": load_profile(profile),
        "queues": QueueOptions(queue_capacity),
    }


def takes_plan(**defaults: Any) -> Callable[[Command], Command]:
    """Give a command all options of a scenario's plan in place of its argument `plan`.

    `defaults` are by option, where they differ from those of a plan.
    """
    how = list(signature(_how_it_is_run).parameters.values())
    numbers = [
        Parameter(
            each.key,
            Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=Annotated[each.kind, typer.Option(help=each.meaning)],
        )
        for each in PLAN_NUMBERS
    ]
    offered = [
        each.replace(default=defaults.get(each.name, each.default))
        for each in (*how[:3], *numbers, *how[3:])
    ]

    def decorate(command: Command) -> Command:
        def called(**given: Any) -> None:
            chosen = {each.name: given.pop(each.name) for each in numbers}
            others = _how_it_is_run(**{each.name: given.pop(each.name) for each in how})
            command(**given, plan=plan_from(chosen, **others))

        own = signature(command).parameters
        places = [
            each.replace(kind=Parameter.KEYWORD_ONLY)
            for name, found in own.items()
            for each in (offered if name == "plan" else [found])
        ]
        update_wrapper(called, command)
        called.__signature__ = Signature(places)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in places}
        return called

    return decorate
