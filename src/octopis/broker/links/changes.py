"""Changes of tables that wait for a link, ahead of its notifications.

Both ends of a link must agree on what they have told each other, so no change can be dropped. But a
later change of a subscription takes the place of an earlier one that still waits; and where the
neighbour has never heard of a subscription, its end takes back its beginning. So clients that come
and go leave no more behind than what there is. Past a mark, brokers everywhere take no requests for
more changes, until half of them are gone.

Where hosts number their changes (target routing), others hear of them on other ways, too: there an
end has to be told in any case. See `host_changes`.
"""

from collections import OrderedDict
from collections.abc import Callable
from itertools import count

from octopis.broker.links.host_changes import HostChangeRuns, HostTables
from octopis.core.routing import Message
from octopis.core.routing.messages import (
    HeardVersions,
    HostChange,
    HostTable,
    Subscribe,
    TableSnapshot,
    Unsubscribe,
)
from octopis.core.wire.link import Encoded, encode_message
from octopis.core.wire.subscriptions import host_table_parts, snapshot_parts

Key = str | int | tuple[int, str | int]
"""What a change is about: a subscription's id; or a number, where nothing takes its place. What has
two takes the place of an earlier one behind all others."""

_TABLE = -1


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
        self._parts = 0  # of tables, all but the last: a table is told whatever its length is
        self._numbers = count()
        self._runs = HostChangeRuns()
        self._tables = HostTables()
        self._heard_versions: Key = -1
        self.is_past_mark = False

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, message: Message) -> tuple[Key, int]:
        """Let a change wait; return what it is about, and how many are obsolete by it.

        These are the earlier one, or both: it and the one that it takes back; or it alone, where
        what it says waits already.
        """
        match message:
            case Subscribe():
                key: Key = message.subscription.id
                self._ends.discard(key)
            case Unsubscribe():
                key = message.id
                if key not in self._told:
                    return key, 1 + self._forget(key)
                self._ends.add(key)
            case HostChange():
                return self._put_host_change(message)
            case HostTable():
                return self._put_host_table(message)
            case HeardVersions():
                key, message = self._with_earlier(message)
            case _:
                key, message = self._put_parts(message)
        obsolete = int(key in self._waiting)
        self._waiting[key] = message  # in the earlier one's place, if there is one
        self._look()
        return key, obsolete

    def _put_host_change(self, change: HostChange) -> tuple[Key, int]:
        """Let it wait behind all others: its number is the highest of its run."""
        key = self._runs.put(change)
        if key is None:
            return next(self._numbers), 1
        obsolete = self._waiting.pop(key, None) is not None
        self._waiting[key] = change
        self._look()
        return key, int(obsolete)

    def _with_earlier(self, message: HeardVersions) -> tuple[Key, HeardVersions]:
        """Return what was heard together with what waits of that already."""
        earlier = self._waiting.get(self._heard_versions)
        if isinstance(earlier, HeardVersions):
            known = earlier.known | message.known
            return self._heard_versions, HeardVersions(known, message.is_complete)
        self._heard_versions = next(self._numbers)
        return self._heard_versions, message

    def _put_parts(self, message: Message) -> tuple[Key, Message]:
        """Let all parts of a snapshot wait but the last, and return that one."""
        key = next(self._numbers)
        if isinstance(message, TableSnapshot):
            self._told.update(each.subscription.id for each in message.subscriptions)
            *first, message = snapshot_parts(message)
            for part in first:
                self._waiting[key] = part
                key = next(self._numbers)
            self._parts += len(first)
        return key, message

    def _put_host_table(self, table: HostTable) -> tuple[Key, int]:
        """Let a table wait, in the place of an older one that was not begun."""
        if self._tables.has(table):
            return next(self._numbers), 1
        last: Key = (_TABLE, next(self._numbers))
        older = self._tables.older(table.host)
        is_replaced = bool(older) and older[0] in self._waiting
        if is_replaced:
            last = older[-1]
            for key in older:
                del self._waiting[key]
            self._parts -= len(older) - 1
        parts = host_table_parts(table)
        keys: list[Key] = [next(self._numbers) for _ in parts[1:]]
        keys.append(last)
        self._waiting.update(zip(keys, parts, strict=True))
        self._parts += len(parts) - 1
        self._tables.add(table, keys)
        self._look()
        return last, int(is_replaced)

    def take(self, bytes_max: float) -> tuple[list[Encoded], int]:
        """Remove and return changes of at most so many bytes in all, but at least one.

        With them, how many messages that were: a table in parts is one, with its last part.
        """
        taken: list[Encoded] = []
        size = messages = 0
        while self._waiting:
            key, message = self._waiting.popitem(last=False)
            if isinstance(message, HostChange):
                message = self._runs.as_told(key, message)
            encoded = encode_message(message)
            if size + len(encoded[1]) > bytes_max and taken:
                self._waiting[key] = message
                self._waiting.move_to_end(key, last=False)
                break
            size += len(encoded[1])
            taken.append(encoded)
            messages += self._note_taken(key, message)
        self._look()
        return taken, messages

    def _note_taken(self, key: Key, message: Message) -> bool:
        """Note that the neighbour is told; return whether a message has come to its end."""
        if isinstance(message, HostChange):
            self._runs.told(key, message)
        elif isinstance(message, HostTable) and message.last:
            self._tables.told(message)
        elif isinstance(message, HostTable | TableSnapshot) and not message.last:
            self._parts -= 1
            return False
        if key in self._ends:
            self._ends.discard(key)
            self._told.discard(key)
        elif isinstance(key, str):
            self._told.add(key)
        return True

    def clear(self) -> list[Message]:
        """Forget everything: the link is down, and the neighbour begins anew.

        Returns what waited of changes that hosts have numbered, as it would have been told.
        """
        left: list[Message] = []
        for key, message in self._waiting.items():
            if isinstance(message, HostChange):
                change = self._runs.as_told(key, message)
                self._runs.told(key, change)
                left.append(change)
        self._waiting.clear()
        self._ends.clear()
        self._told.clear()
        self._runs = HostChangeRuns()
        self._tables = HostTables()
        self._parts = 0
        self._look()
        return left

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
