"""Links between brokers, and their two kinds."""

from enum import Enum
from typing import NamedTuple

from octopis.model import BrokerId


class LinkKind(Enum):
    """What a link joins: brokers of one cluster (aCOL) or of one region (iCOL)."""

    ACOL = "aCOL"
    ICOL = "iCOL"


class Link(NamedTuple):
    """A link from one broker to another.

    Lists of links name each link once, with the broker first that comes first in the overlay.
    """

    source: BrokerId
    target: BrokerId
    kind: LinkKind

    def __str__(self) -> str:
        return f"{self.kind.value} {self.source} - {self.target}"
