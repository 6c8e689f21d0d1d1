"""`octopis security`: each of its commands is in a file of its own."""

import typer

from octopis.cli.security.audit import audit
from octopis.cli.security.check import check
from octopis.cli.security.client import client
from octopis.cli.security.init import init
from octopis.cli.security.password import password
from octopis.cli.security.renew import renew
from octopis.cli.security.show import show
from octopis.cli.security.token import token

app = typer.Typer(
    help="Who may do what: init, renew, client, password, token, show, check, audit.\n\n"
    "All of it stands in one folder; `security.folder` in an overlay's file names it to brokers.",
    no_args_is_help=True,
)

app.command()(init)
app.command()(renew)
app.command()(client)
app.command()(show)
app.command()(password)
app.command()(token)
app.command()(check)
app.add_typer(audit, name="audit")
