"""Pages of other origins are kept out of a gateway, by whatever door they come."""

import asyncio

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from support.gateway import Gateway, curl, events, gateway_run, publish
from support.overlay_command import Shell, Up

OTHER = "https://page.example"
FORM = ("-H", "content-type: application/x-www-form-urlencoded")


def test_form_of_another_page_publishes_nothing(gateway: Gateway):
    with events(f"{gateway.url}/notifications", filter="n >= 0") as stream:
        gateway.settled()
        found = publish(gateway, b'{"n": 1}', *FORM, "-H", f"origin: {OTHER}")
        assert found.status == 403
        assert "--allow-origin" in found.json["detail"]
        assert publish(gateway, b'{"n": 1}', *FORM, "-H", "origin: null").status == 403
        own = publish(gateway, b'{"n": 2}', *FORM, "-H", f"origin: {gateway.url}")
        assert own.status == 202
        assert stream.next().data["attributes"] == {"n": 2}


def test_picture_on_another_page_makes_no_durable_subscription(gateway: Gateway):
    address = f"{gateway.url}/notifications?durable=picture&filter=a%3D1"
    words = ("-H", "sec-fetch-site: cross-site", "-H", "sec-fetch-mode: no-cors")
    assert curl(address, *words).status == 403
    assert curl(f"{gateway.url}/durable/picture").status == 404
    link = ("-H", "sec-fetch-site: cross-site", "-H", "sec-fetch-mode: navigate")
    assert curl(f"{gateway.url}/", *link).status == 200, "other pages may have links to this one"


@pytest.mark.parametrize("host", ["gateway.example", "gateway.example:80"])
def test_name_that_somebody_has_made_to_mean_this_machine_is_not_its_name(
    gateway: Gateway, host: str
):
    port = gateway.address.partition(":")[2]
    assert curl(f"{gateway.url}/overlay", "-H", f"host: {host}").status == 403
    for own in (f"localhost:{port}", f"[::1]:{port}", "127.0.0.1", "desk", "my.localhost"):
        assert curl(f"{gateway.url}/overlay", "-H", f"host: {own}").status == 200, own


def test_socket_of_another_page_is_refused_unless_it_is_let_in(
    gateway: Gateway, overlay: tuple[Shell, Up]
):
    async def opened(address: str, origin: str) -> int:
        try:
            async with connect(f"ws://{address}/ws", origin=origin):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    def status(address: str, origin: str) -> int:
        return asyncio.run(opened(address, origin))

    assert status(gateway.address, OTHER) == 403
    assert status(gateway.address, gateway.url) == 101
    with gateway_run(*overlay, "--allow-origin", OTHER) as open_to_it:
        assert status(open_to_it.address, OTHER) == 101
        assert status(open_to_it.address, "https://third.example") == 403
        assert publish(open_to_it, b'{"n": 0}', *FORM, "-H", f"origin: {OTHER}").status == 202
