"""`octopis security`: each of its commands is in a file of its own."""

import typer

from octopis.cli.security.init import init

app = typer.Typer(
    help="Who may do what: init, renew, client, show.\n\nAll of it stands in one folder, which "
    "brokers read by the settings `[security] folder`.",
    no_args_is_help=True,
)


@app.callback()
def _security() -> None:
    """Let `init` be a word of its own, also while it is the only one."""


app.command()(init)
