"""Where spans go: the settings of `[tracing]`."""

from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from octopis.client.address import Address
from octopis.errors import InvalidConfiguration

_SPANS_PATH = "/v1/traces"


class SpanOptions(Struct, frozen=True):
    """Where the spans of traced notifications go, and how many may wait for that."""

    endpoint: Annotated[
        str, Meta(description="spans go there by OTLP/HTTP, as to http://127.0.0.1:4318; empty: no")
    ] = ""
    service_name: Annotated[
        Annotated[str, Meta(min_length=1)], Meta(description="what the brokers are called there")
    ] = "octopis"
    queue: Annotated[
        int, Meta(ge=1, le=10**6, description="spans that wait for it in a process; more are lost")
    ] = 4_096
    interval_s: Annotated[
        float, Meta(gt=0, le=60, description="spans are sent together, so often")
    ] = 1.0
    timeout_s: Annotated[
        float, Meta(gt=0, le=60, description="what it has not taken within it is lost")
    ] = 5.0

    def __post_init__(self) -> None:
        if "@" in self.endpoint:  # what stands before it may be a secret, and is not repeated
            raise InvalidConfiguration(
                "tracing.endpoint has no place for a user or a password: what a collector wants to "
                "know goes into the variable OTEL_EXPORTER_OTLP_HEADERS"
            )
        if self.endpoint and not self._is_address:
            raise InvalidConfiguration(
                "tracing.endpoint is the address of a collector, as http://127.0.0.1:4318 or "
                f"https://collector.example, not {self.endpoint!r}"
            )

    @property
    def _is_address(self) -> bool:
        try:
            place = urlsplit(self.endpoint)
            is_place = bool(place.hostname) and place.port != 0
        except ValueError:  # a port that is none, half an address of IPv6
            return False
        return (
            is_place and place.scheme in {"http", "https"} and not (place.query or place.fragment)
        )

    @property
    def is_on(self) -> bool:
        """Whether anything is traced."""
        return bool(self.endpoint)

    @property
    def url(self) -> str:
        """Where spans are posted."""
        base = self.endpoint.rstrip("/")
        return base if base.endswith(_SPANS_PATH) else base + _SPANS_PATH

    @property
    def is_exposed(self) -> bool:
        """Whether others could read spans on their way."""
        place = urlsplit(self.endpoint)
        return place.scheme == "http" and not Address(place.hostname or "").is_loopback
