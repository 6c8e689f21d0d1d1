"""Changes of tables that wait for a link, ahead of its notifications.

Both ends of a link must agree on what they have told each other, so no change can be dropped. But a
later change of a subscription takes the place of an earlier one that still waits; and where the
neighbour has never heard of a subscription, its end takes back its beginning. So clients that come
and go leave no more behind than what there is. Past a mark, brokers everywhere take no requests for
more changes, until half of them are gone.
"""

from collections import OrderedDict
from collections.abc import Callable
from itertools import count

from octopis.core.routing import Message
from octopis.core.routing.messages import Subscribe, TableSnapshot, Unsubscribe
from octopis.core.wire.link import Encoded, encode_message
from octopis.core.wire.subscriptions import snapshot_parts

Key = str | int
"""What a change is about: a subscription's id; or a number, where nothing takes its place."""


class WaitingChanges:
    """What a neighbour has still to be told, in order.

    `changed` is called with True when more than `mark` wait, and with False when half are gone.
    """

    def __init__(self, mark: int, changed: Callable[[bool], None] = lambda _: None) -> None:
        self._mark = mark
        self._changed = changed
        self._waiting: OrderedDict[Key, Message] = OrderedDict()
        self._ends: set[Key] = set()
        self._told: set[Key] = set()
        self._parts = 0  # of snapshots, all but the last: a table is told whatever its length is
        self._numbers = count()
        self.is_past_mark = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: Message) -> tuple[Key, int]:
        """Let a change wait; return what it is about, and how many are obsolete by it.

        These are the earlier one, or both: it and the one that it takes back.
        """
        if isinstance(message, Subscribe):
            key: Key = message.subscription.id
            self._ends.discard(key)
        elif isinstance(message, Unsubscribe):
            key = message.id
            if key not in self._told:
                return key, 1 + self._forget(key)
            self._ends.add(key)
        else:
            key = next(self._numbers)
            if isinstance(message, TableSnapshot):
                self._told.update(each.subscription.id for each in message.subscriptions)
                *first, message = snapshot_parts(message)
                for part in first:
                    self._waiting[key] = part
                    key = next(self._numbers)
                self._parts += len(first)
        obsolete = int(key in self._waiting)
        self._waiting[key] = message  # in the earlier one's place, if there is one
        self._look()
        return key, obsolete

    def take(self, bytes_max: float) -> tuple[list[Encoded], int]:
        """Remove and return changes of at most so many bytes in all, but at least one.

        With them, how many messages that were: a snapshot in parts is one, with its last part.
        """
        taken: list[Encoded] = []
        size = messages = 0
        while self._waiting:
            key, message = self._waiting.popitem(last=False)
            encoded = encode_message(message)
            if size + len(encoded[1]) > bytes_max and taken:
                self._waiting[key] = message
                self._waiting.move_to_end(key, last=False)
                break
            size += len(encoded[1])
            taken.append(encoded)
            if isinstance(message, TableSnapshot) and not message.last:
                self._parts -= 1
            else:
                messages += 1
            if key in self._ends:
                self._ends.discard(key)
                self._told.discard(key)
            elif isinstance(key, str):
                self._told.add(key)
        self._look()
        return taken, messages

    def clear(self) -> None:
        """Forget everything: the link is down, and the neighbour begins anew."""
        self._waiting.clear()
        self._ends.clear()
        self._told.clear()
        self._parts = 0
        self._look()

    def _forget(self, key: Key) -> int:
        if self._waiting.pop(key, None) is None:
            return 0
        self._look()
        return 1

    def _look(self) -> None:
        waiting = len(self._waiting) - self._parts
        if not self.is_past_mark and waiting > self._mark:
            self.is_past_mark = True
            self._changed(True)
        elif self.is_past_mark and waiting <= self._mark // 2:
            self.is_past_mark = False
            self._changed(False)
