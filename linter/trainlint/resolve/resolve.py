"""From fragments to runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainlint.formats import Draft, Format, Fragment
from trainlint.resolve.checkpoints import add_checkpoint
from trainlint.resolve.data import add_data
from trainlint.resolve.duration import add_duration
from trainlint.resolve.hardware import add_hardware
from trainlint.resolve.join import Joiner, Member, Opener, Reason
from trainlint.resolve.machines import mark_machines
from trainlint.resolve.model import add_model
from trainlint.resolve.overrides import with_overrides
from trainlint.resolve.precedence import explain, merged, settle
from trainlint.resolve.stated import Stated
from trainlint.resolve.template import add_template
from trainlint.resolve.versions import versions_at
from trainlint.run import TrainingRun, Value, build

PROFILES = ("default", "strict", "teaching")


@dataclass(frozen=True)
class Resolved:
    """A run with the fragments it was read from, the root first, and why each belongs to it."""

    run: TrainingRun
    fragments: tuple[Fragment, ...]
    reasons: tuple[Reason, ...] = ()


def resolve(
    fragments: Iterable[Fragment],
    formats: Mapping[str, Format],
    settings_of: Callable[[Path], Stated],
    asked: Stated,
    opened: Opener,
) -> list[Resolved]:
    """All runs of some fragments; `asked` is what the command line says, `opened` reads files that are named."""
    fragments = list(fragments)
    mark_machines(fragments)
    return [_resolved(joined, formats, settings_of, asked) for joined in Joiner(fragments, opened).runs()]


def _resolved(
    joined: list[Member], formats: Mapping[str, Format], settings_of: Callable[[Path], Stated], asked: Stated
) -> Resolved:
    members = with_overrides(joined, formats)
    root = members[0]
    path = Path(root.file)
    settings = settings_of(path)
    versions: dict[str, Value[str]] = dict(_contained(members))
    for member in reversed(members):
        versions.update(versions_at(Path(member.file).parent))
    versions.update(_installed(members))
    versions.update(settings.versions)
    draft = Draft(tuple(members), merged(members), versions)
    add_hardware(draft, root.document.comments, settings, asked)
    add_model(draft, path)
    add_data(draft, settings, path)
    add_template(draft, path)
    _world(draft)
    if root.launches:
        formats[root.format].complete(draft)
    explain(draft)
    _derive(draft)
    add_duration(draft)
    add_checkpoint(draft)
    draft.values["profile"] = _profile(root, settings, asked)
    draft.values.update({f"versions.{name}": value for name, value in versions.items()})  # type: ignore[misc]
    files = tuple(dict.fromkeys(member.file for member in members))
    run = build(root.file, root.format, files, draft.values, draft.possible)
    return Resolved(run, tuple(members), tuple(member.reason for member in joined))


def _contained(members: list[Fragment]) -> Iterator[tuple[str, Value[str]]]:
    """Versions that the tag of the container's image says."""
    for member in reversed(members):
        named = member.values.get("launch.image")
        if named is not None and isinstance(named.value, str) and named.place is not None:
            from trainlint.resolve.versions.container import image

            yield from ((name, value) for name, value in image(named.value, named.place, named.file_format) if value)


def _installed(members: list[Fragment]) -> Iterator[tuple[str, Value[str]]]:
    """Versions that a launcher installs before it starts the training."""
    for member in reversed(members):
        for path, value in member.values.items():
            if path.startswith("versions.") and isinstance(value.value, str):
                yield path.removeprefix("versions."), value  # type: ignore[misc]


def _profile(root: Fragment, settings: Stated, asked: Stated) -> Value[object]:
    """The profile of a run: of the command line, a comment in the file, the run file, the settings."""
    if asked.profile != "default":
        return Value(asked.profile, "written", "--profile", raw=asked.profile)
    for comment in root.document.comments:
        name, _, profile = (part.strip() for part in comment.text.partition("="))
        if name == "profile" and profile in PROFILES:
            return Value(profile, "written", name, comment.place, profile)
    written = root.values.get("profile")  # a run file's own word
    if written is not None:
        return written
    return Value(settings.profile, "default" if settings.profile == "default" else "written", "profile")


def _world(draft: Draft) -> None:
    """The processes of all machines: formats ask how many there are."""
    per_node, nodes = draft.get("parallel.per_node"), draft.get("parallel.nodes")
    if isinstance(per_node, int):
        draft.derive("parallel.world", per_node * (nodes if isinstance(nodes, int) else 1), "processes per node, nodes")


def _derive(draft: Draft) -> None:
    """What follows from numbers of several sources: processes, the effective batch."""
    _world(draft)
    count = draft.get("device.count")
    if isinstance(count, int) and "parallel.world" not in draft.values and draft.get("sharding.kind") != "device-map":
        draft.derive("parallel.world", count, "the number of devices")
    degrees = 1
    for name in ("tensor", "pipeline", "context"):
        degree = draft.get(f"parallel.{name}")
        degrees *= degree if isinstance(degree, int) and degree > 0 else 1
    world = draft.get("parallel.world")
    if isinstance(world, int):
        draft.derive("parallel.data", max(1, world // degrees), "the number of processes")
    micro, steps, data = (draft.get(path) for path in ("batch.micro", "batch.accumulation", "parallel.data"))
    if isinstance(micro, int) and isinstance(steps, int) and isinstance(data, int):
        note = "micro batch, accumulation and data-parallel processes"
        said = draft.values.get("batch.effective")
        if said is not None and said.file_format == "deepspeed" and draft.fragments[0].launches:
            settle(draft, said, micro * steps * data, note)
        draft.derive("batch.effective", micro * steps * data, note, "sample")
