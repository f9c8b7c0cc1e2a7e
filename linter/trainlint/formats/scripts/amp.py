"""The order of mixed-precision and optimizer calls along a script's training loops, as data that rules can read.

A scope is a function or the module; a loop is part of it. Calls of the file's own functions are followed, so that what
they do stands where they are called (`via` names them). Nothing is run: an event under an `if` is *conditional*, and
so is what follows an `if` that leaves the block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from trainlint.documents import Place

EventKind = Literal[
    "autocast",
    "scaler",
    "scaled-backward",
    "backward",
    "accelerator-backward",
    "engine-backward",
    "manual-backward",
    "unscale",
    "clip",
    "scaler-step",
    "scaler-update",
    "step",
    "zero-grad",
]


@dataclass(frozen=True, slots=True)
class Event:
    """One call.

    * `autocast` is entered, `scaler` is built: `dtype` (`float16`, … or None), `device` and `enabled` as literals;
      `enabled` is True where it is absent and None where only a run decides. `api` is the dotted origin.
    * `scaled-backward`: `scaler.scale(loss).backward()`; `backward`: `loss.backward()`; `accelerator-backward`,
      `engine-backward` (DeepSpeed), `manual-backward` (Lightning, Fabric) have their own scaling. `divided` says
      whether the loss was divided before, None where that is not seen.
    * `unscale`, `scaler-step`, `scaler-update`, `step`, `zero-grad`, `clip` (`owner` is `accelerator` where
      accelerate's own method clips, which unscales itself; `fabric`, `engine` likewise).

    `owner` is what the method is called on (of a `scaler` the name it is given), `subject` the first argument (loss,
    optimizer, parameters) as written. `inside` names the contexts around it: `autocast`, `accumulate`, `no_sync`.
    """

    kind: EventKind
    place: Place
    owner: str = ""
    subject: str = ""
    api: str = ""
    dtype: str | None = None
    device: str | None = None
    enabled: bool | None = True
    divided: bool | None = None
    conditional: bool = False
    condition: str = ""
    inside: tuple[str, ...] = ()
    via: str = ""


@dataclass(frozen=True, slots=True)
class Loop:
    """A `for` or `while`: its events and inner loops in order; `over` is what it goes through or its condition."""

    place: Place
    over: str
    body: tuple[Event | Loop, ...]
    conditional: bool = False

    @property
    def events(self) -> tuple[Event, ...]:
        """All events in order, those of inner loops included."""
        return tuple(_events(self.body))


@dataclass(frozen=True, slots=True)
class Scope:
    """A function (`Class.method`), or the module (an empty name). `bases` are the bases of a method's class."""

    name: str
    place: Place
    body: tuple[Event | Loop, ...]
    bases: tuple[str, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """All events in order, those in loops included."""
        return tuple(_events(self.body))

    @property
    def loops(self) -> tuple[Loop, ...]:
        """All loops, the inner ones after the outer."""
        return tuple(_loops(self.body))


@dataclass(frozen=True, slots=True)
class Amp:
    """Everything of a script: scopes in which something happens, and each scaler and autocast that is built."""

    scopes: tuple[Scope, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of all scopes, each once, in the order of the text."""
        found = {event.place: event for scope in self.scopes for event in scope.events if not event.via}
        return tuple(sorted(found.values(), key=lambda event: event.place))

    def of(self, *kinds: EventKind) -> tuple[Event, ...]:
        """The events of these kinds."""
        return tuple(event for event in self.events if event.kind in kinds)


def _events(body: tuple[Event | Loop, ...]) -> Iterator[Event]:
    for item in body:
        if isinstance(item, Event):
            yield item
        else:
            yield from _events(item.body)


def _loops(body: tuple[Event | Loop, ...]) -> Iterator[Loop]:
    for item in body:
        if isinstance(item, Loop):
            yield item
            yield from _loops(item.body)
