"""What is wrong when a connection to a broker does not come about, in words that help."""

import ssl

from octopis.core.wire.control import Refusal
from octopis.errors import ConnectionFailed, LoginFailed

_PLAIN = (
    "it does not speak TLS: this overlay runs without security, or somebody stands in between; "
    "credentials are for overlays with security, and nothing was said"
)
_NO_TLS = {"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}
_NOT_LET_IN = {
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the broker asks for a certificate: brokers alone "
    "connect there, clients have another port",
    "TLSV1_ALERT_UNKNOWN_CA": "the broker does not know who has issued the client's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client's certificate has expired",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the broker does not take the client's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the broker does not take the client's certificate",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "the broker does not take the client's certificate",
}


def refused(refusal: Refusal) -> ConnectionFailed:
    """Return the error of a client that a broker does not take in."""
    kind = LoginFailed if refusal.error == LoginFailed.__name__ else ConnectionFailed
    return kind(f"the broker refuses the connection: {refusal.message}")


def kind_of(failure: Exception) -> type[ConnectionFailed]:
    """Return LoginFailed where trying again does not help, as somebody is not who he must be."""
    reason = getattr(failure, "reason", None)
    is_final = isinstance(failure, ssl.SSLCertVerificationError) or (
        isinstance(failure, ssl.SSLError) and (reason in _NO_TLS or reason in _NOT_LET_IN)
    )
    return LoginFailed if is_final else ConnectionFailed


def explained(failure: Exception) -> str:
    """Return what is wrong with a connection."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        said = failure.verify_message.rstrip(".")
        return (
            f"the broker's certificate is not trusted: {said}; the `ca` of the credentials says "
            "who has to have issued it"
        )
    if isinstance(failure, ssl.SSLError):
        reason = failure.reason or ""
        if reason in _NO_TLS:
            return _PLAIN
        return _NOT_LET_IN.get(reason, f"TLS fails: {reason.lower().replace('_', ' ') or failure}")
    return str(failure)
