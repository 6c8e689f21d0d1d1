import asyncio
from itertools import count

import pytest

from octopis.client.unanswered import Unanswered
from octopis.core.wire.client import AnswerItem, encode_publish
from octopis.core.wire.control import Refusal
from octopis.errors import ConnectionLost, InvalidNotification
from support.live import run_live


class Line:
    """A connection that only notes what is sent."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def tell(self, frame: bytes) -> None:
        self.frames.append(frame)


def test_answers_reach_their_publications():
    async def work() -> None:
        unanswered, line = Unanswered(count(4), resend=False), Line()
        first, second = unanswered.send([b"a", b"b"], line), unanswered.send([b"c"], line)
        assert line.frames == [encode_publish(4, [b"a", b"b"]), encode_publish(5, [b"c"])]
        assert unanswered.answered(AnswerItem(4, None, 3))
        assert unanswered.answered(AnswerItem(5, Refusal.of(InvalidNotification("no"))))
        assert (await first).unsent == 3
        with pytest.raises(InvalidNotification, match="no"):
            await second
        assert not unanswered.answered(AnswerItem(5))

    run_live(work())


@pytest.mark.parametrize(("resend", "resumed"), [(False, True), (True, True), (True, False)])
def test_publications_are_sent_again_as_they_were(resend: bool, resumed: bool):
    async def work() -> None:
        unanswered, line, other = Unanswered(count(1), resend=resend), Line(), Line()
        answers = [unanswered.send([each], line) for each in (b"a", b"b", b"c")]
        unanswered.answered(AnswerItem(1))
        answers[1].cancel()  # the caller does not wait any more
        unanswered.cut_off("cut", 10)
        unanswered.connected(other, "cut", resumed=resumed)
        assert other.frames == line.frames[2:]
        assert unanswered.answered(AnswerItem(2))  # the broker had taken it before
        assert unanswered.answered(AnswerItem(3))
        assert (await answers[2]).request == 3

    run_live(work())


def test_without_the_session_publications_are_lost_and_counted():
    async def work() -> None:
        unanswered, line, other = Unanswered(count(1), resend=False), Line(), Line()
        answer = unanswered.send([b"a", b"b"], line)
        unanswered.connected(other, "cut", resumed=False)
        with pytest.raises(ConnectionLost, match="cut; 2 publications may or may not"):
            await answer
        assert not other.frames

    run_live(work())


def test_publications_wait_for_the_session_for_its_time():
    async def work() -> None:
        patient, other = Unanswered(count(1), resend=True), Unanswered(count(1), resend=False)
        waits, fails = patient.send([b"a"], Line()), other.send([b"a"], Line())
        for each in (patient, other):
            each.cut_off("cut", 0.01)
        with pytest.raises(ConnectionLost, match="cut"):
            await fails
        await asyncio.sleep(0.05)
        assert not waits.done()
        assert other.answered(AnswerItem(1))  # the session goes on after all
        patient.fail("closed")
        with pytest.raises(ConnectionLost, match="closed"):
            await waits

    run_live(work())
