"""Small recordings of sensors, of our own making."""

import json
from pathlib import Path

import numpy as np

ATTRIBUTES = "device=device.id,site=device.site,at:time,temperature,humidity,ok"


def readings(count: int = 900, devices: int = 9, seed: int = 1) -> list[dict]:
    """Return readings, one a second, as JSON has them; some lack their humidity."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        row = {
            "device": {
                "id": f"d{number % devices}",
                "site": ("north", "south")[int(random.integers(2))],
            },
            "at": f"2024-05-01T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z",
            "temperature": round(float(random.normal(20, 5)), 2),
            "humidity": int(random.integers(20, 90)),
            "ok": bool(random.random() < 0.9),
        }
        if number % 10 == 3:
            del row["humidity"]
        rows.append(row)
    return rows


def write_readings(path: Path, rows: list[dict], *others: str) -> Path:
    lines = [*(json.dumps(row) for row in rows), *others]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
