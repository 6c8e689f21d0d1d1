"""The processes of `octopis bench broker`: brokers, a publisher, a subscriber, a pinger.

Each is `python -m octopis.benchmarks.live.roles ROLE OPTIONS` with options as JSON. It prints
one line of JSON when it is ready, waits for a line where it has to be told to go, and prints what
it measured. Times are of the system's monotonic clock, which all processes share.
"""

import asyncio
import sys
import time
from itertools import pairwise
from statistics import median
from typing import Any

import msgspec
import uvloop

import octopis
from octopis.broker.settings import (
    Durability,
    Metrics,
    OverlayConfiguration,
    SecurityOptions,
)
from octopis.client.address import Address
from octopis.core.delivery.options import DeliveryOptions, Level
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.core.topology import SCOT, AcyclicFactor, ConnectivityFactor, from_catalogue
from octopis.errors import OperationFailed
from octopis.overlay.deployment import run
from octopis.scenario.stock import StockWorkload

END = {"end": True}
"""Published last, so that the subscriber knows that everything has come."""


def overlay_named(name: str) -> SCOT:
    """Return an overlay of the catalogue, or `line-N`: N brokers in a row."""
    if not name.startswith("line-"):
        return from_catalogue(name).scot
    regions = [f"r{number}" for number in range(int(name.removeprefix("line-")))]
    edges = list(pairwise(regions))
    return SCOT(AcyclicFactor(regions, edges), ConnectivityFactor.complete(1))


def brokers(options: dict[str, Any]) -> None:
    """Run brokers of an overlay until told to stop."""
    scot = overlay_named(options["overlay"])
    ports = dict(zip(scot.brokers, options["ports"], strict=True))
    overlay = OverlayConfiguration(
        scot=scot,
        routing=RoutingOptions(Algorithm(options["algorithm"])),
        delivery=DeliveryOptions(Level(options.get("level", "memory"))),
        durability=msgspec.convert(
            options.get("durability", {"folder": options.get("folder", "")}), Durability
        ),
        addresses={broker: Address(port=port) for broker, port in ports.items()},
        metrics=Metrics(port=options.get("metrics_port", 0)),
        security=SecurityOptions(folder=options.get("security", "")),
    )
    chosen = [scot.brokers[number] for number in options["brokers"]]
    run(overlay, chosen, lambda addresses: _say({"brokers": len(addresses)}))


async def subscriber(options: dict[str, Any]) -> None:
    """Subscribe, and count what comes until the end."""
    filters = StockWorkload(options["seed"]).filters(options["subscriptions"])
    credentials = options.get("credentials")
    async with octopis.connect(
        options["address"], window=50_000, credentials=credentials
    ) as client:
        async with client.subscribe(*filters, "end = TRUE") as notifications:
            _say({"subscriptions": len(filters)})
            received = deliveries = 0
            checksum = 0.0
            ended = False
            async for batch in notifications.batches():
                for notification in batch:
                    ended = ended or "end" in notification.attributes
                    checksum += notification.attributes.get("close", 0.0)  # type: ignore[operator]
                    deliveries += len(notification.subscriptions)
                received += len(batch)
                if ended:
                    break
            finished = time.monotonic()
        if notifications.gaps:
            raise OperationFailed("notifications were lost: the figure would mean nothing")
        _say({"received": received, "deliveries": deliveries - 1, "finished": finished})


async def publisher(options: dict[str, Any]) -> None:
    """Publish as fast as the broker accepts, when told to go."""
    quotes = StockWorkload(options["seed"]).notifications(options["notifications"])
    credentials = options.get("credentials")
    async with octopis.connect(options["address"], credentials=credentials) as client:
        _say({"notifications": len(quotes)})
        await asyncio.to_thread(sys.stdin.readline)
        started = time.monotonic()
        await client.publish_many([*quotes, quotes[0] | END])  # a quote, as roles may ask for one
        _say({"started": started, "accepted": time.monotonic()})


async def pinger(options: dict[str, Any]) -> None:
    """Publish at one broker, receive at another, one after the other."""
    seconds = []
    async with (
        octopis.connect(options["publish_at"]) as source,
        octopis.connect(options["subscribe_at"]) as target,
        target.subscribe("ping >= 0") as notifications,
    ):
        await asyncio.sleep(0.5)  # until every broker knows the subscription
        for number in range(options["rounds"]):
            start = time.perf_counter()
            await source.publish({"ping": number})
            await anext(notifications)
            seconds.append(time.perf_counter() - start)
    _say({"median_ms": median(seconds) * 1000})


def _say(facts: dict[str, Any]) -> None:
    sys.stdout.write(msgspec.json.encode(facts).decode() + "\n")
    sys.stdout.flush()


def main() -> None:
    """Play the role that the command line names."""
    role, options = sys.argv[1], msgspec.json.decode(sys.argv[2])
    if role == "brokers":
        brokers(options)
    else:
        uvloop.run(
            {"subscriber": subscriber, "publisher": publisher, "pinger": pinger}[role](options)
        )


if __name__ == "__main__":
    main()
