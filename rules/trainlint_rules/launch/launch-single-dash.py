"""A long option with one dash."""

import re
from collections.abc import Iterator

from trainlint.api import Edit, FileView, Fix, Found, history, rule, started

LONG = re.compile(r"-[a-z]\w*_\w+")
ARGUMENTS = (("transformers", "TrainingArguments"), ("trl", "ModelConfig"), ("trl", "SFTConfig"))


@rule(severity="error", on="file")
def check(view: FileView) -> Iterator[Found]:
    for start in started.trainings(view.fragment):
        for option in start.arguments.values():
            if not LONG.fullmatch(option.key) or not _known(option.name):
                continue
            place = option.place
            edit = Edit(place._replace(end_line=place.line, end_column=place.column), "-")
            yield Found(
                at=place,
                message=f"`{option.key}` has one dash: the program knows `-{option.key}` alone, and stops",
                help=f"write `-{option.key}`",
                fix=Fix((edit,), "safe", f"write `-{option.key}`"),
            )


def _known(name: str) -> bool:
    return any(name in history.framework(framework).section(section) for framework, section in ARGUMENTS)
