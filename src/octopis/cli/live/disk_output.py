"""How disks of brokers and durable subscriptions are shown."""

from typing import Any

from octopis.cli import output
from octopis.core.wire.durable import DurableInfo
from octopis.overlay.durables import Hosted
from octopis.overlay.status import Statuses

_DISK_COLUMNS = (
    "broker",
    "disk",
    "bytes",
    "records",
    "unsynced bytes",
    "syncs",
    "ms a sync",
    "slowest ms",
    "damages",
)
_DURABLE_COLUMNS = (
    "durable subscription",
    "host",
    "lag",
    "bytes",
    "acknowledged",
    "newest",
    "state",
)
_LISTED_COLUMNS = (
    "name",
    "host",
    "lag",
    "bytes",
    "oldest",
    "newest",
    "policy",
    "state",
    "last used",
    "filter",
)


# In the status of an overlay


def print_disks(statuses: Statuses) -> None:
    """Print how disks and durable subscriptions are, where there are any."""
    stored = {broker: status for broker, status in statuses.items() if "store" in status}
    if stored:
        rows = [_disk(broker, status["store"]) for broker, status in stored.items()]
        output.print_table("Disks", _DISK_COLUMNS, rows)
    durables = [
        (name, broker, each["lag"], each["bytes"], each["acknowledged"], each["position"], state)
        for broker, status in stored.items()
        for name, each in status["durables"].items()
        for state in [
            state_of(suspended=each["suspended"], dropped=each["dropped"], ends_ns=each["ends_ns"])
        ]
    ]
    if durables:
        output.print_table("Durable subscriptions", _DURABLE_COLUMNS, sorted(durables))


def _disk(broker: str, store: dict[str, Any]) -> tuple[object, ...]:
    return (
        broker,
        store["state"],
        store["bytes"],
        store["records"],
        store["unsynced_bytes"],
        store["syncs"],
        float(store["sync_ms_mean"]),
        float(store["sync_ms_max"]),
        store["damages"],
    )


def disk_facts(sums: dict[str, Any]) -> list[tuple[str, object]]:
    """Return the sums over all disks, where there are any."""
    if not sums:
        return []
    found: list[tuple[str, object]] = [
        ("on disk", f"{sums['bytes']:,} bytes, {sums['records']:,} records"),
        ("durable subscriptions", f"{sums['durables']:,}, not acknowledged: {sums['lag']:,}"),
    ]
    if sums["full"]:
        found.append(("disks that are full", " ".join(sums["full"])))
    if sums["failed"]:
        found.append(("disks that have failed", " ".join(sums["failed"])))
    if sums["damages"]:
        found.append(("damaged places on disk", sums["damages"]))
    return found


# One by one


def state_of(*, suspended: bool, dropped: int, ends_ns: int = 0, moved_to: str = "") -> str:
    """Say in a few words what is out of the ordinary with a durable subscription."""
    said = [
        f"moved to {moved_to}" if moved_to else "",
        "suspended" if suspended else "",
        f"{dropped:,} dropped" if dropped else "",
        f"unused: ends {output.in_time(ends_ns)}" if ends_ns else "",
    ]
    return ", ".join(filter(None, said)) or "ok"


def _state(info: DurableInfo) -> str:
    about = {"dropped": info.dropped, "ends_ns": info.ends_ns}
    return state_of(suspended=info.suspended, moved_to=info.moved_to, **about)


def print_durables(called: str, found: list[Hosted]) -> None:
    """Print the durable subscriptions of an overlay, one a line."""
    if not found:
        output.say(
            f"{called} has no durable subscription: octopis sub FILTER --durable NAME makes one."
        )
        return
    output.print_table("Durable subscriptions", _LISTED_COLUMNS, map(_listed, found))


def _listed(hosted: Hosted) -> tuple[object, ...]:
    info = hosted.info
    return (
        info.name,
        hosted.host,
        info.lag,
        info.bytes,
        info.acked + 1 if info.lag else "-",
        info.end,
        info.policy,
        _state(info),
        output.ago(info.used_ns),
        info.filter,
    )


def print_durable(hosted: Hosted, address: str) -> None:
    """Print all that is known of a durable subscription."""
    info = hosted.info
    kept = f"{info.acked + 1:,} to {info.end:,}" if info.lag else "nothing"
    output.print_facts(
        info.name,
        [
            ("filter", info.filter),
            ("host", f"{hosted.host}, at octopis://{address}"),
            ("kept", f"{kept}; {info.bytes:,} bytes"),
            ("lag", f"{info.lag:,} not acknowledged"),
            ("acknowledged", f"up to {info.acked:,}"),
            ("when the disk is full", info.policy),
            ("state", _state(info)),
            ("for", "all who know its name" if info.shared else "those who have its secret"),
            ("made", output.ago(info.created_ns)),
            ("last used", output.ago(info.used_ns)),
        ],
    )


def durable_document(hosted: Hosted) -> dict[str, object]:
    """Return all that is known of a durable subscription, as JSON has it."""
    info = hosted.info
    return {
        "name": info.name,
        "host": hosted.host,
        "filter": info.filter,
        "policy": info.policy,
        "lag": info.lag,
        "bytes": info.bytes,
        "acknowledged": info.acked,
        "oldest": info.acked + 1 if info.lag else None,
        "newest": info.end,
        "dropped": info.dropped,
        "suspended": info.suspended,
        "moved_to": info.moved_to or None,
        "shared": info.shared,
        "epoch": info.epoch,
        "created_ns": info.created_ns,
        "used_ns": info.used_ns,
        "ends_ns": info.ends_ns or None,
    }
