"""`GET /durable/NAME` and `POST /durable/NAME/ack`: a durable subscription by pulling."""

from octopis.core.wire.durable import READ_MAX
from octopis.gateway.bodies import Scope, known_only, one, query_of, whole_number
from octopis.gateway.context import Context
from octopis.gateway.documents import Acknowledged, Acknowledgement, Excerpt
from octopis.gateway.problems import Problem, answered_within
from octopis.gateway.readers.feeds import out

_WAIT_MS_MAX = 30_000
_POSITION_MAX = 2**62 - 1


async def pull(context: Context, scope: Scope, name: str) -> Excerpt:
    """Return what comes next of a durable subscription: nothing is acknowledged by that.

    `max` says how many at most, `wait_ms` how long to wait where there is nothing, `after` behind
    which position to begin (behind the last acknowledged).
    """
    query = query_of(scope)
    known_only(query, "max", "wait_ms", "after")
    most = max(1, whole_number(query, "max", 100, READ_MAX))
    wait_ms = whole_number(query, "wait_ms", 0, _WAIT_MS_MAX)
    after = whole_number(query, "after", 0, _POSITION_MAX) if one(query, "after") else None
    limit_s = context.limits.answer_s
    async with (
        context.member(scope) as member,
        member.opened_at_home(name) as (client, info),
    ):
        begin = info.acked if after is None else after
        if begin < info.acked:
            reason = f"{name!r} has positions from {info.acked + 1:,} on: after is {info.acked:,}"
            raise Problem(410, reason)
        async with answered_within(limit_s + wait_ms / 1000):
            found = await client.read(name, begin, most, wait_s=wait_ms / 1000)
    context.counts.delivered["pull"] += len(found.notifications)
    return Excerpt(
        name, str(found.epoch), list(map(out, found.notifications)), found.missing, found.end
    )


async def acknowledge(
    context: Context, scope: Scope, name: str, asked: Acknowledgement
) -> Acknowledged:
    """Release all of a durable subscription up to a position, for good."""
    async with (
        context.member(scope) as member,
        member.opened_at_home(name) as (client, info),
        answered_within(context.limits.answer_s),
    ):
        if asked.epoch is not None and asked.epoch != str(info.epoch):
            raise Problem(410, f"the durable subscription {name!r} was made anew since")
        if asked.position > info.end:
            reason = f"{name!r} has positions up to {info.end:,}, not {asked.position:,}"
            raise Problem(400, reason)
        await client.ack(name, info.epoch, asked.position)
    return Acknowledged(name, max(info.acked, asked.position))
