"""A new security folder: an authority, what each broker needs, keys for tokens, and a first user.

For trying out, and for overlays that have no PKI of their own. Imports cryptography.
"""

import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from octopis.core.model import BrokerId
from octopis.core.toml import encode_table
from octopis.errors import OperationFailed
from octopis.files import whole_folder, write_private
from octopis.security.certificates import (
    Issued,
    issue_broker,
    issue_client,
    make_authority,
    make_token_keys,
)
from octopis.security.folder import FOLDER_MODE, SecurityFolder
from octopis.security.names import AUTHORITY_DAYS, CLIENT_DAYS

FIRST_USER = "operator"

ACCESS = """\
# Who may do what. Brokers read this file again when it changes; one with an error changes nothing.

[roles.operator]           # may do everything
publish = "TRUE"           # what it may publish must match this; without it: nothing
subscribe = "TRUE"         # what it is sent must match this; without it: nothing
durable = true             # durable subscriptions and staged batches
status = true              # how brokers are, with names of clients and subscriptions

# [roles.trader]
# publish = "topic = 'orders'"
# subscribe = "price < 1000"
# deny_publish = "kind = 'admin'"       # deny wins, whatever its other roles allow
# deny_subscribe = "secret = TRUE"
# force = { tenant = "a" }              # written by the broker into all that it publishes
# durable = true
# status = false

[revoked]
certificates = []          # serial numbers, as `octopis security show` has them
tokens = []                # ids (jti) of tokens
users = []                 # whatever they log in with
durables = []              # durable subscriptions to drop: "alice/risk"

[users.operator]
roles = ["operator"]
"""


def make_folder(
    target: Path,
    name: str,
    brokers: Mapping[BrokerId, Iterable[str]],
    *,
    days: int,
    now: datetime,
) -> SecurityFolder:
    """Make the folder of the overlay `name`, with all hosts where each broker is dialled.

    It is whole or not there. Raises InvalidConfiguration where anything is at `target` already.
    """
    authority = make_authority(name, AUTHORITY_DAYS, now)
    try:
        with whole_folder(target) as draft:
            draft.chmod(FOLDER_MODE)
            _fill(SecurityFolder(draft), authority, brokers, days=days, now=now)
        target.chmod(FOLDER_MODE)  # it may have been there, and empty
    except OSError as failure:
        raise OperationFailed(f"cannot write {target}: {failure.strerror}") from failure
    return SecurityFolder(target)


def _fill(
    folder: SecurityFolder,
    authority: Issued,
    brokers: Mapping[BrokerId, Iterable[str]],
    *,
    days: int,
    now: datetime,
) -> None:
    for part in (folder.brokers, folder.clients, folder.tokens):
        part.mkdir(mode=FOLDER_MODE)
    authority.write(folder.ca, folder.ca_key)
    for broker, hosts in brokers.items():
        issued = issue_broker(authority, broker, hosts, days, now)
        issued.write(folder.certificate(broker), folder.key(broker))
    private, public = make_token_keys()
    write_private(folder.token_key, private)
    write_private(folder.login_key, secrets.token_bytes(32))
    (folder.tokens / "octopis.pem").write_bytes(public)
    write_private(folder.access, ACCESS.encode())
    add_client(folder, authority, FIRST_USER, CLIENT_DAYS, now)


def add_client(
    folder: SecurityFolder, authority: Issued, name: str, days: int, now: datetime
) -> None:
    """Write a certificate for a user, and the file that clients of theirs are given."""
    issued = issue_client(authority, name, days, now)
    issued.write(folder.client_certificate(name), folder.client_key(name))
    # Relative to this file: the folder may be moved, or only a part of it be given away.
    paths = {"ca": "../ca.pem", "certificate": f"{name}.pem", "key": f"{name}.key"}
    # A table has a heading, and this file has none.
    text = encode_table("credentials", paths).partition("\n")[2]
    write_private(folder.credentials(name), text.encode())
