"""What Prometheus would see: metrics over HTTP, read by its own parser, which takes no mistake."""

import urllib.request
from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.openmetrics.parser import text_string_to_metric_families

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"

Labels = frozenset[tuple[str, str]]


class Scrape(NamedTuple):
    """The samples of a scrape by name and labels, and the types of its metrics."""

    samples: Mapping[tuple[str, Labels], float]
    types: Mapping[str, str]
    text: str

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.samples}

    @property
    def series(self) -> set[tuple[str, Labels]]:
        return set(self.samples)

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of all samples of that name with these labels among theirs."""
        wanted = labels.items()
        found = [
            value
            for (known, its), value in self.samples.items()
            if known == name and wanted <= dict(its).items()
        ]
        assert found, f"there is no {name} with {labels}"
        return sum(found)


def fetch(url: str, accept: str = OPEN_METRICS, limit_s: float = 10.0) -> str:
    """Return the text at an address."""
    request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310 - our own
    with urllib.request.urlopen(request, timeout=limit_s) as answer:  # noqa: S310
        assert accept.partition(";")[0] in answer.headers["Content-Type"]
        text: str = answer.read().decode()
    return text


def scrape(url: str, limit_s: float = 10.0) -> Scrape:
    """Scrape an address as Prometheus does."""
    return read(fetch(url, limit_s=limit_s))


def read(text: str) -> Scrape:
    """Read what a scrape has brought."""
    families = list(text_string_to_metric_families(text))
    samples = {}
    for family in families:
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in samples, f"{key} is told twice"
            samples[key] = sample.value
    return Scrape(samples, {family.name: family.type for family in families}, text)
