"""Writes an overlay's configuration as TOML: complete, so that it can be read, changed and kept."""

from dataclasses import asdict
from enum import Enum

from octopis.live.configuration import QueueBounds
from octopis.live.document import NamedOverlay
from octopis.topology import format_topology
from octopis.topology.toml_text import encode_text


def format_overlay(overlay: NamedOverlay) -> str:
    """Return TOML text that `parse_overlay` reads back as the same overlay."""
    configuration = overlay.configuration
    parts = [
        f"insecure = {_toml_value(configuration.insecure)}  "
        "# true: brokers may listen where other machines reach them\n",
        format_topology(overlay.topology),
        _table(
            "routing",
            {
                "algorithm": configuration.algorithm,
                "congestion_threshold": float(configuration.congestion_threshold),
                "window_ms": float(configuration.window_ms),
            },
        ),
        _queues("queues", configuration.queues, configuration.link_policy),
        _queues("client_queues", configuration.client_queues, configuration.client_policy),
        _table("limits", asdict(configuration.limits)),
    ]
    for (source, target), shape in configuration.shapes.items():
        values: dict[str, object] = {"source": source.short, "target": target.short}
        if shape.bandwidth is not None:
            values["bandwidth_bytes_per_s"] = float(shape.bandwidth)
        values["latency_ms"] = float(shape.latency_ms)
        parts.append(_table("[links.shape]", values))
    for broker in configuration.scot.brokers:
        address = configuration.address(broker)
        parts.append(_table(f"brokers.{encode_text(broker.short)}", address._asdict()))
    return "\n".join(parts)


def _queues(name: str, bounds: QueueBounds, policy: Enum) -> str:
    return _table(name, {**asdict(bounds), "policy": policy})


def _table(name: str, values: dict[str, object]) -> str:
    lines = [f"[{name}]", *(f"{key} = {_toml_value(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def _toml_value(value: object) -> str:
    if isinstance(value, Enum):
        return encode_text(str(value.value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return encode_text(value)
    return repr(value)
