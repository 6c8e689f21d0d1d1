"""The secret of a client, as commands take it: from a file or a variable, never from the line.

What stands on a command line can be read by every user of the machine.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

from octopis.cli import output
from octopis.core.wire.greeting import SECRET_MAX
from octopis.errors import InvalidConfiguration

VARIABLE = "OCTOPIS_SECRET"

SecretOption = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        metavar="FILE",
        help="Whose durable subscriptions are yours: a file with your secret. "
        f"[{VARIABLE}; without any, they are for all who know their names]",
    ),
]


def secret_of(file: Path | None) -> str | None:
    """Return the secret in a file or in the environment, or None. Raises InvalidConfiguration."""
    if file is not None:
        secret, where = output.read_text(file).strip(), str(file)
    else:
        secret, where = os.environ.get(VARIABLE, ""), VARIABLE
        if not secret:
            return None
    if not 1 <= len(secret) <= SECRET_MAX:
        raise InvalidConfiguration(
            f"a secret has 1 to {SECRET_MAX} characters, and {where} has {len(secret):,}"
        )
    return secret
