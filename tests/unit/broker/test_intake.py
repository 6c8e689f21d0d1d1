import asyncio
from collections import deque
from typing import Any

from octopis.broker.clients.intake import BATCH_MAX, Intake
from octopis.broker.pace import Pace
from octopis.broker.recorder import Recorder
from octopis.broker.settings import Limits
from octopis.core.routing import Effect
from octopis.core.routing.outbox import Counters
from octopis.core.wire.client import PublishRequest, SettledRequest, UnsubscribeRequest
from octopis.core.wire.published import Published, encode_published
from octopis.errors import InvalidNotification
from support.live import run_live, until


class Home:
    """All that an intake is connected with: notes what it is given."""

    def __init__(self, batch_max: int) -> None:
        self.id = "here"
        self.batch_max = self.at_once_max = batch_max
        self.held: frozenset[str] = frozenset()
        self.change_brokers: list[str] = []
        self.batches: list[list[Published]] = []
        self.changes: list[str] = []
        self.left: list[str] = []
        self.reaches_all = True
        self.unheard: list[str] = []
        self.table = self
        self.counters = Counters()
        self.stops_after: int | None = None

    # As the routing core

    def publishes_in_parts(self, batch: list[Published], now_ns: int) -> list[list[Effect]]:
        assert now_ns
        self.batches.append(batch)
        if self.stops_after is not None and len(self.batches) >= self.stops_after:
            self.held = frozenset(["everywhere"])
        return [[]]

    def matching(self, part: list[Published]) -> list[list[str]]:
        return [["everywhere"]] * len(part)

    # As its backpressure

    @property
    def holds(self) -> bool:
        return bool(self.held)

    @property
    def version(self) -> frozenset[str]:
        return self.held

    def is_held(self, entry: str) -> bool:
        return entry in self.held

    # As the routing core again

    def client_unsubscribes(self, client: str, subscription: str, now_ns: int) -> list[Effect]:
        assert now_ns
        self.changes.append(f"{client} {subscription}")
        return []

    def subscriptions_of(self, client: str) -> list[str]:
        self.left.append(client)
        return []

    def tidy(self) -> None:
        """As a table with nothing to tidy."""

    # As its effects

    def carry_out(self, effects: list[Effect]) -> None:
        assert effects == []

    def add(self, session: "Session") -> None:
        session.is_to_be_flushed = True

    def forget(self, session: "Session") -> None:
        session.is_to_be_flushed = False

    def flush(self) -> None:
        pass

    @property
    def routed(self) -> list[str]:
        return [f"{each.publisher} {each.sequence}" for batch in self.batches for each in batch]


class Asked:
    """What an intake is told to ask others, as changes of its home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def ask(self, session: "Session", request: SettledRequest) -> None:
        self._home.changes.append(f"{session.client} asks {request.request}")

    def leave(self, session: "Session") -> None:
        self._home.left.append(f"asked by {session.client}")


class Session:
    """What an intake knows of a client."""

    def __init__(self, client: str) -> None:
        self.client = self.name = client
        self.host = "127.0.0.1"
        self.source = b""
        self.permit = None
        self.undelivered = self.dropped = 0
        self.is_to_be_flushed = False
        self.changes: deque[UnsubscribeRequest | SettledRequest] = deque()
        self.publications: deque[PublishRequest] = deque()
        self.publications_bytes = 0
        self.answers: list[tuple[int, object]] = []
        self.failures: list[object] = []
        self.connection = self

    def asks(self, request: int, numbers: range, *, attributes: object = None) -> None:
        items = [
            encode_published(attributes or {"x": n}, b"", self.client, n, 0)  # type: ignore[arg-type]
            for n in numbers
        ]
        body = b"\xdd" + len(items).to_bytes(4, "big") + b"".join(items)
        self.publications.append(PublishRequest(request, body))
        self.publications_bytes += len(body)

    def answer(self, request: int, error: object = None, unsent: int = 0, unheard: int = 0) -> None:
        assert not unsent
        assert not unheard
        self.answers.append((request, error))

    def forget(self, subscription: str) -> None:
        """The intake says so before it asks the core."""

    def finish_publication(self) -> None:
        self.publications_bytes -= len(self.publications.popleft().notifications)

    def fail(self, failure: object) -> None:
        self.failures.append(failure)


def with_intake(work, batch_max: int = BATCH_MAX) -> None:
    """Run work(an intake that is open, what it is connected with)."""

    async def whole() -> None:
        home = Home(batch_max)
        clients: dict[str, Session] = {}
        made: Any = Intake
        asked = Asked(home)
        limits = Limits(frame_max=2_000)
        intake = made(home, home, home, Recorder(), asked, Pace(), clients=clients, limits=limits)
        intake.open()
        await work(intake, home)

    run_live(whole())


def test_what_came_together_is_routed_together():
    async def work(intake: Intake, home: Home) -> None:
        one, other = Session("one"), Session("other")
        for session in (one, other):
            for request in range(3):
                session.asks(request, range(request, request + 1))
                intake.add(session)
        await until(lambda: len(other.answers) == 3)
        assert len(home.batches) == 1
        assert one.answers == [(0, None), (1, None), (2, None)]
        assert one.publications_bytes == 0
        assert intake.waiting == 0
        assert one.is_to_be_flushed

    with_intake(work)


def test_order_of_a_client_is_kept_and_no_client_shuts_others_out():
    async def work(intake: Intake, home: Home) -> None:
        greedy, modest = Session("greedy"), Session("modest")
        greedy.asks(1, range(10))
        greedy.asks(2, range(10, 20))
        modest.asks(1, range(2))
        intake.add(greedy)
        intake.add(modest)
        await until(lambda: len(greedy.answers) == 2)
        assert [each for each in home.routed if "greedy" in each] == [
            f"greedy {number}" for number in range(20)
        ]
        assert home.routed.index("modest 1") < 8
        assert {len(batch) for batch in home.batches} <= {4, 2}

    with_intake(work, batch_max=4)


def test_nothing_passes_while_publishers_wait_and_all_later():
    async def work(intake: Intake, home: Home) -> None:
        session = Session("one")
        session.asks(1, range(10))
        home.stops_after = 2
        intake.add(session)
        await until(lambda: len(home.batches) == 2)
        assert len(home.routed) == 8  # in the middle of a request
        assert session.answers == []
        assert intake.waiting == 1
        home.held, home.stops_after = frozenset(), None
        intake.wake()
        await until(lambda: session.answers)
        assert len(home.routed) == 10

    with_intake(work, batch_max=4)


def test_whoever_is_dear_rests_and_others_go_on_meanwhile(monkeypatch):
    monkeypatch.setattr(
        "octopis.broker.clients.turns.TURN_S", 0.0
    )  # all turns take long, and are dear
    monkeypatch.setattr("octopis.broker.clients.turns.DEAR_S", 0.0)

    async def work(intake: Intake, home: Home) -> None:
        rests: list[tuple[Any, ...]] = []
        intake._turns._call_later = lambda *each: rests.append(each)
        dear, modest = Session("dear"), Session("modest")
        dear.asks(1, range(1))
        intake.add(dear)
        await until(lambda: dear.answers)
        dear.asks(2, range(1, 2))
        intake.add(dear)  # whoever rests cannot ask for another turn
        modest.asks(1, range(2))
        intake.add(modest)
        await until(lambda: modest.answers)
        assert home.routed == ["dear 0", "modest 0", "modest 1"]
        assert intake.waiting == 1
        _, has_rested, session = rests[0]
        has_rested(session)
        await until(lambda: len(dear.answers) == 2)
        assert home.routed[-1] == "dear 1"
        assert intake.waiting == 0

    with_intake(work)


def test_a_turn_takes_in_a_few_of_a_new_client_and_then_more():
    async def work(intake: Intake, home: Home) -> None:
        session = Session("one")
        session.asks(1, range(28))
        intake._turns._clock = lambda: 0.0  # whatever it is, it costs nothing
        intake.add(session)
        await until(lambda: session.answers)
        assert [len(batch) for batch in home.batches] == [4, 8, 16]

    with_intake(work)


def test_refused_request_does_not_stop_the_next():
    async def work(intake: Intake, home: Home) -> None:
        session = Session("one")
        session.asks(1, range(1), attributes={"": 1})
        session.asks(2, range(1), attributes={"x": "y" * 2_000})
        session.asks(3, range(1))
        intake.add(session)
        await until(lambda: len(session.answers) == 3)
        (first, no_name), (second, too_long), (third, good) = session.answers
        assert isinstance(no_name, InvalidNotification)
        assert "more than 1,000" in str(too_long)
        assert (first, second, third, good) == (1, 2, 3, None)
        assert home.routed == ["one 0"]

    with_intake(work)


def test_nonsense_ends_the_connection_and_nothing_more_of_it_is_looked_at():
    async def work(intake: Intake, home: Home) -> None:
        session = Session("one")
        session.publications.append(PublishRequest(1, b"\xc1"))
        session.asks(2, range(1))
        intake.add(session)
        await until(lambda: session.failures)
        assert (home.routed, session.answers) == ([], [])

    with_intake(work)


def test_changes_take_turns_and_wait_while_too_many_wait_somewhere():
    async def work(intake: Intake, home: Home) -> None:
        one, other = Session("one"), Session("other")
        for request in range(32):
            one.changes.append(UnsubscribeRequest(request, f"s{request}"))
        other.changes.append(UnsubscribeRequest(0, "s0"))
        home.change_brokers = ["far away"]
        intake.add(one)
        intake.add(other)
        one.asks(99, range(1))
        intake.add(one)  # publications may pass
        await until(lambda: one.answers)
        assert home.changes == []
        home.change_brokers = []
        intake.wake()
        await until(lambda: len(home.changes) == 32 + 1)
        assert home.changes[:3] == ["one s0", "other s0", "one s1"]

    with_intake(work)


def test_nothing_is_taken_in_before_it_is_open_and_after_it_is_closed():
    async def work(intake: Intake, home: Home) -> None:
        session = Session("one")
        intake.close()
        session.asks(1, range(1))
        session.changes.append(UnsubscribeRequest(2, "s"))
        intake.add(session)
        await asyncio.sleep(0.02)
        assert (home.routed, home.changes) == ([], [])
        intake.open()
        await until(lambda: len(session.answers) == 2)
        assert (home.routed, home.changes) == (["one 0"], ["one s"])

    with_intake(work)


def test_requests_of_a_client_that_is_gone_are_forgotten():
    async def work(intake: Intake, home: Home) -> None:
        session = Session("one")
        intake.arrive(session)
        session.asks(1, range(10))
        session.changes.append(UnsubscribeRequest(0, "s0"))
        home.stops_after = 1
        intake.add(session)
        await until(lambda: home.batches)
        intake.leave(session, "it is gone")
        home.held, home.stops_after = frozenset(), None
        intake.wake()
        assert intake.waiting == 0
        assert len(home.routed) == 4
        assert home.left == ["asked by one", "one"]
        intake.leave(session, "it is gone")  # said twice
        assert home.left == ["asked by one", "one"]

    with_intake(work, batch_max=4)


def test_settled_waits_for_what_its_client_has_asked_before_and_is_answered_later():
    async def work(intake: Intake, home: Home) -> None:
        session = Session("one")
        intake.arrive(session)
        session.changes += [UnsubscribeRequest(1, "s"), SettledRequest(2, 10)]
        intake.add(session)
        await until(lambda: len(home.changes) == 2)
        assert home.changes == ["one s", "one asks 2"]
        assert session.answers == [(1, None)]

    with_intake(work)
