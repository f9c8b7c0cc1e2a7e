"""The loss of transformers 4.46 to 4.48, which copies the logits to shift them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainlint.formats import Draft
from trainlint.formats.semantics.trainer_precision import shifted_loss
from trainlint.memory import Setup, estimate
from trainlint.run import Value

CONFIG = {
    "model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "intermediate_size": 512, "vocab_size": 128_000,
}  # fmt: skip
SETUP = Setup(method="lora", weights="bfloat16", micro_batch=2, length=2048)


def test_the_copy_is_two_bytes_more_of_each_logit() -> None:
    """14 bytes in the forward pass (16 bit, float32, its copy, log probabilities) for 12 in the backward pass."""
    before, after = (estimate(CONFIG, replace(SETUP, loss=loss)).allocated for loss in ("full", "shifted"))
    assert (after - before) / (2 * 2048 * 128_000) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize(
    ("release", "loss"),
    [("4.44.2", "full"), ("4.46.0", "shifted"), ("4.48.3", "shifted"), ("4.49.0", "full"), (">=4.40", "full")],
)
def test_the_release_decides(release: str, loss: str) -> None:
    draft = Draft((), {"loss": Value("full", "derived")}, {"transformers": Value(release)})
    shifted_loss(draft)
    assert draft.get("loss") == loss


def test_a_fused_loss_stays() -> None:
    draft = Draft((), {"loss": Value("liger", "derived")}, {"transformers": Value("4.47.1")})
    shifted_loss(draft)
    assert draft.get("loss") == "liger"
