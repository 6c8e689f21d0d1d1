"""The scene itself: an overlay with a process for each broker, and one of them is killed.

A publisher publishes steadily. After a while the victim's process gets SIGKILL, and publishing goes
on until the overlay has started it again and it has been back for a while. Whoever subscribes notes
when what came.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from octopis.broker.settings import OverlayConfiguration
from octopis.client.client import Client
from octopis.client.streams import Notifications
from octopis.core.model import BrokerId
from octopis.core.routing import Algorithm
from octopis.core.routing.options import RoutingOptions
from octopis.demo.fault.cast import FILTER, Cast, FaultPlan, attributes, cast_of
from octopis.demo.fault.moment import FaultMoment, VictimState
from octopis.demo.fault.outcome import FaultOutcome, outcome_of
from octopis.demo.fault.record import FaultRecord
from octopis.demo.rounds import overlay_up
from octopis.demo.watching import Rates
from octopis.errors import OctopisError, OperationFailed
from octopis.logs import without_warnings
from octopis.overlay.settings import NamedOverlay, format_overlay
from octopis.overlay.status import ask_all, totals
from octopis.overlay.supervisor import OverlayOrder, Supervisor

BACK_S = 60.0
"""A broker that is not back by then will not come."""

_WATCHED_S = 1.0
"""Publishing goes on for so long after the broker is back: what comes twice would come then."""

_QUIET_S = 3.0
"""Where nothing has come for so long after the last publication, nothing will."""

_LOOK_S = 0.2
_SHOW_S = 0.15
_STEP_S = 0.02


def fault_order(plan: FaultPlan, folder: Path) -> OverlayOrder:
    """Return the order for an overlay under TNR in which one broker can die alone.

    It leaves no trace: an overlay that writes one is not to lose a process, and stops.
    """
    scot = plan.topology.scot
    configuration = OverlayConfiguration(scot=scot, routing=RoutingOptions(Algorithm.TNR))
    return OverlayOrder(
        configuration=format_overlay(NamedOverlay(plan.topology, configuration)),
        state=str((folder / "state").absolute()),
        processes=len(scot.brokers),
        first_port=0,
    )


async def play_fault(
    plan: FaultPlan,
    folder: Path,
    on_moment: Callable[[FaultMoment], None] = lambda _: None,
    door: socket.socket | None = None,
) -> FaultOutcome:
    """Start an overlay, kill a broker of it under load, stop it, and return what came of it.

    Where there is a `door`, a gateway listens there meanwhile. Raises OperationFailed where the
    broker does not come back.
    """
    supervisor = Supervisor(fault_order(plan, folder), door)
    # Its death is part of the play.
    with without_warnings(Supervisor.__module__):
        async with overlay_up(supervisor) as state:
            scene = _Scene(plan, cast_of(plan.topology), state.addresses, on_moment)
            return await scene.run(supervisor.kill)


class _Scene:
    """One play of the scene, through brokers at `addresses`."""

    def __init__(
        self,
        plan: FaultPlan,
        cast: Cast,
        addresses: Mapping[str, str],
        on_moment: Callable[[FaultMoment], None],
    ) -> None:
        self._plan = plan
        self._cast = cast
        self._addresses = addresses
        self._on_moment = on_moment
        self._record = FaultRecord(cast)
        self._victim = VictimState.RUNS
        self._known = 0
        self._is_enough = False
        self._rates = Rates()
        self._ims_per_s: dict[str, float] = {}

    async def run(self, kill: Callable[[BrokerId], None]) -> FaultOutcome:
        """Play the scene, and return what came of it."""
        try:
            return await self._run(kill)
        except* OctopisError as failures:
            failure: BaseException = failures
            while isinstance(failure, BaseExceptionGroup):  # the first says it; others follow
                failure = failure.exceptions[0]
        raise failure

    async def _run(self, kill: Callable[[BrokerId], None]) -> FaultOutcome:
        record, cast = self._record, self._cast
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
            streams = {each: await self._subscribe(stack, each) for each in cast.subscribers}
            publisher = await self._client(stack, "publisher", cast.host)
            background = [
                group.create_task(self._read(each, stream)) for each, stream in streams.items()
            ]
            record.begin_ns = time.time_ns()
            background += [group.create_task(self._look()), group.create_task(self._show())]
            publishing = group.create_task(self._publish(publisher))
            await asyncio.sleep(self._plan.kill_s)
            record.killed_ns = time.time_ns()
            kill(cast.victim)
            self._victim = VictimState.DEAD
            await self._whole_again()
            await self._played_for(self._plan.least_s)
            self._is_enough = True
            await publishing
            await self._came_to_rest()
            for task in background:
                task.cancel()
            await self._count()
        return outcome_of(record, self._plan.per_s)

    # The clients

    async def _client(self, stack: AsyncExitStack, name: str, broker: BrokerId) -> Client:
        address = f"octopis://{self._addresses[broker.short]}"
        return await stack.enter_async_context(Client(address, client_id=name, reconnect_s=0))

    async def _subscribe(self, stack: AsyncExitStack, broker: BrokerId) -> Notifications:
        client = await self._client(stack, f"subscriber at {broker.short}", broker)
        stream = await stack.enter_async_context(client.subscribe(FILTER))
        await client.settled()
        return stream

    async def _read(self, subscriber: BrokerId, stream: Notifications) -> None:
        got = self._record.got.setdefault(subscriber, [])
        async for batch in stream.batches():
            now_ns = time.time_ns()
            got += [(each.sequence, now_ns) for each in batch]

    async def _publish(self, publisher: Client) -> None:
        """Publish whatever is due, until it is enough."""
        published, step_ns = self._record.published_ns, 10**9 // self._plan.per_s
        while not self._is_enough:
            now_ns = time.time_ns()
            due_ns = self._record.begin_ns + len(published) * step_ns
            due = range(due_ns, now_ns + 1, step_ns)
            if due:
                first = len(published)
                published += due
                await publisher.publish_many(
                    (attributes(number), b"", at_ns) for number, at_ns in enumerate(due, first)
                )
            else:
                await asyncio.sleep((due_ns - now_ns) / 1e9)

    # The broker that dies

    async def _whole_again(self) -> None:
        """Wait until the victim runs again and knows every subscription; note when."""
        record, victim = self._record, self._cast.victim.short
        address = {victim: self._addresses[victim]}
        while time.time_ns() - record.killed_ns < BACK_S * 1e9:
            found = (await ask_all(address))[victim]
            now_ns = time.time_ns()
            # An answer may be one that the broker gave before it died.
            began_ns = 0 if "error" in found else now_ns - round(found["uptime_s"] * 1e9)
            if began_ns > record.killed_ns:
                record.back_ns = record.back_ns or began_ns
                self._victim, self._known = VictimState.BACK, found["subscriptions"]
                if _is_whole(found, len(self._cast.subscribers)):
                    record.whole_ns, self._victim = now_ns, VictimState.WHOLE
                    return
            await asyncio.sleep(_STEP_S)
        raise OperationFailed(f"{self._cast.victim} was killed, and not back within {BACK_S:g} s")

    async def _played_for(self, least_s: float) -> None:
        """Wait until the broker has been back for a while, and the scene was long enough."""
        until_ns = max(
            self._record.whole_ns + _WATCHED_S * 1e9, self._record.begin_ns + least_s * 1e9
        )
        await asyncio.sleep(max(0.0, until_ns - time.time_ns()) / 1e9)

    async def _came_to_rest(self) -> None:
        """Wait until everybody has the last notification, or nothing comes any more."""
        last = len(self._record.published_ns)
        quiet_since, seen = time.monotonic(), -1
        while time.monotonic() - quiet_since < _QUIET_S:
            if all(got and got[-1][0] == last for got in self._record.got.values()):
                break
            if seen != self._record.delivered:
                quiet_since, seen = time.monotonic(), self._record.delivered
            await asyncio.sleep(_STEP_S)
        await asyncio.sleep(_LOOK_S)  # for what comes twice

    # What is seen of it

    async def _look(self) -> None:
        """Ask brokers again and again how much they send; one that does not run is left out."""
        while True:
            places = dict(self._addresses)
            if self._victim in (VictimState.DEAD, VictimState.BACK):
                del places[self._cast.victim.short]
            found = await ask_all(places)
            answered = {name: status for name, status in found.items() if "error" not in status}
            self._ims_per_s = self._rates.per_s(time.time_ns(), answered)
            await asyncio.sleep(_LOOK_S)

    async def _show(self) -> None:
        """Tell how it is going, again and again."""
        record = self._record
        while True:
            now_ns = time.time_ns()
            self._on_moment(
                FaultMoment(
                    elapsed_s=(now_ns - record.begin_ns) / 1e9,
                    published=len(record.published_ns),
                    delivered=record.delivered,
                    rates=record.rates(self._cast.subscribers, record.begin_ns, now_ns),
                    ims_per_s=self._ims_per_s,
                    victim=self._victim,
                    since_kill_s=(now_ns - record.killed_ns) / 1e9 if record.killed_ns else None,
                    known=self._known,
                    longest_gap_ms=record.gap_so_far_ms(),
                )
            )
            await asyncio.sleep(_SHOW_S)

    async def _count(self) -> None:
        """Note what brokers have counted."""
        statuses = await ask_all(self._addresses)
        self._record.around_fault = totals(statuses)["cases"].get("around fault", 0)
        counters = statuses[self._cast.victim.short].get("counters", {})
        self._record.passed_on = counters.get("notification_ims", 0)


def _is_whole(status: dict[str, Any], subscriptions: int) -> bool:
    """Tell whether a broker is ready, and knows as much as the others."""
    return bool(
        status["ready"] and not status["unheard"] and status["subscriptions"] == subscriptions
    )
