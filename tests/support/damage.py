"""Disks that damage what they have synced."""

from pathlib import Path


def flip(folder: Path, text: bytes) -> None:
    """Damage the record in a broker's log that holds a text."""
    for log in folder.glob("*.log"):
        data = log.read_bytes()
        at = data.find(text)
        if at >= 0:
            with log.open("r+b") as file:
                file.seek(at)
                file.write(bytes([data[at] ^ 1]))
            return
    raise AssertionError(f"{text!r} is not there")
