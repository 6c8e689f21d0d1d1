"""Who a broker is: B(region, cluster)."""

import re
from typing import NamedTuple

from octopis.errors import AmbiguousLabel, LabelOrderError

_NOTATION = re.compile(r"\s*(?:B\s*\(([^()]*)\)|([^()]*))\s*")
_INDEX = re.compile(r"\d+")


class BrokerId(NamedTuple):
    """A broker's place: its region (a vertex of the tree) and its cluster (an index)."""

    region: str
    cluster: int

    @classmethod
    def parse(cls, text: str) -> "BrokerId":
        """Return the broker written as `b,2` or `B(b, 2)`.

        Raises LabelOrderError unless a region label and then a cluster index stand there.
        """
        found = _NOTATION.fullmatch(text)
        parts = [part.strip() for part in (found[1] or found[2] or "").split(",")] if found else []
        if len(parts) != 2:
            raise LabelOrderError(text, f"{text!r} is not a broker: write region,cluster as in b,2")
        region, cluster = parts
        if not _INDEX.fullmatch(cluster):
            swapped = f"; did you mean {cluster},{region}?" if _INDEX.fullmatch(region) else ""
            raise LabelOrderError(
                text,
                f"in {text!r} the cluster index must come second and be an integer{swapped}",
            )
        check_region_label(region)
        return cls(region, int(cluster))

    def __str__(self) -> str:
        return f"B({self.region}, {self.cluster})"

    @property
    def short(self) -> str:
        """The form for command lines and file names: `b,2`."""
        return f"{self.region},{self.cluster}"


def check_region_label(label: str) -> None:
    """Raise AmbiguousLabel where `label` could be misread in B(region, cluster)."""
    if not label or label != label.strip():
        raise AmbiguousLabel(label, "a label is not empty and has no space at its ends")
    if any(character in label for character in ",()") or not label.isprintable():
        raise AmbiguousLabel(label, "a label has no comma, no bracket and no control character")
    if _INDEX.fullmatch(label):
        raise AmbiguousLabel(label, "a bare number looks like a cluster index; put a letter first")
