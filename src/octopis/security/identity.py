"""Whom a broker has let in, and what they may do.

What somebody may do are filters in the language of subscriptions: what is published must match
`publish`, and a subscription becomes `asked AND subscribe`. Only TRUE counts: what leaves a filter
UNKNOWN, as an attribute is absent or of another kind, is refused. AND in three-valued logic is TRUE
only where both sides are, so whatever is asked for, nobody gets what `subscribe` does not match.
"""

from collections.abc import Mapping

from msgspec import Struct

from octopis.core.filters import Filter, parse_filter
from octopis.core.filters.operands import Attributes
from octopis.core.model import Value
from octopis.errors import InvalidFilter, NotPermitted

NOTHING = parse_filter("FALSE")

_PLAIN = str.maketrans({"%": "%25", "/": "%2F", ":": "%3A", "#": "%23"})
"""An identity's name ends at the first "/", and means nothing else to a broker."""


class Permissions(Struct, frozen=True):
    """What an identity may do. Without anything said: nothing."""

    publish: Filter = NOTHING
    subscribe: Filter = NOTHING
    forced: Mapping[str, Value] = {}
    """Attributes that the broker writes into all that is published, whatever the client says."""

    is_durable: bool = False
    """Whether it may have durable subscriptions, and stage batches."""

    sees_status: bool = False
    """Whether it may ask how brokers are: names of clients and subscriptions are in there."""

    def guarded(self, asked: Filter) -> Filter:
        """Return what a subscription comes to, or raise NotPermitted or InvalidFilter."""
        if self.subscribe == NOTHING:
            raise NotPermitted("your role may not subscribe to anything")
        try:
            return asked & self.subscribe
        except InvalidFilter as failure:
            reason = f"with what your role allows, the filter is too long: {failure}"
            raise InvalidFilter(reason) from failure

    def may_see(self, attributes: Attributes) -> bool:
        """Tell whether a notification may be delivered."""
        return self.subscribe.matches(attributes)

    def may_publish(self, attributes: Attributes) -> bool:
        """Tell whether a notification may be published, forced attributes included."""
        return self.publish.matches(attributes)


class Identity(Struct, frozen=True):
    """Somebody who has logged in."""

    name: str
    permissions: Permissions
    roles: tuple[str, ...] = ()
    how: str = "certificate"
    """By what: "certificate", "token" or "password"."""

    expires_at: float | None = None
    """When the credential ends, in seconds since 1970; None where it has no end of its own."""

    credential: str = ""
    """What the credential is known by where it is revoked: a serial number, or a token's id.

    For a password: a mark by which it is told from another one.
    """

    has_own_roles: bool = False
    """Whether the roles are said by its token, and are not those of the user."""

    signed_by: str = ""
    """The public key that its token was signed by: without that one, nobody would let it in."""

    def named(self, name: str) -> str:
        """Return what a name of this identity's is called inside the overlay.

        Names of clients, subscriptions and durable subscriptions are each identity's own: nobody
        can take, end or block those of another, as they have no word for them.
        """
        return f"{self.name.translate(_PLAIN)}/{name}"
