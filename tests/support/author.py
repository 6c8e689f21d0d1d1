"""Random filters, as text with every operator, and random notifications."""

import random
from collections.abc import Sequence
from typing import Any

Attributes = dict[str, Any]
NAMES = ("a", "b", "c", "d", "e", "f", "g")
NUMBERS = (
    0, 1, -1, 2, 3, 10, 50, 99, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1, 2**62 + 1,
    2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1,
    -0.0, 0.5, 1.0, 2.5, -3.25, 2.0**53, 2.0**63, -(2.0**63), 1e300, -1e300, 5e-324, 9e15,
    0.5 + 2**-53, 1.7976931348623157e308, -1.7976931348623157e308,
)  # fmt: skip
TEXTS = (
    "", "\0", "a", "a\0", "a\0b", "ab", "abc", "b", "ba", "z", "\u00e9", "\ud7ff", "\ud7ff\0",
    "\ue000", "\ue000x", "\uffff", "\U0010ffff", "a\U0010ffff", "a\U0010ffffz", "it's", "50%",
)  # fmt: skip
COMPARATORS = ("=", "<>", "<", "<=", ">", ">=")


class Author:
    """Writes random filters in the SQL dialect, with every operator, and notifications."""

    def __init__(self, seed: int, names: Sequence[str] = NAMES) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.names = names

    def number(self) -> int | float:
        if self.random.random() < 0.5:
            return self.random.choice(NUMBERS)
        return self.random.choice((self.random.randrange(-50, 150), self.random.random() * 100))

    def text(self) -> str:
        if self.random.random() < 0.6:
            return self.random.choice(TEXTS)
        return "".join(self.random.choices("ab%_\0", k=self.random.randrange(5)))

    def value(self) -> str | int | float | bool:
        kind = self.random.random()
        return self.number() if kind < 0.5 else self.text() if kind < 0.9 else kind < 0.95

    def notification(self) -> Attributes:
        most = min(len(self.names), 64)
        present = self.random.choice((0, 3, 5, most))
        found: Attributes = {name: self.value() for name in self.random.sample(self.names, present)}
        if found and self.random.random() < 0.1:  # given so by hand, it is absent
            found[self.random.choice(list(found))] = None
        return found

    def condition(self) -> str:
        shape = self.random.random()
        if shape < 0.55:
            return " AND ".join(self.term() for _ in range(self.random.randrange(1, 4)))
        if shape < 0.75:
            parts = [f"({self.term()} AND {self.term()})" for _ in range(3)]
            return " OR ".join([*parts, self.term()])
        if shape < 0.85:
            return f"NOT ({self.term()} OR {self.term()}) AND ({self.term()} OR {self.term()})"
        if shape < 0.9:  # past the limit of spreading: 2 to the power of 7
            return " AND ".join(
                f"({name} < 5 OR {self.term()} OR {name} IS NULL)" for name in self.names[:7]
            )
        return self.term()

    def wide_or(self) -> str:
        """Return an OR of more conjunctions than a filter is multiplied out into."""
        terms = (self.term() for _ in range(self.random.choice((85, 105))))
        # TRUE would be all that is left, and a filter's length is bounded.
        parts = [term for term in terms if term != "TRUE" and len(term) <= 30]
        if self.random.random() < 0.5:  # ORs inside, which need one of a few attributes
            chosen = [self.random.sample(self.names, 3) for _ in range(7)]
            parts += [" AND ".join(f"({a} = 1 OR {b} > 2 OR {c} LIKE '%a')" for a, b, c in chosen)]
        return " OR ".join(f"({part})" for part in parts)

    def term(self) -> str:
        name, other = self.random.sample(self.names, 2)
        kind = self.random.randrange(12)
        no = self.random.choice(("", "NOT "))
        if kind < 4:
            return f"{name} {self.random.choice(COMPARATORS)} {shown(self.either()())}"
        if kind == 4:
            one = self.either()
            return f"{name} {no}BETWEEN {shown(one())} AND {shown(one())}"
        if kind == 5:
            members = [self.value() for _ in range(self.random.choice((1, 3, 40)))]
            return f"{name} {no}IN ({', '.join(map(shown, members))})"
        if kind == 6:
            pattern = self.random.choice(("{}%", "%{}", "%{}%", "{}_", "_{}%", "{}", "{}%_"))
            return f"{name} {no}LIKE {shown(pattern.format(self.text()))}"
        if kind == 7:
            return f"{name} IS {no}NULL"
        return self.rare_term(name, other)

    def rare_term(self, name: str, other: str) -> str:
        return self.random.choice(
            (
                f"{name} {self.random.choice(COMPARATORS)} {other}",
                f"{name} {self.random.choice('+-*/%')} {other} > {shown(self.number())}",
                f"-{name} <= {shown(self.number())}",
                f"{name} LIKE 'a!%%' ESCAPE '!'",
                f"{name} IS NULL AND {name} IS NOT NULL",
                f"{name} > 3 AND {name} < 2",
                name,
                f"{name} <> TRUE",
                "TRUE",
                "FALSE",
            )
        )

    def either(self) -> Any:
        return self.random.choice((self.number, self.number, self.text))


def shown(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return str(value)
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
