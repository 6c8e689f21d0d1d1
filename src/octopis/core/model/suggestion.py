"""The nearest known word, for errors that help."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for the known word nearest to `word`, or ""."""
    spelled = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(word.lower()[:40], spelled, n=1, cutoff=0.6)
    return f"; did you mean '{spelled[near[0]]}'?" if near else ""
