"""Filters, by what is bad about them, that are meant to take long or much to read."""

BOMBS: dict[str, tuple[str, str]] = {
    "brackets in brackets": ("(" * 60_000 + "x = 1" + ")" * 60_000, "sql"),
    "NOT of NOT": ("NOT " * 60_000 + "x = 1", "sql"),
    "minus of minus": ("x = " + "- " * 60_000 + "1", "sql"),
    "a thousand terms, and a thousand": (" OR ".join(["x = 1"] * 50_000), "sql"),
    "a product of sums": (
        " AND ".join(f"(a{n} = 1 OR b{n} = 2 OR c{n} = 3)" for n in range(60)),
        "sql",
    ),
    "LIKE with many parts": (f"t LIKE '{'%a' * 500}%b'", "sql"),
    "many LIKE": (" OR ".join(f"t LIKE '%{n}%{n}%_%{n}%'" for n in range(400)), "sql"),
    "LIKE of signs": (f"t LIKE '{'_%' * 500}'", "sql"),
    "a text that does not end": ("x = '" + "a" * 1_000_000, "sql"),
    "quotes in quotes": ("x = '" + "''" * 300_000 + "'", "sql"),
    "a number without end": ("x = " + "9" * 500_000, "sql"),
    "an exponent": ("x = 1e999999999", "sql"),
    "arithmetic": ("x = " + "1 + " * 50_000 + "1", "sql"),
    "a list without end": (f"x IN ({', '.join(['1'] * 200_000)})", "sql"),
    "python in brackets": ("(" * 60_000 + "x == 1" + ")" * 60_000, "python"),
    "python powers": ("x == 9 ** 9 ** 9 ** 9", "python"),
    "python not": ("not " * 60_000 + "x == 1", "python"),
    "padres without end": ("[x,=,1]," * 60_000 + "[x,=,1]", "padres"),
    "a dialect that is not there": ("x = 1", "x" * 100_000),
    "nothing": ("", "sql"),
}
