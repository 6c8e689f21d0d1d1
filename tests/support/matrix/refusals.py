"""What counts as a refusal. Whatever else goes wrong is an error of the cell, not a no."""

import re
from collections.abc import Callable

from octopis.errors import ConnectionFailed, InvalidSubscription, NotPermitted, OctopisError

_SAID = re.compile(
    r"your role may not|is not what your role may publish|it needs (status|durable) = true"
    r"|a login is needed|the token is not valid|there is no role|is revoked|who may not come in"
    r"|speaks TLS alone|there is no durable subscription"
    r"|this overlay has security|the token has expired|there is nothing at /durable/"
)


def is_refusal(text: str) -> bool:
    """Tell whether a text says that somebody may not, or knows of no such thing."""
    return _SAID.search(text.replace("\n", " ")) is not None


def may(work: Callable[[], object]) -> bool:
    """Do something, and tell whether it was allowed."""
    try:
        work()
    except OctopisError as failure:
        check_refusal(failure)
        return False
    return True


def check_refusal(failure: OctopisError) -> None:
    """Raise a failure again unless it is a refusal."""
    is_one = isinstance(failure, NotPermitted | InvalidSubscription | ConnectionFailed)
    if not (is_one and is_refusal(str(failure))):
        raise failure
