"""What a client that has logged in may do here, and what its own names are inside the overlay.

Names of clients, subscriptions and durable subscriptions stand below the name of the identity, so
nobody has a word for what is another's. A subscription's name also says under which filter of its
role it was made: under another role it is another subscription. So nothing that was matched for it
before, and is still on its way, is taken for what the new role allows.

    alice/reader                  a client
    alice/1f0a33c2b9d4:prices     a subscription of a client of alice
    alice/weekly                  a durable subscription; what is read of it is looked at each time
"""

from collections.abc import Mapping
from hashlib import blake2b

from octopis.core.delivery.lasting.durables import MOVE, PREFIX
from octopis.core.filters import Filter, parse_filter, quick
from octopis.core.model import Value
from octopis.core.model.notification import ATTRIBUTES_MAX
from octopis.core.wire.published import Published, attributes_of, encode_published, says_twice
from octopis.errors import InvalidNotification, InvalidSubscription, NotPermitted, OctopisError
from octopis.security.identity import NOTHING, Identity, Permissions

ID_MAX = 255
"""Characters that brokers let a subscription's name have."""

_DURABLE_MAX = ID_MAX - len(PREFIX) - len(MOVE) - len(str(2**31))
_EVERYTHING = parse_filter("TRUE")
_SHOWN_MAX = 300


class Permit:
    """What one identity may do at a broker, under the permissions that it has now."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.permissions = identity.permissions
        self.guard = str(identity.permissions.subscribe)
        """What everything that this identity gets has to match, as text."""

        self._prefix = identity.named("")
        self._live_prefix = f"{self._prefix}{_digest(self.guard)}:"
        self._sees_all = identity.permissions.subscribe == _EVERYTHING
        self._publishes_all = identity.permissions.publish == _EVERYTHING
        self._may_see = quick(identity.permissions.subscribe)
        self._may_publish = quick(identity.permissions.publish)
        self._staged_under = staging_mark(identity.permissions)

    @property
    def owner(self) -> str:
        """What brokers know the identity by where they ask whose something is."""
        return owner_of_identity(self.identity.name)

    # Names

    def subscription(self, own: str) -> str:
        """Return what a subscription is called here. Raises InvalidSubscription."""
        return self._named(self._live_prefix, own, ID_MAX)

    def durable(self, own: str) -> str:
        """Return what a durable subscription is called here. Raises InvalidSubscription."""
        return self._named(self._prefix, own, _DURABLE_MAX)

    def _named(self, prefix: str, own: str, most: int) -> str:
        name = prefix + own
        if len(name) > most:
            reason = (
                f"the name {own[:40]!r}... is too long: with {self.identity.name!r} before it, "
                f"the overlay knows names of at most {most - len(prefix)} characters"
            )
            raise InvalidSubscription(reason, own)
        return name

    def told(self, name: str) -> str:
        """Return a name of this identity's as its clients know it; another's as it is."""
        own = name.removeprefix(self._live_prefix)
        return own if own != name else self.told_durable(name)

    def told_durable(self, name: str) -> str:
        """Return the name of a durable subscription so."""
        return name.removeprefix(self._prefix)

    def in_own_words(self, error: OctopisError) -> OctopisError:
        """Return an error about a subscription with the name that the client knows it by."""
        if isinstance(error, InvalidSubscription) and error.subscription:
            name, own = error.subscription, self.told(error.subscription)
            if name != own:
                text = str(error).replace(repr(name), repr(own))
                return InvalidSubscription(text, own, error.epoch)
        return error

    # What is asked for, and what is published

    def guarded(self, asked: Filter) -> Filter:
        """Return what a subscription comes to. Raises NotPermitted or InvalidFilter."""
        return self.permissions.guarded(asked)

    def check_sees_anything(self) -> None:
        """Raise NotPermitted where the role allows to see nothing at all."""
        if self.permissions.subscribe == NOTHING:
            raise NotPermitted("your role may not subscribe to anything")

    def visible(self, bodies: list[bytes]) -> list[bool]:
        """Tell of notifications as they were published which of them may be seen."""
        if self._sees_all:
            return [True] * len(bodies)
        may_see = self._may_see
        return [may_see(attributes_of(body)) for body in bodies]

    def published(self, batch: list[Published], bytes_max: int) -> list[Published]:
        """Return what is published, with what the role forces into it.

        Raises NotPermitted or InvalidNotification where one of the batch is refused: then all are.
        """
        forced = self.permissions.forced
        if forced:
            batch = [
                _with_forced(each, forced, bytes_max, number)
                for number, each in enumerate(batch, start=1)
            ]
        elif any(map(says_twice, batch)):
            number = 1 + list(map(says_twice, batch)).index(True)
            raise InvalidNotification(f"notification {number} has an attribute twice")
        if not self._publishes_all:
            may_publish = self._may_publish
            for number, each in enumerate(batch, start=1):
                if not may_publish(each.attributes):
                    raise NotPermitted(self._unpublished(number, len(batch)))
        return batch

    def _unpublished(self, number: int, count: int) -> str:
        if self.permissions.publish == NOTHING:
            return "your role may not publish anything"
        shown = str(self.permissions.publish)
        shown = shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}..."
        none = ", and none of them is published" if count > 1 else ""
        return f"notification {number} of {count} is not what your role may publish: {shown}{none}"

    def attempt(self, number: int) -> int:
        """Return what an attempt at a part of a batch is known by, under what its role allows.

        Rows that were staged under other permissions are those of another attempt: they are not
        found when the batch is committed.
        """
        about = f"{number} {self._staged_under}".encode()
        found = blake2b(about, digest_size=8, person=b"octopis-attempt").digest()
        return int.from_bytes(found, "big") >> 2


def owner_of_identity(name: str) -> str:
    """Return what brokers know an identity by; no secret of a client gives the same."""
    return blake2b(name.encode(), digest_size=16, person=b"octopis-identity").hexdigest()


def is_same(one: Permissions, other: Permissions) -> bool:
    """Tell whether two roles allow the same, down to the types of what they force."""
    return one == other and _typed(one) == _typed(other)


def staging_mark(permissions: Permissions) -> str:
    """Return what tells permissions to publish from all others."""
    return _digest(f"{permissions.publish} {sorted(_typed(permissions).items())}")


def _typed(permissions: Permissions) -> dict[str, tuple[str, Value]]:
    return {name: (type(value).__name__, value) for name, value in permissions.forced.items()}


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=6, person=b"octopis-role").hexdigest()


def _with_forced(
    notification: Published, forced: Mapping[str, Value], bytes_max: int, number: int
) -> Published:
    attributes = {**notification.attributes, **forced}
    if len(attributes) > ATTRIBUTES_MAX:
        raise InvalidNotification(
            f"notification {number} has {len(attributes)} attributes with those that your role "
            f"adds, more than {ATTRIBUTES_MAX}"
        )
    about = notification.publisher, notification.sequence, notification.intended_ns
    encoded = encode_published(attributes, notification.payload, *about)
    if len(encoded) > bytes_max:
        raise InvalidNotification(
            f"notification {number} has {len(encoded):,} bytes with what your role adds, more "
            f"than {bytes_max:,}"
        )
    return Published(attributes, notification.payload, *about, encoded, notification.source)
