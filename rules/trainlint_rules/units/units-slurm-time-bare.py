"""A time limit that reads like hours and is minutes."""

import re
from collections.abc import Iterator

from trainlint.api import Edit, FileView, Fix, Found, rule, started

TIME = re.compile(r"(\d+)(?::(\d\d))?")
BARE = (8, 12, 16, 18, 24, 36, 48, 72, 96, 120, 144, 168)
"""Numbers that people give in hours; 30, 60 and 90 are minutes to everybody, 120 with seconds behind it is not."""
TRIES = re.compile(r"test|debug|dev|short|smoke|interactive|quick|demo", re.IGNORECASE)
NAMES = ("job-name", "J", "partition", "qos", "q")


@rule(severity="warning", on="file")
def check(view: FileView) -> Iterator[Found]:
    found = started.directives(view.fragment)
    limit = found.get("time")
    match = TIME.fullmatch(limit.text) if limit is not None else None
    if limit is None or match is None or not started.trainings(view.fragment):
        return
    number, seconds = int(match[1]), match[2]
    if number not in BARE or (seconds is None and number >= 120) or (seconds or "00") != "00":
        return
    line = view.document.line(limit.place.line)[limit.place.end_column - 1 :]
    if "min" in line or any(TRIES.search(found[name].text) for name in NAMES if name in found):
        return
    days, hours = divmod(number, 24)
    meant = f"{days}-{hours:02d}:00:00" if days and number > 24 else f"{number}:00:00"
    yield Found(
        at=limit.place,
        message=f"`--time={limit.text}` is {number} minutes: Slurm reads "
        + ("minutes and seconds" if seconds else "a bare number as minutes"),
        help=f"write `--time={meant}` for {number} hours",
        fix=Fix((Edit(limit.place, meant),), "unsafe"),
    )
