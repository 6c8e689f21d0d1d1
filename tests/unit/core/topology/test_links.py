from octopis.core.model import BrokerId
from octopis.core.topology.scot import Link, LinkKind


def test_kinds_are_spelled_as_in_the_paper():
    assert [kind.value for kind in LinkKind] == ["aCOL", "iCOL"]
    assert LinkKind("aCOL") is LinkKind.ACOL


def test_link_reads_well():
    link = Link(BrokerId("a", 0), BrokerId("b", 0), LinkKind.ACOL)
    assert str(link) == "aCOL B(a, 0) - B(b, 0)"
