"""Options that several commands share, each written down once.

The options of a scenario's numbers come from where they are declared: octopis.scenario.plan.
"""

import os
import re
from collections.abc import Callable, Sequence
from functools import update_wrapper
from importlib import import_module
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import structs

from octopis.cli import output
from octopis.cli.topology import load
from octopis.client.address import DEFAULT_PORT
from octopis.core.delivery.options import DeliveryOptions, Level
from octopis.core.routing import CONGESTION_THRESHOLD, WINDOW_MS, Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.toml import described
from octopis.core.topology import format_topology
from octopis.errors import InvalidConfiguration
from octopis.overlay.registry import find, overlays, state_base
from octopis.overlay.settings import PORT_MAX, NamedOverlay, configured
from octopis.scenario.costs import Profile, parse_profile, profile_named
from octopis.scenario.document import QueueOptions
from octopis.scenario.plan import PLAN_NUMBERS, plan_from

WHAT_ALGORITHMS_ARE = (
    "snr: along shortest trees; dnr: and around overloaded links between clusters; bid: the "
    "paper's baseline; tnr: ours, matches once, fewer messages, around overload and faults."
)

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
        "[SPARK_REMOTE, else spark-defaults.conf, else all cores of this machine]"
    ),
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A setting of Spark, as `spark-submit` takes it; may be repeated.",
    ),
]

TopologyOption = Annotated[
    str | None,
    typer.Option(help="A name from `octopis topology list`, or a topology's TOML file."),
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="An overlay's TOML file; `octopis overlay config` writes one.")
]
AlgorithmOption = Annotated[
    Algorithm | None,
    typer.Option(help=f"Route by this one, whatever the file says. {WHAT_ALGORITHMS_ARE}"),
]
DurableOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep on disk what is accepted, in this folder: it outlives brokers, and durable "
        "subscriptions can be made.",
    ),
]
SecureOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Encrypt everything, and let in who logs in: by certificates, users and roles in this "
        "folder, as `octopis security init` makes it.",
    ),
]
MetricsPortOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=PORT_MAX,
        help="Show metrics for Prometheus at this port; each further process takes the next one. "
        "0: nowhere.",
    ),
]
TracingEndpointOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Trace notifications that carry a traceparent: spans go to this collector by "
        "OTLP/HTTP, as to http://127.0.0.1:4318.",
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(help="Where running overlays are noted. [OCTOPIS_STATE, or your runtime folder]"),
]
CredentialsOption = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="FILE",
        help="Who you are, at an overlay with security: a file of credentials. "
        "[OCTOPIS_CREDENTIALS, or those of the overlay that runs here]",
    ),
]
NameArgument = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Which overlay, as `overlay up` called it; the latest."),
]
OverlayOption = Annotated[
    str | None,
    typer.Option("--overlay", help="Which overlay, as `overlay up` called it; the latest."),
]
DurableName = Annotated[
    str, typer.Argument(metavar="NAME", help="The durable subscription, as `durable list` has it.")
]

Command = Callable[..., None]

_SCHEME = "octopis://"
_ADDRESS = re.compile(
    r"(?:tcp://|https?://)?([\w.-]+:\d{1,5}|\d+(?:\.\d+){3}|\[[\da-fA-F:]+\](?::\d+)?)/?"
)


def needs_gateway() -> None:
    """See to it that a gateway can run: its process would say only in its log what it lacks."""
    for library in ("httptools", "prometheus_client", "starlette", "uvicorn", "websockets"):
        import_module(library)


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
    algorithm: Annotated[
        Algorithm, typer.Option(help=f"How brokers route. {WHAT_ALGORITHMS_ARE}")
    ] = Algorithm.SNR,
    profile: CostProfile = "paper",
    congestion_threshold: Annotated[
        float, typer.Option(help=f"{described(RoutingOptions, 'congestion_threshold')}.")
    ] = CONGESTION_THRESHOLD,
    window_ms: Annotated[
        float, typer.Option(help=f"{described(RoutingOptions, 'window_ms')}.")
    ] = WINDOW_MS,
    queue_capacity: Annotated[int, typer.Option(help="Messages in an output queue.")] = 100_000,
    level: Annotated[
        Level,
        typer.Option(help="memory (tnr): all is delivered once and in order; none: as routed."),
    ] = Level.NONE,
) -> dict[str, Any]:
    return {
        "routing": RoutingOptions(algorithm, congestion_threshold, window_ms),
        "topology": load(topology),
        "profile": load_profile(profile),
        "queues": QueueOptions(queue_capacity),
        "delivery": DeliveryOptions(level),
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


def configured_overlay(  # noqa: PLR0913, PLR0917 - each is a flag
    topology: str | None,
    config: Path | None,
    algorithm: Algorithm | None,
    durable: Path | None = None,
    secure: Path | None = None,
    metrics_port: int | None = None,
    tracing_endpoint: str | None = None,
) -> NamedOverlay:
    """Return the overlay that flags, environment and file describe, the first coming first."""
    if topology is not None and config is not None:
        raise InvalidConfiguration("--topology and --config exclude each other; the file has one")
    if config is not None:
        text, where = output.read_text(config), str(config)
    else:
        name = topology or "figure-3"
        text, where = format_topology(load(name)), name
    flags = {
        ("routing", "algorithm"): None if algorithm is None else algorithm.value,
        ("durability", "folder"): None if durable is None else str(durable),
        ("security", "folder"): None if secure is None else str(secure),
        ("metrics", "port"): metrics_port,
        ("tracing", "endpoint"): tracing_endpoint,
    }
    return configured(text, where, os.environ, flags)


def overlay_to_run(  # noqa: PLR0913, PLR0917 - each is a flag
    topology: str | None,
    config: Path | None,
    algorithm: Algorithm | None,
    durable: Path | None,
    secure: Path | None = None,
    metrics_port: int | None = None,
    tracing_endpoint: str | None = None,
) -> NamedOverlay:
    """Return the overlay to start; folders for its brokers are where this command says they are.

    Their processes, and those that take their place later, may work elsewhere.
    """
    found = configured_overlay(
        topology, config, algorithm, durable, secure, metrics_port, tracing_endpoint
    )
    configuration = found.configuration
    if configuration.metrics.is_on:
        import_module("prometheus_client")  # here, where its lack can be said in a sentence
    if configuration.tracing.is_on:
        import_module("octopis.broker.telemetry.export")
    for table in ("durability", "security"):
        settings = getattr(configuration, table)
        if settings.folder:
            placed = structs.replace(settings, folder=str(Path(settings.folder).absolute()))
            configuration = structs.replace(configuration, **{table: placed})
    return NamedOverlay(found.topology, configuration)


def base_of(state: Path | None) -> Path:
    """Return the folder where running overlays are noted."""
    return state_base(state, os.environ)


def default_url(state: Path | None = None) -> str:
    """Return where to connect when the user has not said it."""
    running, _ = overlays(base_of(state))
    return running[-1].url if running else f"octopis://127.0.0.1:{DEFAULT_PORT}"


def address_first(words: Sequence[str], state: Path | None) -> tuple[str, list[str]]:
    """Return where to connect, which may stand before all other words, and these.

    Raises InvalidConfiguration where an address stands elsewhere, or is not written as one.
    """
    if words and words[0].startswith(_SCHEME):
        url, rest = words[0], list(words[1:])
    else:
        url, rest = "", list(words)
    for word in rest:
        found = _ADDRESS.fullmatch(word)
        if found or word.startswith(_SCHEME):
            written = f"{_SCHEME}{found[1]}" if found else word
            raise InvalidConfiguration(
                f"{word!r} is an address: give one, before everything else, and write it {written}"
            )
    return url or default_url(state), rest


def addresses_of(
    name: str | None, config: Path | None, state: Path | None
) -> tuple[str, dict[str, str]]:
    """Return what an overlay is called and where its brokers are: by its file, or its state."""
    if config is None:
        found = find(base_of(state), name)
        return found.name, found.addresses
    if name is not None:
        raise InvalidConfiguration("give the name of an overlay that runs here, or --config")
    overlay = configured_overlay(None, config, None)
    addresses = {}
    for broker in overlay.configuration.scot.brokers:
        address = overlay.configuration.address(broker)
        if not address.port:
            raise InvalidConfiguration(f"{config} does not say at which port {broker} listens")
        addresses[broker.short] = str(address)
    return overlay.topology.name, addresses
