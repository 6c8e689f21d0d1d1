"""Publishing at the overlay, and what a client hears where that goes wrong."""

import asyncio
from collections.abc import Sequence

from octopis.client.client import Client
from octopis.core.model import Notification
from octopis.errors import ConnectionLost, LoginFailed, OctopisError
from octopis.gateway.problems import away, problem_of
from octopis.gateway.settings import GatewayLimits


async def accepted(client: Client, found: Sequence[Notification], limits: GatewayLimits) -> None:
    """Return when the overlay has accepted all, or raise Problem."""
    try:
        async with asyncio.timeout(limits.answer_s):
            if len(found) == 1:
                await client.publish(found[0])
            else:
                await client.publish_many(found)
    except TimeoutError:
        raise away(
            f"it has not answered within {limits.answer_s:g} s, and what was sent may or may not "
            "have been delivered"
        ) from None
    except LoginFailed as failure:
        raise problem_of(failure) from failure
    except ConnectionLost as failure:
        raise away(str(failure)) from failure
    except OctopisError as failure:
        raise problem_of(failure) from failure
