"""Accelerators: from a name as people write it to what the device has and can do.

`facts/devices.json` holds one entry a product: its name, other names, what its architecture implies, and its variants
by memory size and form factor. A name is normalised (case, separators, vendor words), its size ("80GB"), form factor
("SXM4") and MIG profile ("1g.10gb") are taken off, and the rest is looked up. A size or form chooses among the
variants; where several are left, a fact on which they differ is an interval (memory) or unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from trainlint.facts import store

MIB = 1 << 20
GIB = 1 << 30

# Where the driver's number was not seen: it keeps at most 1.3 % of the marketing size (A30; RTX 5060 0.5 %, H100 0.4 %,
# A100 nothing: nvidia-smi). Cards with ECC on GDDR keep 1/16 of it (A10, A40, T4): the data says so, card by card.
UNSEEN = 0.985
# A MIG slice has 95 to 100 % of the GiB in its name (nvidia-smi mig -lgip: 4.75 of 5, 9.50 to 9.75 of 10, 79.25 of 80).
SLICE = 0.95
# Metal's recommendedMaxWorkingSetSize as a share of unified memory, by size and macOS release. Seen: 16 and 24 GiB 2/3,
# newer macOS 0.74 (16, 18 GiB) and 0.78 (32, 36 GiB), lowest 0.59; above 36 GiB 3/4, highest 0.85.
WORKING_SET = {"small": (0.59, 0.78), "large": (2 / 3, 0.85)}
SMALL = 36 * GIB


@dataclass(frozen=True)
class Device:
    """What one device has and can do. None: not known.

    `memory`: bytes low..high as the driver reports them, equal when certain; None for a processor: it has its host's.
    `usable`: bytes low..high that the GPU may use, where that is less than `memory` (unified memory under Metal).
    `capability`: CUDA compute capability; `architecture` also names AMD's (gfx942).
    `bf16`: native, emulated or none; `fp16`: tensor (matrix units), fast (double rate) or slow.
    `bandwidth`: of the memory, bytes a second. `sizes`: the marketing sizes the name is sold with, in GB.
    """

    name: str
    vendor: str
    memory: tuple[int, int] | None
    architecture: str | None
    capability: tuple[int, int] | None
    bf16: str | None
    fp16: str | None
    fp8: bool | None
    fp4: bool | None
    tf32: bool | None
    flash_attention_2: bool | None
    unified: bool
    usable: tuple[int, int] | None
    bandwidth: int | None
    interconnect: str | None
    sizes: tuple[int, ...]
    source: str


@dataclass(frozen=True)
class Match:
    """A device, the memory its written name claims ("RTX 4090 48GB": 48 GiB in bytes; None if it names no size), and
    whether that is a size the device is not sold with.
    """

    device: Device
    claimed: int | None = None
    contradicted: bool = False


NOISE = re.compile(
    "nvidia|geforce|tesla|amd|radeon|instinct|intel|google|aws|gpus?|graphics|card|accelerators?|data|center|datacenter|"
    "gen|generation|edition|tensor|core|mega|shared|hbm\\d?e?|gddr\\d?x?"
)
SAME = {"mobile": "laptop", "notebook": "laptop", "pci": "pcie"}
SIZE = re.compile(r"(?<![\da-z.])(\d+)\s*(?:gib|gb|g)(?![\da-z])")
MIG = re.compile(r"(?:mig[\s-]*)?(?<!\d)(\d)g\.(\d+)gb(\+[a-z.]+)?")
TPU_SLICE = re.compile(r"\b((?:tpu[ -]?)?v(?:\d[epx]?|5litepod))-\d+\b")
FORM = re.compile(r"(sxm\d?|pcie|nvl)$")


def _key(text: str) -> str:
    text = re.sub(r"\((r|tm)\)|[®™]", " ", text.lower()).replace("max-q", "maxq")
    words = [SAME.get(word, word) for word in re.findall(r"[a-z0-9+]+", text)]
    return "".join(word for word in words if not NOISE.fullmatch(word))


@cache
def _entries() -> dict[str, dict[str, Any]]:
    """Normalised name to entry, for every name, with and without the words people leave out."""
    keys: dict[str, dict[str, Any]] = {}
    for entry in store.read("facts", "devices")["devices"]:
        for name in (entry["name"], *entry.get("aliases", ())):
            key = _key(name)
            keys.setdefault(key, entry)
            for prefix in ("rtx", "gtx", "rx", "apple", "tpu"):  # people write "4090", "7900 XTX", "M2 Pro", "v5e"
                rest = key.removeprefix(prefix)
                if rest not in ("", key) and (rest[0].isdigit() or prefix in ("apple", "tpu")):
                    keys.setdefault(rest, entry)
    return keys


def _bounds(variant: dict[str, Any]) -> tuple[int, int]:
    match variant.get("mib"):
        case [int(low), int(high)]:
            return low * MIB, high * MIB
        case int(exact):
            return exact * MIB, exact * MIB
        case _:
            size: int = variant["gb"] * GIB
            return int(size * UNSEEN), size


def _sold_as(variant: dict[str, Any], claimed: int) -> bool:
    low, high = _bounds(variant)
    return claimed // GIB in (variant["gb"], *variant.get("also", ())) or 0.96 * low <= claimed <= 1.04 * high


def _usable(memory: tuple[int, int]) -> tuple[int, int]:
    low, high = (WORKING_SET["small" if size <= SMALL else "large"] for size in memory)
    return int(memory[0] * low[0]), int(memory[1] * high[1])


def _device(entry: dict[str, Any], form: str | None, claimed: int | None) -> Device:
    """The device of an entry, narrowed by form factor and size; a size nobody sells narrows nothing."""
    every: list[dict[str, Any]] = entry["variants"]
    formed = [v for v in every if form and v.get("form", "").lower().startswith(form)]
    sized = [v for v in formed or every if claimed is not None and _sold_as(v, claimed)]
    if claimed is not None and len({v["gb"] for v in sized}) > 1:
        nearest = min(abs(v["gb"] - claimed // GIB) for v in sized)
        sized = [v for v in sized if abs(v["gb"] - claimed // GIB) == nearest]
    chosen = sized or formed or [v for v in every if not v.get("named")]
    name = entry["name"]
    usual = {v["gb"] for v in every if not v.get("named") and (not formed or v in formed)}
    if len(sizes := {v["gb"] for v in chosen}) == 1 and (usual | sizes) != sizes:
        name += f" {min(sizes)}GB"
    if len(forms := {v.get("form") for v in chosen}) == 1 and len({v.get("form") for v in every}) > 1 and formed:
        name += f" {forms.pop()}"
    bounds = [_bounds(v) for v in chosen]
    memory = (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else None

    def agreed(fact: str) -> Any:
        values = {v.get(fact) for v in chosen} - {None}
        return values.pop() if len(values) == 1 and all(fact in v for v in chosen) else entry.get(fact)

    architecture: str | None = entry.get("architecture")
    able = {**store.read("facts", "devices")["architectures"].get(architecture, {}), **entry}
    digits = re.fullmatch(r"(\d+)\.(\d+)", architecture or "")
    bandwidth = agreed("bandwidth")
    unified = bool(entry.get("unified"))
    return Device(
        name=name,
        vendor=entry["vendor"],
        memory=memory,
        architecture=architecture,
        capability=(int(digits[1]), int(digits[2])) if digits else None,
        bf16=able.get("bf16"),
        fp16=able.get("fp16"),
        fp8=able.get("fp8"),
        fp4=able.get("fp4"),
        tf32=able.get("tf32"),
        flash_attention_2=able.get("flash_attention_2"),
        unified=unified,
        usable=_usable(memory) if memory and unified and entry["vendor"] == "apple" else None,
        bandwidth=None if bandwidth is None else bandwidth * 10**9,
        interconnect=agreed("interconnect"),
        sizes=tuple(sorted({size for v in chosen for size in (v["gb"], *v.get("also", ()))})),
        source=entry.get("source") or "; ".join(dict.fromkeys(v["source"] for v in chosen)),
    )


ANY_SLICED = Device(
    name="",
    vendor="nvidia",
    memory=None,
    architecture=None,
    capability=None,
    bf16="native",
    fp16="tensor",
    fp8=None,
    fp4=None,
    tf32=True,
    flash_attention_2=True,
    unified=False,
    usable=None,
    bandwidth=None,
    interconnect=None,
    sizes=(),
    source="what can be sliced has compute capability 8.0 or more (NVIDIA MIG user guide)",
)


def _sliced(device: Device, profile: re.Match[str]) -> Device:
    """A MIG slice of a device."""
    size = int(profile[2]) * GIB
    return replace(
        device,
        name=f"{device.name} MIG {profile[1]}g.{profile[2]}gb{profile[3] or ''}".strip(),
        memory=(int(size * SLICE), size),
        bandwidth=None,
        interconnect=None,
        sizes=(int(profile[2]),),
        source=f"memory: nvidia-smi mig -lgip, 95 to 100 % of the size in the profile's name; {device.source}",
    )


@cache
def match(text: str) -> Match | None:
    """The device a text names, with the memory size the text claims; None when it names no device known."""
    rest = TPU_SLICE.sub(r"\1", text.strip().lower().removeprefix("nvidia.com/"))
    if profile := MIG.search(rest):
        rest = rest.replace(profile[0], " ").replace("mig", " ")
    size = None
    for size in SIZE.finditer(rest):
        rest = rest.replace(size[0], " ", 1)
    claimed = int(size[1]) * GIB if size else None
    key = _key(rest)
    found, form = _entries().get(key), None
    if not found and (tail := FORM.search(key)):
        found, form = _entries().get(key[: tail.start()]), tail[1]
    if not found and key.endswith("maxq"):
        found = _entries().get(key.removesuffix("maxq") + "laptop")
    if not found:
        return Match(_sliced(ANY_SLICED, profile)) if profile and not key else None
    device = _device(found, form, claimed)
    if profile:
        return Match(_sliced(device, profile))
    known = claimed is None or not found["variants"] or any(_sold_as(v, claimed) for v in found["variants"])
    return Match(device, claimed, contradicted=not known)


def find(text: str) -> Device | None:
    """The device a text names; None when it names none known."""
    found = match(text)
    return found.device if found else None


@cache
def every() -> tuple[Device, ...]:
    """All devices, one for each memory size, in the order of the data (by vendor, then by name)."""
    found: dict[str, Device] = {}
    for entry in store.read("facts", "devices")["devices"]:
        for size in sorted({v["gb"] for v in entry["variants"]}) or [None]:
            device = _device(entry, None, None if size is None else size * GIB)
            found.setdefault(device.name, device)
    return tuple(found.values())


def nearest(text: str, count: int = 3) -> tuple[str, ...]:
    """Names of devices like the text, the likest first; for a message that a device is not known."""
    from difflib import get_close_matches

    names = {_key(device.name): device.name for device in reversed(every())}
    return tuple(names[key] for key in get_close_matches(_key(text), names, n=count, cutoff=0.5))
