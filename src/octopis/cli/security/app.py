"""`octopis security`: each of its commands is in a file of its own."""

import typer

from octopis.cli.security.client import client
from octopis.cli.security.init import init
from octopis.cli.security.renew import renew
from octopis.cli.security.show import show

app = typer.Typer(
    help="Who may do what: init, renew, client, show.\n\nAll of it stands in one folder, which "
    "brokers read by the setting `folder` under [security].",
    no_args_is_help=True,
)

app.command()(init)
app.command()(renew)
app.command()(client)
app.command()(show)
