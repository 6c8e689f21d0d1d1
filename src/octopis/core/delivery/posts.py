"""What the two ends of a channel say to each other, and how that finds its way.

A post goes over the overlay by the rule of target routing, with one target. It goes past the
queues, so it never waits behind notifications, and nobody on the way keeps it: whatever is lost is
said again, as each post says all that there is to say.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from octopis.core.routing.algorithms.tnr import Crossroads, plan
from octopis.core.routing.link_status import LinkStatus

Place = Annotated[int, Meta(ge=0, lt=1 << 16)]
Life = Annotated[int, Meta(ge=0, lt=1 << 32)]
Number = Annotated[int, Meta(ge=0, lt=1 << 62)]

RANGES_MAX = 16
"""So many gaps are named in one acknowledgement; the others when these are filled."""


class Ack(msgspec.Struct, frozen=True, array_like=True, tag=1, forbid_unknown_fields=True):
    """The host at `by` has all that the host at `to` has numbered for it, up to `last`.

    `life` is that of the one who says it, `stream` the life of the one who has numbered. `last` is
    None where nothing is known of that stream. Of what comes after, it lacks the `wanted` ranges:
    all after the first number of a range, up to the second. `given_up` is how much it has been
    told is lost. `token` is to be said in the next `Open`, where there is one.
    """

    to: Place
    by: Place
    life: Life
    stream: Life
    last: Number | None
    given_up: Number = 0
    wanted: Annotated[tuple[tuple[Number, Number], ...], Meta(max_length=RANGES_MAX)] = ()
    token: Number = 0
    tried: Annotated[int, Meta(ge=0)] = 0


class Open(msgspec.Struct, frozen=True, array_like=True, tag=2, forbid_unknown_fields=True):
    """The host at `by` begins to number, in its life `stream`, for the host at `to`, after `base`.

    It is meant for that host's `life`: one that was restarted since has lost what it had.
    `given_up` is how much was never sent or is sent no more, all in all. `token` is what that host
    has said last. What is numbered up to `fresh` an earlier life may have delivered: now it is for
    durable subscriptions alone.
    """

    to: Place
    by: Place
    life: Life
    stream: Life
    base: Number
    given_up: Number = 0
    token: Number = 0
    tried: Annotated[int, Meta(ge=0)] = 0
    fresh: Number = 0


Post = Ack | Open


def way_of(here: Crossroads, post: Post, now_ns: int) -> tuple[LinkStatus, Post] | None:
    """Return the link that a post takes from here, and the post as it goes on; None: no way."""
    copies = plan(here, 1 << post.to, post.tried, now_ns).copies
    if not copies:
        return None
    link, _, tried, _ = copies[0]
    return link, post if tried == post.tried else msgspec.structs.replace(post, tried=tried)
