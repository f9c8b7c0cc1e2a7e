"""`trainlint init`: a commented `trainlint.toml` that fits what lies in the tree."""

from __future__ import annotations

import json
from pathlib import Path

from trainlint.errors import TrainlintError
from trainlint.session import Request, open_session
from trainlint.settings import FILE, unknown_device


def write_settings(folder: Path) -> str:
    """Write the settings file of a folder and say what was seen. Raises TrainlintError where there is one already."""
    path = folder / FILE
    if path.exists():
        raise TrainlintError(f"{path} exists already")
    if not folder.is_dir():
        raise TrainlintError(f"{folder} is no folder")
    session = open_session(Request(paths=(str(folder),)))
    formats = sorted({fragment.format for fragment in session.fragments})
    names = {resolved.run.device.name.value for resolved in session.runs if resolved.run.device.name is not None}
    names = {name for name in names if not unknown_device(name)}
    versions: dict[str, str] = {}
    for resolved in session.runs:
        versions.update({name: value.value for name, value in resolved.run.versions.items()})
    try:
        path.write_text(settings_text(formats, sorted(names), versions), "utf-8")
    except OSError as error:
        raise TrainlintError(f"can not write `{path}`: {(error.strerror or str(error)).lower()}") from None
    runs = sum(resolved.fragments[0].launches for resolved in session.runs)
    return f"wrote {path}: {len(session.fragments)} training configs ({', '.join(formats) or 'none'}), {runs} runs"


def settings_text(formats: list[str], devices: list[str], versions: dict[str, str]) -> str:
    """The text of a settings file for what was found: names of formats and devices, versions by package."""
    device = f"device = {json.dumps(devices[0], ensure_ascii=False)}" if len(devices) == 1 else '# device = "RTX 4090"'
    pins = ", ".join(f'{name} = "{version}"' for name, version in sorted(versions.items()))
    found = ", ".join(formats) if formats else "no training config yet"
    pinned = f"# found in requirement and lock files: {pins}" if pins else '# versions = { transformers = "4.57" }'
    return f"""\
# Settings of trainlint. Found here: {found}.

# What the runs run on. Without a device, nothing is said of fitting.
{device}
# devices = 1
# device-memory = "24 GiB"     # where the name does not say it
# host-memory = "64 GiB"

# Versions of the frameworks, where no requirement or lock file says them.
{pinned}

# The data, where no local file shows it.
# data = {{ rows = 52000, tokens = {{ p50 = 180, p95 = 900 }} }}

# default, strict (info fails the gate too) or teaching (small models, learning material)
profile = "default"

select = ["ALL"]
ignore = []
fail-on = "warning"
exclude = []
# severity = {{ memory-little-headroom = "info" }}
# rule-paths = ["lint-rules"]

# [[overrides]]
# paths = ["configs/big/**"]
# device = "H100 80GB"
# devices = 8
"""
