"""A gateway that other machines reach: TLS and security, or it says that it does without."""

from pathlib import Path

from octopis.core.model import BrokerId
from support.gateway import curl, events, gateway_run, post
from support.secured import Secured, bearer

HERE = BrokerId("a", 0)
ANYWHERE = "0.0.0.0"  # noqa: S104 - what is refused, or has TLS


def test_gateway_beyond_the_loopback_needs_tls_and_security_or_says_that_it_does_without(
    secured: Secured, tmp_path: Path
):
    shell, files = secured.shell, secured.folder.files
    refused = shell.run("gateway", "run", "--host", ANYWHERE, "--port", "0")
    assert refused.returncode == 2
    assert "--certificate" in refused.stderr
    assert "--insecure" in refused.stderr
    broker = ("--certificate", str(files.certificate(HERE)), "--key")
    refused = shell.run("gateway", "run", "--port", "0", *broker, str(tmp_path / "none"))
    assert refused.returncode == 2
    tls = (*broker, str(files.key(HERE)))
    with gateway_run(
        shell, secured.gateway.up, "--host", ANYWHERE, *tls, "--limit", "members=1"
    ) as gateway:
        url = f"https://localhost:{gateway.url.rpartition(':')[2]}"
        trust = ("--cacert", str(files.ca))
        assert curl(f"{url}/overlay", *trust).status == 401
        assert curl(f"{url}/metrics", *trust).status == 401
        token = bearer(secured.token("operator"))
        assert curl(f"{url}/overlay", *trust, *token).json["security"] is True
        assert curl(f"{url}/metrics", *trust, *token).status == 200
        other = bearer(secured.token("kim"))  # the first one makes room, unless it is in use
        with events(f"{url}/notifications", *trust, *other, filter="price > 3"):
            refused_now = curl(f"{url}/overlay", *trust, *token)
            assert (refused_now.status, "in use" in refused_now.json["detail"]) == (503, True)
        assert post(f"{url}/notifications", {"price": 1}, *trust, *token).status == 202
