"""One simulated broker: drives a real `routing.Broker` and its channels, as a live one would.

It may stand still (as by SIGSTOP): then all that comes waits, timers too, until it goes on.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from octopis.core.delivery.channels import LOOK_NS, Channels
from octopis.core.delivery.posts import Ack, Post, way_of
from octopis.core.model import BrokerId, Notification
from octopis.core.routing import Algorithm, Broker
from octopis.core.routing.algorithms.tnr import Crossroads
from octopis.core.routing.messages import Deliver, Effect, Enqueue, Message, NotificationMessage
from octopis.simulator.soak.agenda import Agenda
from octopis.simulator.soak.links import Links
from octopis.simulator.soak.log import Delivered, Log, Told
from octopis.simulator.soak.plan import MS, Plan

_COMPARE_NS = 250 * MS

MakeChannels = Callable[..., Channels]


class Watcher(Protocol):
    """Who looks on: the checkers."""

    def sends_again(self, node: "Node", messages: list[NotificationMessage]) -> None:
        """A node sends these again."""

    def hears(self, node: "Node", ack: Ack) -> None:
        """A node hears an acknowledgement."""

    def looks(self, node: "Node") -> None:
        """A node has looked at its channels."""


class Node:
    """One life of a broker."""

    def __init__(  # noqa: PLR0913, PLR0917 - one call, in world.py
        self,
        broker: BrokerId,
        life: int,
        plan: Plan,
        agenda: Agenda,
        links: Links,
        log: Log,
        watcher: Watcher,
        make: MakeChannels,
        *,
        is_first: bool,
    ) -> None:
        self.id = broker
        self.life = self.stream = life
        self.channels = make(broker, plan.scot, life, plan.options)
        self.core = Broker(
            broker,
            plan.scot,
            Algorithm.TNR,
            congestion_threshold=plan.congestion_threshold,
            links_up=is_first,
            life=life,
            channels=self.channels,
        )
        self.is_still = self.is_dead = False
        self._brokers = plan.scot.brokers
        self._here = Crossroads(broker, plan.scot, self.core.link_status)
        self._is_prompt = plan.is_prompt
        self._agenda, self._links, self._log, self._watcher = agenda, links, log, watcher
        self._waiting: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._will_look = False
        agenda.after(_COMPARE_NS + self.channels.place * MS, self._do, self._compare)

    @property
    def has_settled(self) -> bool:
        """Whether it may take clients."""
        return not self.is_still and not self.core.unheard

    # What comes, at once or when the broker goes on

    def _do(self, action: Callable[..., None], *arguments: Any) -> None:
        if self.is_dead:
            return
        if self.is_still:
            self._waiting.append((action, arguments))
            return
        action(*arguments)
        if not self._will_look and not self.channels.is_quiet:
            self._will_look = True
            self._agenda.after(LOOK_NS, self._do, self._look)

    def go_on(self, *, looks_first: bool) -> None:
        """Do all that has waited; what is overdue may come before what has come in."""
        self.is_still = False
        if looks_first:
            self._do(self._look)
        while self._waiting and not self.is_still:
            action, arguments = self._waiting.popleft()
            self._do(action, *arguments)

    def arrives(self, neighbour: BrokerId, messages: list[Message]) -> None:
        """Take in messages."""
        self._do(self._take_in, neighbour, messages)

    def post_arrives(self, post: Post) -> None:
        """Take in a post."""
        self._do(self._pass_on, post)

    def link_up(self, neighbour: BrokerId) -> None:
        """Know that the link is there."""
        self._do(self._up, neighbour)

    def link_down(self, neighbour: BrokerId) -> None:
        """Know that the link is not there any more."""
        self._do(self._down, neighbour)

    def publish(self, batch: list[Notification]) -> None:
        """Route what a client publishes."""
        self._do(self._publish, batch)

    def subscribe(self, client: str, subscription: str, filter_: Any) -> None:
        """Let a client subscribe."""
        now = self._agenda.now
        self._do(
            lambda: self._carry_out(
                self.core.client_subscribes(client, subscription, filter_, None, now)
            )
        )

    def leave(self, client: str) -> None:
        """Let a client go."""
        self._do(lambda: self._carry_out(self.core.client_leaves(client, self._agenda.now)))

    # What is done about it

    def _take_in(self, neighbour: BrokerId, messages: list[Message]) -> None:
        now = self._agenda.now
        for message in messages:
            if isinstance(message, NotificationMessage):
                about = message.origin, message.number, message.targets, message.tried
                self._log.note(now, f"{neighbour} > {self.id} {about}")
        self._carry_out(self.core.messages_arrived(neighbour, messages, now))

    def _pass_on(self, post: Post) -> None:
        if post.to != self.channels.place:
            self._send_post(post)
            return
        now = self._agenda.now
        self._log.note(now, post)
        if isinstance(post, Ack):
            self._watcher.hears(self, post)
        self.channels.arrived(post, now)
        if self._is_prompt:
            self._send_again_and_deliver()

    def _publish(self, batch: list[Notification]) -> None:
        for effects in self.core.publishes_in_parts(batch, self._agenda.now):
            self._carry_out(effects)
        if self._is_prompt:
            self._send_posts()

    def _up(self, neighbour: BrokerId) -> None:
        self._log.note(self._agenda.now, f"{self.id} up {neighbour}")
        self._carry_out(self.core.link_up(neighbour, self._agenda.now))

    def _down(self, neighbour: BrokerId) -> None:
        unsent = self._links.wires[self.id, neighbour].take_away()
        self._log.note(self._agenda.now, f"{self.id} down {neighbour} {len(unsent)}")
        self._carry_out(self.core.link_down(neighbour, unsent, self._agenda.now))

    def _compare(self) -> None:
        self._carry_out(self.core.compare(self._agenda.now))
        self._agenda.after(_COMPARE_NS, self._do, self._compare)

    def _look(self) -> None:
        self._will_look = False
        self.channels.look(self._agenda.now)
        self._see_to_channels()
        self._watcher.looks(self)

    def _see_to_channels(self) -> None:
        """Do what a driver owes its channels."""
        self._send_posts()
        self._send_again_and_deliver()

    def _send_again_and_deliver(self) -> None:
        now = self._agenda.now
        again = self.channels.take_again()
        if again:
            self._watcher.sends_again(self, again)
            self._carry_out(self.core.send_again(again, now))
        released = self.channels.take_in_order()
        if released:
            self._carry_out(self.core.deliver(released))
        for missed in self.channels.take_missed():
            of = self._brokers[missed.place]
            self._log.told.append(Told(self.id, of, missed.count, now))
            self._log.tell(now, f"{self.id} tells its clients: {missed.count} of {of} are missing")

    def _send_posts(self) -> None:
        for post in self.channels.take_posts(self._agenda.now):
            if isinstance(post, Ack) and post.last is not None:
                known = self.id, self.life, self._brokers[post.to], post.stream
                self._log.begun.add(known)
            self._send_post(post)

    def _send_post(self, post: Post) -> None:
        way = way_of(self._here, post, self._agenda.now)
        if way is None:
            self._log.count("posts without a way")
        else:
            self._links.post(self.id, way[0].link, way[1])

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        now = self._agenda.now
        for effect in effects:
            if isinstance(effect, Enqueue):
                self._links.enqueue(self.id, effect.link, effect.messages)
            elif isinstance(effect, Deliver):
                attributes = effect.notification.attributes
                name, topic = (str(attributes["p"]), int(attributes["n"])), int(attributes["topic"])
                got = Delivered(name, topic, effect.client, self.id, self.life, now)
                self._log.delivered.append(got)
                self._log.note(now, f"{got.client} gets {name}")

    # What links ask

    def sees(self, neighbour: BrokerId) -> bool:
        """Tell whether it takes the link to a neighbour to be up."""
        return self.core.link_status[neighbour].is_up

    def went(self, neighbour: BrokerId, count: int, dropped: int = 0) -> None:
        """Count messages that have left a queue, or were dropped at its end."""
        if count:
            self.core.messages_left(neighbour, count, self._agenda.now)
        if dropped:
            self.core.messages_dropped(neighbour, dropped, self._agenda.now)
