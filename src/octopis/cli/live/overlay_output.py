"""How live overlays are shown."""

from typing import TYPE_CHECKING, Any

import numpy as np

from octopis.cli import output
from octopis.cli.live.disk_output import disk_facts, print_disks
from octopis.core.routing import Algorithm
from octopis.logs import one_line
from octopis.overlay.registry import OverlayState
from octopis.overlay.status import Statuses, totals

if TYPE_CHECKING:
    from octopis.overlay.player import Played  # it loads Arrow

_FEW = 30
_LINKS_SHOWN = 12
_BROKER_COLUMNS = (
    "broker",
    "address",
    "ready",
    "clients",
    "subscriptions",
    "published",
    "deliveries",
    "subscription IMs",
    "notification IMs",
    "sync IMs",
    "dropped",
    "cases",
)
_LINK_COLUMNS = (
    "from",
    "to",
    "kind",
    "up",
    "queue",
    "Q_in",
    "Q_out",
    "element",
    "overloaded",
    "dropped",
    "cut",
)


def print_started(state: OverlayState, *, detached: bool) -> None:
    """Print where to connect."""
    brokers, processes = len(state.addresses), len(state.processes)
    output.say(
        f"{state.name} is up: {brokers} brokers in {processes} processes, routing by "
        f"{state.algorithm}."
    )
    output.say(f"Connect to {state.url} or any other broker.")
    if state.credentials:
        output.say(
            f"Everybody logs in. Commands of yours take {state.credentials}; programs say "
            "credentials=... with it."
        )
    if state.gateway:
        output.say(f"In a browser, and for HTTP and WebSocket: {state.gateway}")
    if brokers <= _FEW:
        output.print_table("", ("broker", "address"), list(state.addresses.items()))
    else:
        output.say(f"All addresses are in {state.folder}/state.json.")
    if state.metrics:
        output.say(f"Metrics, one address for each process: {' '.join(state.metrics)}")
    ending = f"octopis overlay down {state.name}" if detached else "Ctrl-C"
    output.say(f"How it is: octopis overlay status. To stop it: {ending}.")


def print_overlays(running: list[OverlayState], ended: list[OverlayState]) -> None:
    """Print which overlays there are, the latest last."""
    if not running and not ended:
        output.say("No overlay runs: start one with octopis overlay up.")
        return
    rows = [
        (
            each.name,
            state,
            len(each.addresses),
            each.algorithm,
            each.url,
            str(each.pid),
            output.ago(each.started_ns),
        )
        for each, state in [
            *((each, "ended") for each in ended),
            *((each, "up" if each.ready else "starting") for each in running),
        ]
    ]
    columns = ("overlay", "state", "brokers", "algorithm", "first broker", "process", "started")
    output.print_table("Overlays", columns, rows)
    for each in ended:
        output.say(f"{each.name} ended without an orderly stop: its logs are in {each.folder}")


def print_status(name: str, statuses: Statuses, *, all_links: bool) -> None:
    """Print how an overlay is, its sums last: they stay in sight however many brokers it has."""
    output.print_table("Brokers", _BROKER_COLUMNS, map(_broker, statuses.items()))
    links = [
        _link(broker, target, link)
        for broker, status in statuses.items()
        for target, link in status.get("links", {}).items()
        if all_links or _is_telling(link)
    ]
    shown = "all links" if all_links else "links that are in use, overloaded or down"
    if links:
        output.print_table(f"Links: {shown}", _LINK_COLUMNS, links)
    else:
        output.say("No link is in use, overloaded or down; --links shows all.")
    for broker, status in statuses.items():
        if "error" in status:
            output.say(f"{broker}: {one_line(status['error'])}")
    print_disks(statuses)
    _print_totals(name, statuses)


def _print_totals(name: str, statuses: Statuses) -> None:
    total = totals(statuses)
    counters, drops = total["counters"], total["drops"]
    facts: list[tuple[str, object]] = [
        ("brokers", f"{total['brokers']}, {total['ready']} of them ready"),
        ("clients", total["clients"]),
        ("subscriptions", total["subscriptions"]),
        ("links", f"{total['links_up']} of {total['links']} directions up"),
        ("queued", f"{total['queued']:,} messages; {total['overloaded']} links overloaded"),
        ("published", total["published"]),
        ("deliveries", counters.get("deliveries", 0)),
        ("IMs", _ims(counters)),
        *_routing(statuses, total),
        *_delivery(total["delivery"]),
        *disk_facts(total["store"]),
        *_security(statuses),
        ("dropped", _drops(drops, counters)),
    ]
    if total["dead"]:
        facts.append(("dead, as neighbours see it", " ".join(total["dead"])))
    if total["backpressure"]:
        facts.append(("publishers wait for", " ".join(total["backpressure"])))
    output.print_facts(name, facts)


def _security(statuses: Statuses) -> list[tuple[str, object]]:
    """Return until when brokers can prove who they are, who has failed to, and what is broken."""
    said = {name: each["security"] for name, each in statuses.items() if "security" in each}
    if not said:
        return []
    first = min(said, key=lambda name: said[name]["certificate_days"])
    failed = sum(each["failed_logins"] for each in said.values())
    found: list[tuple[str, object]] = [
        ("certificates", f"the first ends in {said[first]['certificate_days']:.0f} days ({first})"),
        ("failed logins", f"{failed:,}"),
    ]
    for name, each in said.items():
        found += [(f"not in force at {name}", one_line(reason)) for reason in each["broken"]]
    return found


def _routing(statuses: Statuses, total: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what an algorithm has done that knows of load or of faults."""
    cases, counters = _cases(total["cases"]) or "none", total["counters"]
    if Algorithm.TNR.value not in {each.get("algorithm") for each in statuses.values()}:
        return [("cases of dynamic routing", cases)]
    around = total["gone_around"]
    more = f" and {len(around) - _LINKS_SHOWN} more" if len(around) > _LINKS_SHOWN else ""
    return [
        ("copies by reason", cases),
        ("links gone around", ", ".join(around[:_LINKS_SHOWN]) + more or "none"),
        ("rerouted from broken links", counters.get("rerouted", 0)),
        ("targets that could not be reached", counters.get("lost_without_route", 0)),
    ]


def _delivery(sums: dict[str, Any]) -> list[tuple[str, object]]:
    """Return what channels have done, and whom they wait for."""
    if not sums:
        return []
    found: list[tuple[str, object]] = [
        (
            "channels",
            f"{sums['kept']:,} under way, {sums['held_back']:,} held back, {sums['resent']:,} sent "
            f"again, {sums['duplicates']:,} dropped as known, {sums['given_up']:,} given up",
        )
    ]
    if sums["waits_for"]:
        found.append(("hosts that lack a window", " ".join(sums["waits_for"])))
    if sums["gone"]:
        found.append(("hosts that were given up", " ".join(sums["gone"])))
    return found


def print_played(title: str, played: "Played", *, as_json: bool) -> None:
    """Print what came of a play."""
    delays_ms = np.array(played.delays_ns, np.float64) / 1e6
    median_ms, p99_ms = np.percentile(delays_ms, (50, 99)) if len(delays_ms) else (0.0, 0.0)
    if as_json:
        output.print_json(
            {
                "notifications": played.notifications,
                "delivered": len(played.deliveries),
                "counters": played.counters,
                "gaps": played.gaps,
                "delay_ms": {"median": median_ms, "p99": p99_ms},
            }
        )
        return
    output.print_facts(
        title,
        [
            ("notifications", played.notifications),
            ("delivered", len(played.deliveries)),
            ("IMs", _ims(played.counters)),
            ("delay, median", f"{median_ms:,.3f} ms"),
            ("delay, 99th percentile", f"{p99_ms:,.3f} ms"),
            *(("gap", reason) for reason in played.gaps),
        ],
    )


def _ims(counters: dict[str, int]) -> str:
    kinds = ("subscription", "notification", "sync")
    return ", ".join(f"{kind}: {counters.get(f'{kind}_ims', 0):,}" for kind in kinds)


def _cases(cases: dict[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in cases.items() if count)


def _drops(drops: dict[str, int], counters: dict[str, int]) -> str:
    lost = counters.get("lost_on_down_links", 0) + counters.get("lost_without_route", 0)
    return (
        f"at full link queues: {drops.get('links', 0):,}, for slow clients: "
        f"{drops.get('clients', 0):,}; lost with links: {drops.get('links_cut', 0) + lost:,}, with "
        f"clients that left: {drops.get('clients_left', 0):,}"
    )


def _broker(item: tuple[str, dict[str, Any]]) -> tuple[object, ...]:
    broker, status = item
    if "error" in status:
        return (broker, status["address"], "no answer", *[""] * (len(_BROKER_COLUMNS) - 3))
    counters = status["counters"]
    return (
        broker,
        status["address"],
        status["ready"],
        len(status["clients"]),
        status["subscriptions"],
        status["published"],
        counters["deliveries"],
        counters["subscription_ims"],
        counters["notification_ims"],
        counters["sync_ims"],
        status["drops"]["links"] + status["drops"]["clients"],
        _cases(status["cases"]),
    )


def _is_telling(link: dict[str, Any]) -> bool:
    used = link["queue_length"] or link["q_in"] or link["q_out"]
    return bool(used or link["overloaded"] or link["dropped"] or not link["up"])


def _link(broker: str, target: str, link: dict[str, Any]) -> tuple[object, ...]:
    return (
        broker,
        target,
        link["kind"],
        link["up"],
        link["queue_length"],
        link["q_in"],
        link["q_out"],
        float(link["congestion_element"]),
        link["overloaded"],
        link["dropped"],
        link["lost_when_cut"],
    )
