"""What a client does for a broker that asks for a password, and what it does not."""

import pytest

from octopis.client.login import password_login
from octopis.core.wire.login import ITERATIONS_MAX, ITERATIONS_MIN, Scram
from octopis.errors import LoginFailed


def asked(iterations: int, nonce: str = "more") -> bytes:
    """Let a login answer a challenge of somebody who chooses how much work it is."""
    login = password_login("alice", "pencil")
    assert isinstance(login.said, Scram)
    mine = login.said.message.decode().rpartition("r=")[2]
    challenge = f"r={mine}{nonce},s=QSXCR+Q6sek8bf92QSXCR+Q6sek8bf92,i={iterations}"
    return login.answer(challenge.encode())


@pytest.mark.parametrize("iterations", [ITERATIONS_MIN, ITERATIONS_MAX])
def test_every_password_that_can_be_made_is_proved(iterations: int):
    assert b",p=" in asked(iterations)


@pytest.mark.parametrize("iterations", [1, ITERATIONS_MIN - 1, ITERATIONS_MAX + 1, 10**9, 10**300])
def test_broker_that_asks_for_too_little_or_too_much_work_gets_no_proof(iterations: int):
    """Little work makes a proof that passwords can be tried on by the million."""
    with pytest.raises(LoginFailed):
        asked(iterations)
