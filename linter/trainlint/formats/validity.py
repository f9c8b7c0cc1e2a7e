"""Values that a format's schema does not take and its loader can make no such value of: `bf16: maybe`, `stage: 5`.

Two steps. A screen in plain Python lets pass what the loader may turn into the wanted type: numbers in quotes, `2e8`
for a whole number, words for flags, null, references that something else fills in. What is left goes to jsonschema with
the key's own part of the schema, which has the last word and says what is wanted. jsonschema takes 80 ms to import and
is imported for such values only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from trainlint.documents import Entry, Node, Scalar, Sequence, plain
from trainlint.documents import Mapping as Block
from trainlint.formats.fragment import Fragment
from trainlint.formats.reading import real, schema, truth, whole

if TYPE_CHECKING:
    from jsonschema import ValidationError

WORDS = {
    "integer": ("a whole number",),
    "number": ("a number",),
    "boolean": ("true", "false"),
    "string": ("a text",),
    "array": ("a list",),
    "object": ("a mapping",),
}
"""What the types of JSON Schema are called in a message."""
LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
}
MOST = 6
"""Choices that a message names; of more than one besides it gives the number."""
OPEN = re.compile(r"\s*|.*[$<>{}%].*|\?+|\.+|[A-Z0-9]+(_[A-Z0-9]+)+|TODO|TBD|X+", re.DOTALL)
"""A text that something else replaces before the loader sees it: an interpolation, a template, a blank to fill in."""
FLAGS = frozenset(("on", "off", "t", "f", "y", "n"))
NOT_FINITE = frozenset(("inf", "+inf", "-inf", "infinity", "-infinity", "nan"))


@dataclass(frozen=True, slots=True)
class Fault:
    """A value that is not what its key takes.

    `wanted` completes "is not …": `a whole number`, `one of 0, 1, 2, 3`; `choices` are those values, if it is a choice.
    `refused`: the loader, or what it hands the value to, stops for certain.
    """

    entry: Entry
    dotted: str
    wanted: str
    choices: tuple[object, ...] = ()
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Loader:
    """How a format's values are read: `schema` below the dotted `prefix`, of which only keys `within` are judged.

    `refuses`: keys, or prefixes ending in a dot, where a value of another type stops the program (`"."`: all). `typed`:
    every value is converted to its declared type, else a wrong flag or list may go through unseen, and only a word in
    place of a number or outside a choice is sure to stop. `exact`: as `refuses`, choices in which case counts.
    `single`: a text may stand for a list. `words`: texts that every key takes.
    """

    schema: str
    prefix: str = ""
    within: str = ""
    refuses: tuple[str, ...] = ()
    typed: bool = False
    exact: tuple[str, ...] = ()
    single: bool = True
    words: frozenset[str] = frozenset()


ALL = (".",)
AUTO = frozenset(("auto",))
LENIENT = frozenset(("auto", "none", "null"))
STRATEGIES = ("eval_strategy", "evaluation_strategy", "save_strategy")
TRAINER = (
    "per_device_train_batch_size", "per_device_eval_batch_size", "gradient_accumulation_steps", "learning_rate",
    "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm", "num_train_epochs", "max_steps",
    "warmup_ratio", "warmup_steps", *STRATEGIES,
)  # fmt: skip
"""TrainingArguments that are compared, multiplied or looked up before the first step, whatever the script is."""
DEEPSPEED = (
    "zero_optimization.", "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "bf16",
    "fp16",
)  # fmt: skip
LAUNCH = (
    "compute_environment", "distributed_type", "mixed_precision", "num_processes", "num_machines", "machine_rank",
    "deepspeed_config.zero_stage", "deepspeed_config.gradient_accumulation_steps", "deepspeed_config.gradient_clipping",
)  # fmt: skip


def _deepspeed(prefix: str = "") -> Loader:
    """DeepSpeed's pydantic sections drop `auto` and take whole numbers as `2e8`; the batch numbers are compared."""
    return Loader("deepspeed", prefix, refuses=DEEPSPEED, typed=True, exact=ALL, words=AUTO)


LOADERS: Mapping[str, tuple[Loader, ...]] = {
    "accelerate": (Loader("accelerate", refuses=LAUNCH, exact=("compute_environment", "distributed_type")),),
    "deepspeed": (_deepspeed(),),
    "hf-trainer": (Loader("hf-trainer", refuses=TRAINER, exact=STRATEGIES, words=AUTO), _deepspeed("deepspeed.")),
    "trl": (Loader("trl", refuses=ALL), Loader("hf-trainer", refuses=ALL, exact=STRATEGIES), _deepspeed("deepspeed.")),
    "llamafactory": (
        Loader("llamafactory", refuses=ALL, exact=ALL),
        Loader("hf-trainer", refuses=TRAINER, exact=STRATEGIES),
        _deepspeed("deepspeed."),
    ),
    "axolotl": (Loader("axolotl", refuses=ALL, typed=True, single=False), _deepspeed("deepspeed.")),
    "mlx-lm": (Loader("mlx-lm", exact=("fine_tune_type",)),),
    "peft-adapter": (Loader("peft-adapter"),),
    "ms-swift": (Loader("ms-swift", refuses=ALL, typed=True),),
    "lightning": (Loader("lightning", within="trainer.", refuses=ALL, typed=True),),
    "litgpt": (Loader("litgpt", refuses=ALL, typed=True),),
    **{
        name: (Loader(name, words=LENIENT),)
        for name in (
            "gpt-neox", "llm-foundry", "maxtext", "nemo", "nemo-automodel", "openrlhf", "oumi", "torchtitan",
            "torchtune", "trlx", "verl",
        )
    },
}  # fmt: skip
"""Formats whose values have types. Not a model's `config.json`: each architecture has its own."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the screen needs of a key's schema: JSON types, words beside them, choices, and whether a range is set."""

    types: frozenset[str]
    words: frozenset[str] = frozenset()
    choices: tuple[object, ...] = ()
    ranged: bool = False

    @property
    def numeric(self) -> bool:
        """Whether a number is wanted."""
        return bool(self.types & {"integer", "number"})


def faults(fragment: Fragment) -> list[Fault]:
    """The values of a file that are not of the type, choice or range that their keys take, in the order of the file."""
    found: list[Fault] = []
    loaders = LOADERS.get(fragment.format, ())
    known = [(loader, _shapes(loader.schema)) for loader in loaders]
    for dotted, entry in fragment.keys.items() if known else ():
        for loader, shapes in known:
            name = dotted.removeprefix(loader.prefix) if dotted.startswith(loader.prefix) else ""
            if name not in shapes or not name.startswith(loader.within):
                continue
            shape, part = shapes[name]
            if not _plausible(entry.value, shape, loader, _among(name, loader.exact)):
                found.extend(_judged(entry, dotted, name, loader, part))
            break
    return found


@cache
def _shapes(name: str) -> dict[str, tuple[Shape, dict[str, Any]]]:
    """The keys of a schema that say what their values are, by dotted path, with their part of the schema."""
    return dict(_typed(schema(name).get("properties", {}), ""))


def _typed(properties: dict[str, Any], prefix: str) -> Iterator[tuple[str, tuple[Shape, dict[str, Any]]]]:
    for key, part in properties.items():
        if shape := _shape(part):
            yield prefix + key, (shape, part)
        yield from _typed(part.get("properties", {}), f"{prefix}{key}.")


def _shape(part: dict[str, Any]) -> Shape | None:
    ways = part.get("anyOf", (part,))
    types = frozenset(kind for way in ways for kind in _listed(way.get("type", ())))
    words = [word for way in part.get("anyOf", ()) for word in (*way.get("enum", ()), *_listed(way.get("const", ())))]
    choices = tuple(part.get("enum", ()))
    if not types and not choices:
        return None
    ranged = any(key in way for way in ways for key in LIMITS)
    return Shape(types, frozenset(str(word).lower() for word in words), choices, ranged)


def _listed(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _plausible(node: Node, shape: Shape, loader: Loader, exact: bool) -> bool:
    """Whether the loader may make a fitting value of what is written."""
    match node:
        case Block():
            return "object" in shape.types
        case Sequence():
            return "array" in shape.types
        case Scalar(value=bool() as flag):
            return not flag or (not shape.choices and bool(shape.types & {"boolean", "string"}))
        case Scalar(value=int() | float() as number):
            return _number(number, shape)
        case Scalar(value=str() as text):
            return _text(text, shape, loader, exact)
    return True  # null: not set; a date and the like


def _number(number: float, shape: Shape) -> bool:
    if shape.choices:
        return number in shape.choices or str(number) in shape.choices
    if shape.ranged:
        return False
    if "number" in shape.types or ("integer" in shape.types and whole(number) is not None):
        return True
    return "string" in shape.types or ("boolean" in shape.types and truth(number) is not None)


def _text(text: str, shape: Shape, loader: Loader, exact: bool) -> bool:
    word = text.strip().lower()
    if word in loader.words or word in shape.words or OPEN.fullmatch(text):
        return True
    if shape.choices:
        return any(text == str(choice) or (not exact and word == str(choice).lower()) for choice in shape.choices)
    if "string" in shape.types or ("array" in shape.types and loader.single):
        return True
    if "number" in shape.types:
        return real(text) is not None or word in NOT_FINITE
    if "integer" in shape.types and whole(text) is not None:
        return True
    return "boolean" in shape.types and (truth(text) is not None or word in FLAGS)


def _judged(entry: Entry, dotted: str, name: str, loader: Loader, part: dict[str, Any]) -> Iterator[Fault]:
    """What jsonschema has against a value: nothing, or one fault."""
    from jsonschema import Draft202012Validator

    own = {key: value for key, value in part.items() if key != "properties"}
    value = plain(entry.value)
    errors = list(Draft202012Validator(own).iter_errors(value))
    if not errors:
        return
    error = next((error for error in errors if error.validator == "enum"), errors[0])
    choices = (
        tuple(choice for choice in error.validator_value if not isinstance(choice, bool | None.__class__))
        if (error.validator == "enum")
        else ()
    )
    yield Fault(
        entry, dotted, _wanted(error, choices), choices, _among(name, loader.refuses) and _stops(value, part, loader)
    )


def _stops(value: object, part: dict[str, Any], loader: Loader) -> bool:
    """Whether a loader that refuses at this key refuses this value: True counts as 1 to most of them."""
    shape = _shape(part)
    if shape is None or (isinstance(value, bool) and shape.numeric):
        return False
    return loader.typed or bool(shape.choices) or (isinstance(value, str) and shape.numeric)


def _wanted(error: ValidationError, choices: tuple[object, ...]) -> str:
    """What completes "is not": `a number or `auto``, `one of 0, 1, 2, 3`."""
    if len(choices) > 1:
        more = len(choices) - MOST
        said = ", ".join(str(choice) for choice in choices[: MOST if more > 1 else None])
        return f"one of {said} and {more} others" if more > 1 else f"one of {said}"
    parts = list(dict.fromkeys(_parts(error)))
    return " or ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _parts(error: ValidationError) -> Iterator[str]:
    wanted: Any = error.validator_value
    match error.validator:
        case "type":
            kinds = _listed(wanted)
            for kind in kinds:
                if kind != "integer" or "number" not in kinds:
                    yield from WORDS.get(kind, ())
        case "anyOf":
            for one in error.context or ():
                yield from _parts(one)
        case "enum" | "const":
            yield from (f"`{word}`" for word in _listed(wanted) if not isinstance(word, bool | None.__class__))
        case limit:
            yield f"{LIMITS[str(limit)]} {wanted}"


def _among(name: str, keys: tuple[str, ...]) -> bool:
    """Whether a key is one of `keys`, below one of them that ends in a dot, or all are meant."""
    return any(name == key or key == "." or (key[-1] == "." and name.startswith(key)) for key in keys)
