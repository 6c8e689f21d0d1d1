"""`octopis security audit`: whether an audit log is as it was written."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from octopis.cli import output
from octopis.security.audit import verify

audit = typer.Typer(help="What brokers have let in and refused: verify.", no_args_is_help=True)


@audit.callback()
def _audit() -> None:
    """Let `verify` be a word of its own, also while it is the only one."""


@audit.command(name="verify")
def verify_log(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The audit log of a broker.")],
    noted: Annotated[
        str,
        typer.Option(metavar="DIGEST", help="The digest of a line that was there: it must be yet."),
    ] = "",
    as_json: output.JsonFlag = False,
) -> None:
    """Read an audit log, and say whether lines were changed, removed, put in or moved.

    Whole lines that are cut off at the end leave no trace, and who may write the file can make all
    of it anew. Against both, note the digest of the last line elsewhere, and say it here later. The
    exit status is 1 where anything is wrong.
    """
    found = verify(file, noted)
    if as_json:
        output.print_json(msgspec.to_builtins(found))
    else:
        title = f"{'wrong' if found.fault else 'ok'}: {file}"
        output.print_facts(title, [("lines that are right", found.lines), ("digest", found.digest)])
        if found.fault:
            output.say(found.fault)
        if found.torn_bytes:
            output.say(
                f"torn: the last line has no end ({found.torn_bytes:,} bytes): it was being "
                "written when the broker or its machine stopped, which is no sign of tampering"
            )
    if found.fault:
        raise typer.Exit(1)
