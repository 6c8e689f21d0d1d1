"""One login of a client, without sockets: what goes into its hello, and what comes after."""

from octopis.core.wire.login import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM,
    TOKEN_MAX,
    Scram,
    Token,
)
from octopis.errors import InvalidConfiguration, LoginFailed, MissingExtra, OctopisError


class Login:
    """Nothing to prove: who has a certificate has shown it when TLS began."""

    said: Token | Scram | None = None
    """What goes into the hello."""

    def answer(self, challenge: bytes) -> bytes:  # noqa: ARG002 - that of a login with a password
        """Return the proof that a broker asks for, or raise LoginFailed."""
        raise LoginFailed("the broker asks for a password, and there is none")

    def check(self, verifier: bytes) -> None:
        """Raise LoginFailed where the broker does not prove what it has to."""


class TokenLogin(Login):
    """A signed token, which the broker checks by itself."""

    def __init__(self, token: str) -> None:
        self.said = Token(token)


class PasswordLogin(Login):
    """A user's password, proved by SCRAM; the broker proves that it knows its keys."""

    def __init__(self, user: str, password: str) -> None:
        try:
            from scramp import ScramClient, ScramException  # noqa: PLC0415 - only with a password
        except ModuleNotFoundError as failure:
            raise MissingExtra("a login with a password", "scramp", "security") from failure
        self._refused = ScramException
        try:
            self._scram: ScramClient = ScramClient([MECHANISM], user, password)
            first = self._scram.get_client_first().encode()
        except ScramException as failure:
            raise _unusable(failure) from None
        self.said = Scram(MECHANISM, first)

    def answer(self, challenge: bytes) -> bytes:
        """Return the proof; once. Raises LoginFailed where the challenge makes no sense."""
        try:
            self._scram.set_server_first(challenge.decode())
            asked = int(self._scram.iterations)
            if asked > ITERATIONS_MAX:
                raise LoginFailed("the broker asks for more work than any password needs")
            if asked < ITERATIONS_MIN:  # whoever poses as it could try passwords on the proof
                raise LoginFailed("the broker asks for less work than any password needs")
            proof: str = self._scram.get_client_final()
        except (self._refused, UnicodeDecodeError):
            raise LoginFailed("what the broker asks for a password makes no sense") from None
        return proof.encode()

    def check(self, verifier: bytes) -> None:
        """Raise LoginFailed unless the broker knows the password's keys."""
        try:
            self._scram.set_server_final(verifier.decode())
        except (self._refused, UnicodeDecodeError):
            raise LoginFailed(
                "the broker does not prove that it knows this user: it may be another's"
            ) from None


def no_login() -> Login:
    """Return the login of a client with a certificate, or with nothing."""
    return Login()


def token_login(token: str) -> Login:
    """Return the login of a client with a token, or raise InvalidConfiguration."""
    text = token.strip()
    if not text or len(text) > TOKEN_MAX or not text.isascii():
        raise InvalidConfiguration(
            f"a token is one line of at most {TOKEN_MAX:,} letters, digits and signs"
        )
    return TokenLogin(text)


def password_login(user: str, password: str) -> Login:
    """Return the login of a user, or raise InvalidConfiguration or MissingExtra."""
    return PasswordLogin(user, password)


def _unusable(failure: Exception) -> OctopisError:
    # Its message is about characters, and does not repeat them; still, ours says no more.
    kind = type(failure).__name__
    return InvalidConfiguration(f"this user or password has characters that cannot be used: {kind}")
