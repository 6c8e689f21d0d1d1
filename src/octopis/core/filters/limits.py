"""How large a filter may be, so that no input costs a broker much time.

Each limit is checked where the thing is made, whatever the dialect.
"""

LENGTH_MAX = 4_096
"""Characters in the text of a filter."""

TOKENS_MAX = 2_000
"""Words, values and signs in the text; only reachable with very long IN lists."""

TERMS_MAX = 200
"""Comparisons in one filter."""

DEPTH_MAX = 32
"""Brackets inside brackets, and arithmetic inside arithmetic."""

CONJUNCTIONS_MAX = 64
"""How far OR is spread out for the index; past that, a filter is evaluated term by term."""
