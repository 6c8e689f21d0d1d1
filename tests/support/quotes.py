"""Small quote files of our own making."""

from pathlib import Path

from octopis.scenario.stock import SYMBOLS, daily_quotes

HEADER = "Date,Symbol,Open,High,Low,Close,Volume"


def csv_rows(symbols: int = 5, days: int = 20, seed: int = 1) -> list[str]:
    """Return rows in the order of HEADER."""
    columns = daily_quotes(seed, days)
    names = ("date", "symbol", "open", "high", "low", "close", "volume")
    return [
        ",".join(str(columns[name][day * SYMBOLS + symbol]) for name in names)
        for day in range(days)
        for symbol in range(symbols)
    ]


def write_lines(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def padres_line(row: str) -> str:
    """Return a CSV row as PADRES text."""
    date, symbol, opening, high, low, close, volume = row.split(",")
    return (
        f"[class,'STOCK'],[symbol,'{symbol}'],[open,{opening}],[high,{high}],[low,{low}],"
        f"[close,{close}],[volume,{volume}],[date,'{date}']"
    )
