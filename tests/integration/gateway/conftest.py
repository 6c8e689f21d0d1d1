"""Gateways of overlays that run for all tests of a file."""

from collections.abc import Iterator

import pytest

from octopis.overlay.settings import parse_overlay
from support.gateway import Gateway
from support.overlay_command import SMALL, Shell, Up
from support.secure import Folder
from support.secured import ACCESS, USERS, Secured


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway beside four brokers that have disks."""
    shell = Shell(tmp_path_factory.mktemp("gateway"))
    words = ("--config", shell.config(SMALL), "--durable", "kept", "--gateway-port", "0")
    with shell.up(*words) as up:
        yield Gateway(up.state["gateway"], up)
        assert up.stop() == (0, "")
    shell.end()


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shell, Up]]:
    shell = Shell(tmp_path_factory.mktemp("gateway-faults"))
    with shell.up("--config", shell.config(SMALL)) as up:
        yield shell, up
        assert up.stop() == (0, "")
    shell.end()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Four brokers with disks and security, and the gateway that comes with them."""
    path = tmp_path_factory.mktemp("secured")
    shell = Shell(path)
    folder = Folder(path / "sec", parse_overlay(SMALL, "here").configuration.scot)
    users = (f'[users.{user}]\nroles = ["{role}"]\n' for user, role in USERS.items())
    folder.say(ACCESS + "".join(users))
    words = ("--config", shell.config(), "--secure", "sec", "--durable", "kept")
    with shell.up(*words, "--gateway-port", "0") as up:
        yield Secured(Gateway(up.state["gateway"], up), folder, shell)
        assert up.stop()[0] == 0
    shell.end()
