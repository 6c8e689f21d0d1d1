"""The example of docs/wire.md: who says which bytes, and the words beside them."""

import re
from typing import NamedTuple


class Said(NamedTuple):
    """A frame of the example, by its lines: bytes, and what the page says of them."""

    by_client: bool
    lines: list[tuple[bytes, str]]

    @property
    def data(self) -> bytes:
        """The whole frame."""
        return b"".join(data for data, _ in self.lines)


def conversation(page: str) -> list[Said]:
    """Return what is said in the example, in its order."""
    (block,) = re.findall(r"## An example\n.*?```text\n(.*?)```", page, re.DOTALL)
    said: list[Said] = []
    for line in block.splitlines():
        found = re.fullmatch(r"([<> ]) ((?:[0-9a-f]{2} ?)+)\s*(.*)", line)
        assert found, f"this line makes no sense: {line}"
        who, data, words = found[1], bytes.fromhex(found[2]), found[3]
        if who != " ":
            said.append(Said(by_client=who == ">", lines=[]))
        lines = said[-1].lines
        if words:
            lines.append((data, words))
        else:  # the line before goes on
            lines[-1] = (lines[-1][0] + data, lines[-1][1])
    return said
