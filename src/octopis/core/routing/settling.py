"""Whether every living broker knows every subscription that any broker has accepted before.

The broker that is asked (the origin) sends an inquiry, which every broker passes on past its queues
on first hearing. Each broker then sees to it that its own changes so far are known everywhere: it
makes a mark (marks.py), unless there was no change since its last. It reports, on the way that the
inquiry came, which neighbours are up and who has confirmed its mark, and does so again when
there is news. The origin is done when everybody whom anyone reports as up has reported, and has
confirmed the marks of all others. What must be known is fixed when a broker first hears of the
inquiry, so changes after that hold up nothing.

Links break and brokers start anew meanwhile. So the inquiry goes round again and again, with those
who have to mark *again*, as some have not confirmed; and those who have to mark *anew*, as a broker
has started since their last mark was made, and may have forgotten, or made others forget, what was
confirmed before. Nobody compares clocks: brokers report how long ago things were.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

import msgspec

from octopis.core.model import BrokerId
from octopis.core.routing.broker import Broker
from octopis.core.routing.marks import Confirmed, Marks
from octopis.core.routing.messages import Effect, Marked
from octopis.core.topology import SCOT
from octopis.errors import NotSettled, OctopisError

ROUND_NS = 500_000_000
"""How long an inquiry takes at least before it goes round again."""

_REMEMBERED_NS = 30_000_000_000
"""A broker's inquiry is over by then, and none of its copies is under way."""

_MARK_AGAIN_NS = 4 * ROUND_NS
"""Marks are seldom lost and often slow: a second one too soon would only make them slower."""

_FORGET_NS = 10 * ROUND_NS
NO_MARK = -1


class Inquiry(msgspec.Struct, frozen=True):
    """A question of `origin`, in its so-many-th round; `again` and `anew` are brokers, as bits."""

    origin: BrokerId
    number: int
    round: int
    again: int = 0
    anew: int = 0


class Report(msgspec.Struct, frozen=True):
    """What a broker answers to an inquiry: who is up beside it, and who knows what it has accepted.

    `mark_age_ms` is how long ago the mark was made that `known` speaks of, or NO_MARK where there
    is nothing to know; `uptime_ms` how long ago the broker has started.
    """

    origin: BrokerId
    number: int
    round: int
    broker: BrokerId
    up: int
    known: int
    uptime_ms: int
    mark_age_ms: int


@dataclass(slots=True)
class _Heard:
    """An inquiry that was heard: where from, and which own mark it asks for."""

    number: int
    round: int
    way: BrokerId | None
    wanted: int | None
    made_ns: int
    at_ns: int
    told: int | None = None


@dataclass(slots=True)
class _Asked:
    """An own inquiry that goes round."""

    number: int
    round: int = 0
    sent_ns: list[int] = field(default_factory=list)
    reports: dict[BrokerId, tuple[Report, int]] = field(default_factory=dict)
    requests: dict[Hashable, int] = field(default_factory=dict)


class Settling:
    """One broker's part in all inquiries.

    It is told what arrives past the queues and what the broker says of marks (`Marked`). The driver
    carries out `effects` at once after each call, sends what `take` returns some time later, and
    gives `answers`; it calls `look` at `next_ns`. Times are in nanoseconds, and never go back.
    """

    def __init__(self, core: Broker, scot: SCOT, first_number: int, now_ns: int) -> None:
        self._core = core
        self._scot = scot
        self._own_bit = scot.bit(core.id)
        self._everybody = (1 << len(scot.brokers)) - 1
        self._started_ns = now_ns
        self._marks = Marks(core.id, first_number)
        self._marked_changes = 0
        self._number = first_number
        self._heard: dict[BrokerId, _Heard] = {}
        self._asked: _Asked | None = None
        self._waiting: dict[Hashable, int] = {}
        self._passing: dict[tuple[BrokerId, BrokerId], Report] = {}
        self._inquiries: list[tuple[BrokerId, Inquiry]] = []
        self._effects: list[Effect] = []
        self._answers: list[tuple[Hashable, OctopisError | None]] = []

    # Own requests

    def ask(self, request: Hashable, limit_ns: int, now_ns: int) -> None:
        """Have `request` answered when all is settled, or with NotSettled after `limit_ns`."""
        self._waiting[request] = now_ns + limit_ns
        if self._asked is None:
            self._begin(now_ns)

    def forget(self, request: Hashable) -> None:
        """Nobody waits for an answer any more."""
        self._waiting.pop(request, None)
        if self._asked is not None:
            self._asked.requests.pop(request, None)

    @property
    def next_ns(self) -> int | None:
        """When to `look` at the latest."""
        asked = self._asked
        if asked is None:
            return None
        deadlines = [*asked.requests.values(), *self._waiting.values()]
        return min([asked.sent_ns[-1] + ROUND_NS, *deadlines])

    def look(self, now_ns: int) -> None:
        """End the own inquiry where all is settled or time is up; send it round again if need be.

        Requests that came after an inquiry had begun wait for the next.
        """
        while (asked := self._asked) is not None:
            missing, silent, again, anew = self._open()
            if not missing | anew:
                self._answers += [(request, None) for request in asked.requests]
                asked.requests.clear()
            self._give_up(missing or anew, now_ns)
            if asked.requests:
                is_only_old = anew and not silent and asked.round == 1
                if is_only_old or now_ns >= asked.sent_ns[-1] + ROUND_NS:
                    self._go_round(again, anew, now_ns)
                return
            self._asked = None
            if self._waiting:
                self._begin(now_ns)

    def _begin(self, now_ns: int) -> None:
        self._number += 1
        self._asked = _Asked(self._number, requests=self._waiting)
        self._waiting = {}
        self._go_round(0, 0, now_ns)

    def _go_round(self, again: int, anew: int, now_ns: int) -> None:
        asked = self._asked
        assert asked is not None, "there is no inquiry"
        asked.round += 1
        asked.sent_ns.append(now_ns)
        self._hear(Inquiry(self._core.id, asked.number, asked.round, again, anew), None, now_ns)

    def _open(self) -> tuple[int, int, int, int]:
        """Return as bits who has not confirmed, who is silent, who must mark again, who anew."""
        asked = self._asked
        assert asked is not None, "there is no inquiry"
        living, reports = self._living(asked)
        started_ns = [at - 1_000_000 * report.uptime_ms for report, at in reports]
        missing = again = anew = 0
        for report, _ in reports:
            bit = self._scot.bit(report.broker)
            missing |= living & ~report.known
            if living & ~report.known:
                again |= bit
            made_ns = asked.sent_ns[report.round - 1] - 1_000_000 * report.mark_age_ms
            if report.mark_age_ms != NO_MARK and made_ns <= max(started_ns):
                anew |= bit
        silent = living & ~sum(self._scot.bit(report.broker) for report, _ in reports)
        return missing | silent, silent, again, anew

    def _living(self, asked: _Asked) -> tuple[int, list[tuple[Report, int]]]:
        """Return whom anyone has named who is named himself, and the reports of these."""
        living, found = self._own_bit, []
        waiting = dict(asked.reports)
        while named := [b for b in waiting if self._scot.bit(b) & living]:
            for broker in named:
                found.append(waiting.pop(broker))
                living |= found[-1][0].up
        return living, found

    def _give_up(self, missing: int, now_ns: int) -> None:
        assert self._asked is not None, "there is no inquiry"
        brokers = tuple(broker.short for broker in self._scot.brokers_in(missing))
        for requests in (self._asked.requests, self._waiting):
            for request in [each for each, until_ns in requests.items() if until_ns <= now_ns]:
                del requests[request]
                self._answers.append((request, NotSettled(brokers)))

    # What comes

    def inquired(self, link: BrokerId, inquiry: Inquiry, now_ns: int) -> None:
        """Take in an inquiry of another broker."""
        known = self._heard.get(inquiry.origin)
        newer = (
            known is None
            or (inquiry.number, inquiry.round) > (known.number, known.round)
            # It has been restarted and begins lower, as its clock was set back.
            or now_ns > known.at_ns + _REMEMBERED_NS
        )
        if newer and inquiry.origin != self._core.id:
            self._hear(inquiry, link, now_ns)

    def marked(self, marked: Marked) -> None:
        """Take in that a mark has come."""
        self._marks.came(marked.host, marked.number, marked.link)
        if marked.is_known:
            self._marks.confirm(Confirmed(marked.host, marked.number, self._own_bit))

    def confirmed(self, confirmed: Confirmed) -> None:
        """Take in a confirmation of others."""
        self._marks.confirm(confirmed)

    def reported(self, report: Report, now_ns: int) -> None:
        """Take in a report, for the own inquiry or to be passed on."""
        if report.origin != self._core.id:
            self._passing[report.origin, report.broker] = report
            return
        asked = self._asked
        if asked is None or report.number != asked.number or report.round > asked.round:
            return  # it is late: its inquiry is over
        older = asked.reports.get(report.broker)
        if older is None or older[0].round <= report.round:
            asked.reports[report.broker] = report, now_ns

    def _hear(self, inquiry: Inquiry, link: BrokerId | None, now_ns: int) -> None:
        heard = self._heard.get(inquiry.origin)
        if heard is None or heard.number != inquiry.number:
            if self._core.changes > self._marked_changes:
                self._mark(now_ns)
            wanted = self._marks.newest if self._core.changes else None
            heard = _Heard(inquiry.number, 0, link, wanted, self._marks.made_ns, now_ns)
            self._heard[inquiry.origin] = heard
        heard.round, heard.way, heard.at_ns, heard.told = inquiry.round, link, now_ns, None
        if heard.wanted is not None and inquiry.anew & self._own_bit:
            self._mark(now_ns)
            heard.wanted, heard.made_ns = self._marks.newest, now_ns
        elif inquiry.again & self._own_bit and now_ns >= self._marks.made_ns + _MARK_AGAIN_NS:
            self._mark(now_ns)
        up = self._core.link_status.up - {link}
        self._inquiries += [(neighbour, inquiry) for neighbour in sorted(up)]

    def _mark(self, now_ns: int) -> None:
        self._marked_changes = self._core.changes
        self._effects += self._core.mark(self._marks.make(now_ns), now_ns)

    # What goes

    def effects(self) -> list[Effect]:
        """Return what to carry out at once: own marks."""
        found, self._effects = self._effects, []
        return found

    def take(self, now_ns: int) -> list[tuple[BrokerId, Inquiry | Confirmed | Report]]:
        """Return what to send past the queues, each with its link."""
        self._report(now_ns)
        out: list[tuple[BrokerId, Inquiry | Confirmed | Report]] = [*self._inquiries]
        out += self._marks.take()
        for (origin, _), report in self._passing.items():
            heard = self._heard.get(origin)
            if heard is not None and heard.number == report.number and heard.way is not None:
                out.append((heard.way, report))
        self._inquiries, self._passing = [], {}
        return out

    def answers(self) -> list[tuple[Hashable, OctopisError | None]]:
        """Return the requests that have an answer now: None where all is settled."""
        found, self._answers = self._answers, []
        return found

    def _report(self, now_ns: int) -> None:
        """Make a report for every inquiry that has not been told what is known now."""
        up = sum(map(self._scot.bit, self._core.link_status.up))
        for origin, heard in list(self._heard.items()):
            if now_ns > heard.at_ns + _FORGET_NS:
                del self._heard[origin]
                continue
            known, age_ms = self._everybody, NO_MARK
            if heard.wanted is not None:
                known = self._own_bit | self._marks.known_by(heard.wanted)
                age_ms = (now_ns - heard.made_ns) // 1_000_000 + 1  # rather too old than too new
            if known != heard.told:
                heard.told = known
                asked = origin, heard.number, heard.round
                uptime_ms = (now_ns - self._started_ns) // 1_000_000
                self.reported(Report(*asked, self._core.id, up, known, uptime_ms, age_ms), now_ns)
        wanted = [each.wanted for each in self._heard.values() if each.wanted is not None]
        self._marks.forget_before(min([self._marks.newest, *wanted]))
