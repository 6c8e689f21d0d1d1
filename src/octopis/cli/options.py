"""Options that several commands share, each written down once."""

from pathlib import Path
from typing import Annotated

import typer

from octopis.cli import output
from octopis.core.routing import Algorithm
from octopis.scenario.costs import Profile, parse_profile, profile_named

Topology = Annotated[str, typer.Option(help="A name from `octopis topology list`, or a TOML file.")]
HowToRoute = Annotated[Algorithm, typer.Option("--algorithm", help="How brokers route.")]
CostProfile = Annotated[
    str,
    typer.Option(
        help="What work costs: paper (its 35 machines), octopis (ours), or a TOML file of "
        "`octopis bench calibrate`."
    ),
]
Subscribers = Annotated[int, typer.Option(help="Clients with one subscription each.")]
Publishers = Annotated[int, typer.Option(help="Clients that publish stock quotes.")]
NotificationsEach = Annotated[
    int, typer.Option("--notifications", help="How many each publisher sends.")
]
PerMinute = Annotated[float, typer.Option(help="How many it sends in a minute.")]
HighRate = Annotated[
    int, typer.Option(help="Notifications of one high-rate publisher; 0 for none.")
]
HighRatePerMinute = Annotated[float, typer.Option(help="Its rate.")]
HighRatePublishers = Annotated[
    int, typer.Option(help="How many of them, each in a cluster of its own.")
]
SubscribeEveryMs = Annotated[float, typer.Option(help="The time between two subscriptions.")]
CongestionThreshold = Annotated[float, typer.Option(help="tau: above it a queue is congested.")]
WindowMs = Annotated[float, typer.Option(help="t_w: queues are watched over it.")]
QueueCapacity = Annotated[int, typer.Option(help="Messages in an output queue.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same scenario.")]
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


def load_profile(name: str) -> Profile:
    """Return the profile that ships, or the one in the file, that the user named."""
    if name.endswith(".toml"):
        return parse_profile(output.read_text(Path(name)), name)
    return profile_named(name)
