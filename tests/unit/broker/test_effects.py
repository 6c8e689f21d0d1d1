from octopis.broker.effects import Effects
from octopis.broker.recorder import Recorder
from octopis.core.model import Notification
from octopis.core.routing import Deliver, Enqueue, NotificationMessage, Reason, Stored
from support.overlays import A0, B0

ONE = Notification({"x": 1})


class Output(Recorder):
    """A link, a client and a recorder in one: notes what it is given."""

    def __init__(self) -> None:
        self.given: list[object] = []

    def enqueue(self, messages: list[object], reasons: list[Reason]) -> None:
        self.given.append((messages, reasons))

    def deliver(self, notification: Notification, subscriptions: list[str]) -> None:
        self.given.append((notification, subscriptions))

    def stored(self, subscription: str) -> None:
        self.given.append(subscription)

    def pump(self) -> None:
        self.given.append("pump")


def test_effects_are_carried_out_in_order_and_leave_with_the_next_flush():
    link, client, recorder = Output(), Output(), Output()
    effects = Effects({B0: link}, {"me": client}, recorder)
    message = NotificationMessage(ONE)
    effects.carry_out(
        [
            Stored("s", A0),
            Deliver("me", ONE, ["s"]),
            Enqueue(B0, [message], [Reason.MATCH]),
            Deliver("me", ONE, ["t"]),
        ]
    )
    assert recorder.given == ["s"]
    assert link.given == [([message], [Reason.MATCH])]
    assert client.given == [(ONE, ["s"]), (ONE, ["t"])]
    effects.flush()
    effects.flush()
    assert (link.given[-1], client.given[-1]) == ("pump", "pump")
    assert (link.given.count("pump"), client.given.count("pump")) == (1, 1)


def test_output_that_has_only_an_answer_is_flushed_and_one_that_is_gone_is_not():
    here, gone = Output(), Output()
    effects = Effects({}, {}, Output())
    effects.add(here)
    effects.add(gone)
    effects.forget(gone)
    effects.flush()
    assert (here.given, gone.given) == (["pump"], [])
