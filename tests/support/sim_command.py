"""For tests of `octopis sim`: small scenarios in words, and what a run prints and leaves."""

from collections import Counter
from pathlib import Path

from octopis.scenario.folder import Scenario
from octopis.trace import RunSummary
from support.simulations import Row, rows

SMALL = ("--subscribers", "30", "--publishers", "3", "--notifications", "20")
BURST = (*SMALL, "--high-rate", "400")


def refused(run, *arguments: str) -> str:
    """Return the one sentence with which the command refuses."""
    code, printed, error = run(*arguments)
    assert (code, printed) == (2, "")
    assert error.startswith("octopis: ")
    assert error.count("\n") == 1
    return error.removeprefix("octopis: ").rstrip("\n")


def facts(printed: str) -> dict[str, str]:
    """Return the names and values of a summary as it is printed."""
    lines = [line.strip().partition("  ") for line in printed.splitlines()]
    return {name: value.strip() for name, _, value in lines if value}


def edit(old: str, new: str) -> None:
    """Change the scenario's document."""
    path = Path("scenario/scenario.toml")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def queue_of(trace: Path, source: str, target: str) -> Row:
    """Return the counts of one direction of a link."""
    (row,) = [
        row for row in rows(trace, "links") if (row["source"], row["target"]) == (source, target)
    ]
    return row


def assert_consistent(trace: Path, scenario: Scenario, summary: RunSummary) -> None:
    """Check that the tables of a trace, whole or partial, fit each other and the summary."""
    subscribers = {each.subscription: each for each in scenario.subscribers}
    notifications = {
        (scenario.publishers[publisher].name, sequence): attributes
        for batch in scenario.publications()
        for publisher, sequence, attributes in zip(
            batch.publishers, batch.sequences, batch.attributes, strict=True
        )
    }
    deliveries = rows(trace, "deliveries")
    assert len(deliveries) == summary.deliveries
    got = Counter((row["publisher"], row["sequence"], row["subscription"]) for row in deliveries)
    assert set(got.values()) == {1}, "nothing is delivered twice"
    for row in deliveries:
        subscriber = subscribers[row["subscription"]]
        assert row["broker"] == subscriber.broker.short
        assert subscriber.filter.matches(notifications[row["publisher"], row["sequence"]])
    publications = {(row["publisher"], row["sequence"]): row for row in rows(trace, "publications")}
    assert len(publications) == summary.notifications
    delivered = Counter((row["publisher"], row["sequence"]) for row in deliveries)
    for name, row in publications.items():
        assert row["deliveries"] == delivered[name]
        assert row["intended_ns"] <= row["accepted_ns"] <= row["completed_ns"]
    for row in deliveries:
        publication = publications.get((row["publisher"], row["sequence"]))
        if publication is not None:
            assert row["delivered_ns"] <= publication["completed_ns"]
            assert row["delivered_ns"] - row["delay_ns"] == publication["intended_ns"]
    assert len(rows(trace, "subscriptions")) == summary.subscriptions
    links = rows(trace, "links")
    assert sum(row["subscription_ims"] for row in links) == summary.subscription_ims
    assert sum(row["notification_ims"] for row in links) == summary.notification_ims
