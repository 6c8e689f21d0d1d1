"""One round: the scenario through a live overlay under one algorithm."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from octopis.demo.overlay import overlay_document, overlay_order, overlay_up
from octopis.demo.slowed_link import SlowedLink, direction
from octopis.demo.watching import Snapshot, Watcher
from octopis.demo.workload import SPEED
from octopis.errors import OperationFailed
from octopis.live.playing import Play, Played
from octopis.routing import Algorithm
from octopis.workload.folder import Scenario


@dataclass(frozen=True)
class Round:
    """What came of a round."""

    algorithm: Algorithm
    played: Played
    snapshots: list[Snapshot]
    longest_queue: int
    longest_link: str
    over_slowed: int
    """Notifications that went over the slowed link."""

    @property
    def cases(self) -> dict[str, int]:
        """How often each case of dynamic routing came up."""
        return self.snapshots[-1].cases

    @property
    def publishers_waited(self) -> bool:
        """Whether a congestion notice was seen, which lets publishers wait."""
        return any(each.publishers_wait for each in self.snapshots)

    def slowed_queue(self) -> list[tuple[float, int]]:
        """Return the slowed link's queue length by seconds since publishing began."""
        begin_ns = self.played.begin_ns
        return [((each.seen_ns - begin_ns) / 1e9, each.slowed_queue) for each in self.snapshots]


async def play_round(
    scenario: Scenario,
    link: SlowedLink,
    algorithm: Algorithm,
    folder: Path,
    told: Callable[[Snapshot], None] = lambda _: None,
) -> Round:
    """Start an overlay, play the scenario through it, stop it, and return what came of it."""
    document = overlay_document(scenario.topology, link, algorithm)
    watcher = Watcher(link, told)
    async with overlay_up(overlay_order(document, folder)) as state:
        played = await Play(scenario, state.addresses, speed=SPEED, watch=watcher.see).run()
    queues, carried = read_links(folder / "trace")
    longest = max(queues, key=lambda name: queues[name])
    return Round(
        algorithm, played, watcher.snapshots, queues[longest], longest, carried[link.short]
    )


def read_links(trace: Path) -> tuple[dict[str, int], dict[str, int]]:
    """Return each link's longest queue, and the notifications it carried, as its broker counted."""
    longest, carried = {}, {}
    for path in sorted(trace.glob("*/links.parquet")):
        for row in pq.read_table(path).to_pylist():
            name = direction(row["source"], row["target"])
            longest[name], carried[name] = row["queue_length_max"], row["notification_ims"]
    if not longest:
        raise OperationFailed(f"the brokers have left no counts of their links in {trace}")
    return longest, carried
