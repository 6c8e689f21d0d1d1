"""The gateway's process beside the brokers of `octopis overlay up --gateway`.

It speaks as their processes do: `argv[1]` is the order as JSON, "ready" on standard output, and the
end of standard input is the order to stop, which also comes when the starter is gone.
"""

import asyncio
import logging
import socket
import sys
from pathlib import Path

import msgspec
import uvloop
from msgspec import structs

from octopis.core.filters import parse_filter
from octopis.errors import OctopisError
from octopis.gateway.overlay_view import view_of_document
from octopis.gateway.security import security_of
from octopis.gateway.serving.server import quiet_uvicorn, serve
from octopis.gateway.settings import GatewayOptions
from octopis.logs import log_to_stderr
from octopis.overlay.deployment import raise_file_limit, spare_the_collector
from octopis.overlay.gateway import GatewayOrder
from octopis.overlay.orders import hear_orders, say
from octopis.overlay.process import LOG_FORMAT

_LATEST_END_S = 8.0


def main() -> None:
    """Run a gateway until told to stop."""
    log_to_stderr(LOG_FORMAT, logging.INFO)
    quiet_uvicorn()
    order = msgspec.json.decode(sys.argv[1], type=GatewayOrder)
    raise_file_limit()
    parse_filter("TRUE")  # the language is loaded before anybody waits for it
    spare_the_collector()
    try:
        uvloop.run(_serve(order))
    except OctopisError as failure:
        logging.getLogger(__name__).error("%s", failure)  # noqa: TRY400 - one clear sentence
        sys.exit(failure.exit_status)


async def _serve(order: GatewayOrder) -> None:
    view = view_of_document(order.name, Path(order.configuration))
    assert view.overlay is not None
    slow = view.overlay.configuration.client_queues.policy.value
    view = structs.replace(
        view, security=security_of(view.overlay, order.credentials or None, None)
    )
    stop = asyncio.Event()
    hear_orders(stop, _LATEST_END_S)
    listener = socket.socket(fileno=order.listener)
    await serve(view, GatewayOptions(slow=slow), listener, stop, lambda: say("ready"))


if __name__ == "__main__":
    main()
