"""A gateway of an overlay with security, and its users."""

from typing import Any, NamedTuple

from octopis import connect_sync
from support.gateway import Gateway, post
from support.overlay_command import Shell
from support.secure import Folder

ACCESS = """
[roles.all]
publish = "TRUE"
subscribe = "TRUE"
durable = true
status = true
[roles.publisher]
publish = "price < 1000"
[roles.reader]
subscribe = "price < 100"
[roles.keeper]
subscribe = "TRUE"
durable = true
[roles.watcher]
status = true
"""
USERS = {"operator": "all", "pat": "publisher", "rita": "reader", "kim": "keeper", "wim": "watcher"}


class Secured(NamedTuple):
    """A gateway, and the folder of its overlay."""

    gateway: Gateway
    folder: Folder
    shell: Shell

    @property
    def url(self) -> str:
        return self.gateway.url

    def token(self, user: str, lifetime_s: float = 600.0) -> str:
        return self.folder.token(user, lifetime_s)

    def settled(self) -> None:
        with connect_sync(
            self.gateway.up.url("a,0"), credentials=self.folder.files.credentials("operator")
        ) as client:
            client.settled()

    def publish(self, *notifications: dict[str, Any]) -> None:
        found = post(f"{self.url}/notifications", list(notifications), *bearer(self.token("pat")))
        assert found.status == 202, found.body

    def log(self) -> str:
        return next(self.shell.state.rglob("gateway.log")).read_text(encoding="utf-8")


def bearer(token: str | None) -> tuple[str, ...]:
    return () if token is None else ("-H", f"authorization: Bearer {token}")
