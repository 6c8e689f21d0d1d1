"""Why a message goes onto a link: for traces, explanations and people."""

from enum import Enum


class Reason(Enum):
    """One word for each reason, as it stands in traces."""

    SUBSCRIPTION = "subscription"
    SYNC = "sync"
    MATCH = "match"
    PENDING = "pending"
    CASE_I = "I"
    CASE_II = "II"
    CASE_III = "III"

    __hash__ = object.__hash__  # members are single; Enum's own hash is slow

    @property
    def in_words(self) -> str:
        """The reason as half a sentence."""
        return _WORDS[self]


_WORDS = {
    Reason.SUBSCRIPTION: "every broker must know the subscription",
    Reason.SYNC: "the link has come up, so both ends compare what they know",
    Reason.MATCH: "a matching subscription lies behind it",
    Reason.PENDING: "the notification carries this cluster as pending",
    Reason.CASE_I: "case I: the free iCOL with the shortest queue takes the pending clusters along",
    Reason.CASE_II: "case II: no target iCOL is free, so the least loaded aCOL takes them along",
    Reason.CASE_III: "case III: nothing is free, so the least loaded iCOL takes the others along",
}
