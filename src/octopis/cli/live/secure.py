"""What `octopis overlay up --secure DIR` does before it starts anything."""

from pathlib import Path

from octopis.overlay.settings import NamedOverlay


def prepared(overlay: NamedOverlay, *, init: bool) -> str:
    """Return the file of credentials for commands of this user; empty where there is none.

    With `init` the folder is made where there is none yet.
    """
    if not overlay.configuration.is_secure:
        return ""
    # They load cryptography, which brokers without security do without.
    from octopis.cli.security.init import hosts_of  # noqa: PLC0415
    from octopis.security.certificates import now_utc  # noqa: PLC0415
    from octopis.security.folder import SecurityFolder  # noqa: PLC0415
    from octopis.security.making import FIRST_USER, make_folder  # noqa: PLC0415
    from octopis.security.names import BROKER_DAYS  # noqa: PLC0415

    path = Path(overlay.configuration.security.folder)
    folder = SecurityFolder(path)
    if init and not path.exists():
        name = overlay.topology.name
        make_folder(path, name, hosts_of(overlay, ()), days=BROKER_DAYS, now=now_utc())
    folder.check(overlay.configuration.scot.brokers)
    credentials = folder.credentials(FIRST_USER)
    return str(credentials) if credentials.exists() else ""
