"""Runs attacks one after the other, each on a fresh overlay, and measures before, while, after.

The unrelated clients sit in the first cluster, the attacker at the host of some of them. The link
that is slow and the broker that starts anew are at the other end, where nobody of them passes.
"""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import uvloop

from octopis.benchmarks.attack import crowds
from octopis.benchmarks.attack.attackers import ATTACKS, Attack, Field
from octopis.benchmarks.attack.measures import PHASES, Attacked
from octopis.benchmarks.attack.overlay import RunningOverlay, running_overlay
from octopis.benchmarks.attack.raw import Met
from octopis.benchmarks.attack.witnesses import Witnesses
from octopis.core.model import BrokerId
from octopis.core.model.suggestion import did_you_mean
from octopis.core.topology import SCOT, NamedTopology, format_topology
from octopis.core.topology.factors import AcyclicFactor, ConnectivityFactor
from octopis.errors import InvalidConfiguration, OperationFailed

SLOW_BYTES_PER_S = 20_000.0
_HOSTS_MAX = 4
_WARM_UP_S = 0.5
_LOADED_WARM_UP_S = 5.0
"""Where the brokers have just learned many subscriptions."""

_GRACE_S = 10.0
_SAMPLE_S = 0.2
_TELL_S = 60.0
"""So much longer the attack lasts at most, until a broker that has started anew knows all."""

_PREPARE_S = 600.0
_STOP_S = 10.0


@dataclass(frozen=True)
class Setting:
    """How attacks are run."""

    topology: NamedTopology
    processes: int
    seconds: float
    rate: float
    scale: float = 1.0
    code: Path | None = None
    """Where the source of another version is, whose brokers are attacked."""


def run(names: Sequence[str], setting: Setting) -> Iterator[Attacked]:
    """Yield what each attack did, one after the other; raise where there is no such attack."""
    for name in names:
        if name not in ATTACKS:
            hint = did_you_mean(name, ATTACKS) or f": there are {', '.join(ATTACKS)}"
            raise InvalidConfiguration(f"there is no attack {name!r}{hint}")
    if any(ATTACKS[name].is_secured for name in names):
        crowds.need_security()  # said before anything starts
    places = [_place(ATTACKS[name], setting) for name in names]
    for name, place in zip(names, places, strict=True):
        yield uvloop.run(_attacked(name, place, setting))


@dataclass(frozen=True)
class Place:
    """An overlay, who is where, and which broker is left alone by all unrelated clients."""

    scot: SCOT
    configuration: str
    processes: int
    hosts: list[BrokerId]
    spare: BrokerId


def _place(attack: Attack, setting: Setting) -> Place:
    topology, processes = setting.topology, setting.processes
    if attack.restarts:  # each broker in a process of its own, and none of them without another
        row = SCOT(AcyclicFactor("abc", [("a", "b"), ("b", "c")]), ConnectivityFactor.complete(1))
        topology, processes = NamedTopology("row-of-3", "", row), 3
    scot = topology.scot
    spare = scot.brokers[-1]
    needs_spare = attack.restarts or attack.slow_link
    first = [b for b in scot.brokers if b.cluster == scot.brokers[0].cluster]
    free = [b for b in first if not (needs_spare and b == spare)]
    if needs_spare and len(scot.brokers) <= 2:
        raise InvalidConfiguration(
            "this attack needs an overlay with three brokers or more: one of them is left alone"
        )
    if len(free) < 2:
        free = [b for b in scot.brokers if not (needs_spare and b == spare)]
    count = min(_HOSTS_MAX, len(free))
    hosts = [free[round(n * (len(free) - 1) / max(1, count - 1))] for n in range(count)]
    text = format_topology(topology)
    if attack.slow_link:
        source = scot.neighbours(spare)[0]
        text += (
            f'\n[[links.shape]]\nsource = "{source.short}"\ntarget = "{spare.short}"\n'
            f"bandwidth_bytes_per_s = {SLOW_BYTES_PER_S}\n"
        )
    if attack.limits:
        text += f"\n[limits]\n{attack.limits}"
    return Place(scot, text, processes, hosts, spare)


@contextlib.contextmanager
def _secured(attack: Attack, place: Place) -> Iterator[tuple[str, Path | None]]:
    """Give an overlay's configuration and its clients' credentials, with security if need be."""
    if not attack.is_secured:
        yield place.configuration, None
        return
    with TemporaryDirectory() as parent:
        folder = Path(parent) / "security"
        credentials = crowds.secured(folder, place.scot.brokers)
        text = f"{place.configuration}\n[security]\nfolder = {json.dumps(str(folder))}\n"
        yield text, credentials


async def _attacked(name: str, place: Place, setting: Setting) -> Attacked:
    with _secured(ATTACKS[name], place) as (configuration, credentials):
        started = running_overlay(configuration, place.processes, setting.code, credentials)
        async with started as overlay:
            return await _attacked_there(name, place, setting, overlay, credentials)


async def _attacked_there(
    name: str, place: Place, setting: Setting, overlay: RunningOverlay, credentials: Path | None
) -> Attacked:
    attack = ATTACKS[name]
    loop = asyncio.get_running_loop()
    urls = [overlay.url(host.short) for host in place.hosts]
    witnesses = Witnesses(urls, setting.rate, credentials)
    field = Field(
        url=overlay.url(place.hosts[0].short),
        elsewhere=overlay.url(place.spare.short),
        subscriptions=witnesses.subscriptions,
        scale=setting.scale,
    )
    async with (
        witnesses.subscribed() as clients,
        _attacker(name, field) as attacker,
        _memory(overlay) as samples,
    ):
        held = len(witnesses.subscriptions) + await attacker.ready()
        await overlay.hold(held, _PREPARE_S)
        witnesses.start(clients)
        await asyncio.sleep(_LOADED_WARM_UP_S if attack.restarts else _WARM_UP_S)
        times = [loop.time()]
        await asyncio.sleep(setting.seconds)
        times.append(loop.time())
        attacker.go()
        knows = asyncio.create_task(_told_anew(overlay, attack, place.spare, held))
        await asyncio.sleep(setting.seconds)
        await asyncio.wait([knows], timeout=_TELL_S)
        told = knows.result() if knows.done() else f"; it lacks some after {_TELL_S:g} s"
        knows.cancel()
        how = f"{await attacker.stop()}{told}"
        times.append(loop.time())
        await asyncio.sleep(setting.seconds)
        times.append(loop.time())
        await witnesses.finish(_GRACE_S)
        notes = list(witnesses.notes)
        if overlay.has_ended:
            notes.append("the whole overlay has ended")
    phases = {
        phase: witnesses.measured(start, end, _most(samples, start, end))
        for phase, start, end in zip(PHASES, times, times[1:], strict=False)
    }
    return Attacked(name, attack.what, how, phases, tuple(notes))


async def _told_anew(overlay: RunningOverlay, attack: Attack, spare: BrokerId, held: int) -> str:
    """Let a broker start anew where the attack needs it; say when it knows everything again."""
    if not attack.restarts:
        return ""
    start = asyncio.get_running_loop().time()
    overlay.kill_process_of(spare.short)
    await overlay.hold(held, _PREPARE_S, spare.short)
    return f"; it knew them all after {asyncio.get_running_loop().time() - start:.1f} s"


class AttackerProcess:
    """The process of an attacker, which does what it is told in lines."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self._name = name
        self._process = process

    async def ready(self) -> int:
        """Wait until it is prepared; return how many subscriptions it has made for that."""
        async with asyncio.timeout(_PREPARE_S):
            return msgspec.json.decode(await self._line(), type=Met).accepted

    def go(self) -> None:
        """Tell it to attack."""
        self._tell("go\n")

    async def stop(self) -> Met:
        """Tell it to stop; return how the brokers have taken it."""
        self._tell("stop\n")
        try:
            async with asyncio.timeout(_STOP_S):
                return msgspec.json.decode(await self._line(), type=Met)
        except TimeoutError as failure:
            raise OperationFailed(f"the attacker of {self._name} does not stop") from failure

    async def _line(self) -> bytes:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise OperationFailed(f"the attacker of {self._name} ended too early")
        return line

    def _tell(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(word.encode())


@asynccontextmanager
async def _attacker(name: str, field: Field) -> AsyncIterator[AttackerProcess]:
    """Run an attacker's process meanwhile; it also ends when its input does."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "octopis.benchmarks.attack.attackers", name),
        msgspec.json.encode(field).decode(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield AttackerProcess(name, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@asynccontextmanager
async def _memory(overlay: RunningOverlay) -> AsyncIterator[list[tuple[float, float]]]:
    """Look now and then how much memory the largest process of brokers has."""
    samples: list[tuple[float, float]] = []

    async def look() -> None:
        loop = asyncio.get_running_loop()
        while True:
            if (mb := overlay.memory_mb()) is not None:
                samples.append((loop.time(), mb))
            await asyncio.sleep(_SAMPLE_S)

    looking = asyncio.create_task(look())
    try:
        yield samples
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


def _most(samples: Sequence[tuple[float, float]], start: float, end: float) -> float | None:
    return max((mb for at, mb in samples if start <= at < end), default=None)
