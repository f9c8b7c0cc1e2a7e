"""A model's config.json: its shape, dtype and what it predicts."""

from __future__ import annotations

from trainlint.documents import Document, Mapping, Node, Scalar, Sequence, plain
from trainlint.formats.format import Format
from trainlint.formats.fragment import Fragment, say
from trainlint.formats.reading import fragment_of
from trainlint.run import Value

NAME = "model-config"
SIZES = frozenset(
    (
        "hidden_size", "num_hidden_layers", "n_embd", "n_layer", "d_model", "num_attention_heads", "vocab_size",
        "text_config", "vision_config", "intermediate_size", "decoder", "encoder", "num_heads", "n_heads",
        "hidden_sizes",
    )
)  # fmt: skip
TRAINING = frozenset(
    ("learning_rate", "output_dir", "per_device_train_batch_size", "train_micro_batch_size_per_gpu", "base_model",
     "optimizer", "training", "peft_type", "trainlint", "dataset", "datasets", "apiVersion")
)  # fmt: skip
HEADS = (
    ("ForCausalLM", "causal-lm"),
    ("LMHeadModel", "causal-lm"),
    ("ForSequenceClassification", "classification"),
    ("ForTokenClassification", "classification"),
    ("ForMaskedLM", "masked-lm"),
    ("ForImageClassification", "image-classification"),
    ("ForSpeechSeq2Seq", "speech-seq2seq"),
    ("WhisperForConditionalGeneration", "speech-seq2seq"),
    ("T5ForConditionalGeneration", "seq2seq"),
    ("BartForConditionalGeneration", "seq2seq"),
)
"""What a class of `architectures` predicts, by its ending."""


def recognise(document: Document, root: Node | None) -> int:
    """A JSON object with `model_type` or `architectures` and a dimension, and no training keys."""
    if document.syntax != "json" or not isinstance(root, Mapping):
        return 0
    names = root.names()
    if names & TRAINING or not names & SIZES:
        return 0
    if isinstance(root.get("architectures"), Sequence) or isinstance(root.get("model_type"), Scalar):
        return 90
    shapes = {"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}
    return 60 if shapes <= names else 0


def read(document: Document, root: Node | None) -> Fragment:
    """The whole config as a mapping, and its dimensions by path."""
    fragment = fragment_of(NAME, document, root)
    if not isinstance(root, Mapping):
        return fragment
    fragment.values["model.config"] = Value(plain(root), "written", "", root.place, file_format=NAME)
    named = root.get("architectures")
    first = named.items[0] if isinstance(named, Sequence) and named.items else None
    if isinstance(first, Scalar) and isinstance(first.value, str):
        for ending, head in HEADS:
            if first.value.endswith(ending):
                fragment.values["model.head"] = say(NAME, "architectures", first, head)
                break
    _quantization(fragment)
    return fragment


def _quantization(fragment: Fragment) -> None:
    entry = fragment.entry("quantization_config")
    if entry is None or not isinstance(entry.value, Mapping):
        packed = fragment.entry("quantization.bits")  # MLX's own block
        if packed is not None and isinstance(packed.value, Scalar) and isinstance(packed.value.value, int):
            word = f"mlx-{packed.value.value}bit"
            fragment.values["model.quantized"] = say(NAME, "quantization.bits", packed.value, word)
        return
    method, bits = entry.value.get("quant_method"), fragment.written("quantization_config.bits")
    if isinstance(method, Scalar) and isinstance(method.value, str):
        word = method.value
        if word == "bitsandbytes":
            word = "bnb-8bit" if fragment.written("quantization_config.load_in_8bit") is True else "bnb-4bit"
        elif isinstance(bits, int) and not isinstance(bits, bool):
            word = f"{word}-{bits}bit"
        elif word == "awq":
            word = "awq-4bit"
        fragment.values["model.quantized"] = say(NAME, "quantization_config.quant_method", method, word)


FORMAT = Format(NAME, "model config", recognise, read, framework="transformers", package="transformers")
