"""One training step on sizes: forward, loss and backward, and the bytes that live at every moment of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from trainlint.memory.account import SIZES, rounded
from trainlint.memory.architecture import Architecture
from trainlint.memory.autograd import Tape
from trainlint.memory.blocks import Blocks
from trainlint.memory.chunked import FUSED, trl_fused, trl_rows
from trainlint.memory.errors import ArchitectureFault
from trainlint.memory.graph import Parameter, Storage
from trainlint.memory.losses import causal_loss, head, plain_loss
from trainlint.memory.optimizers import step_bytes
from trainlint.memory.preference import contrast, half_copy, row_log_probabilities
from trainlint.memory.program import Environment
from trainlint.memory.setup import Setup


class Walk(Blocks):
    """One model in one setup, from its inputs to its gradients."""

    def __init__(
        self,
        architecture: Architecture,
        config: Mapping[str, object],
        setup: Setup,
        every_layer: bool = False,
        register: bool = False,
        role: str = "training",
        tape: Tape | None = None,
    ) -> None:
        super().__init__(architecture, config, setup, every_layer, role, tape or Tape(setup.autocast_dtype, register))
        self.tape.offload = setup.activation_offload
        if setup.in_backward and self.training:
            self.tape.on_gradient = self._step_at_once
        self.bucket_views = self.training and setup.bucket_view and setup.sharding == "none" and setup.data > 1
        if self.bucket_views:
            self.tape.on_gradient = _into_bucket
        self.input_bytes = 0
        self.first_input = 0
        self.batch_held: list[object] = []
        self.returned: list[Storage] = []
        self.forward_bytes = 0
        self.logits_bytes = 0
        self.logits_dtype = "float32"

    def _step_at_once(self, parameter: Parameter) -> None:
        """The optimizer runs as soon as a parameter's gradient is there, and frees it."""
        copies, parameter.copies = parameter.copies, 1
        temporary = step_bytes(self.setup.optimizer, [parameter], self.setup.foreach)
        parameter.copies = copies
        if temporary:
            self.tape.memory.label = "optimizer temporaries"
            held = self.tape.new(temporary, "uint8")
            del held
        parameter.gradient = None

    def forward(self, plain_logits: bool = False) -> Storage | None:
        """All stacks and the head, down to the loss; with `plain_logits` down to the logits, whatever the loss is."""
        memory = self.tape.memory
        x: Storage | None = None
        for index, stack in enumerate(self.program.stacks):
            x = self.stack(stack, index)
        assert x is not None
        self.prefix = "head"
        lines = self.program.head
        values: Environment = lines.sizes(self.sizes)
        values.update({name: self.shared[name] for name in self.program.head_inputs})
        values["x"] = x
        if self.program.head_kind == "seq2seq" and self.encoded is not None:
            self.returned.append(self.encoded)  # encoder_last_hidden_state is in the outputs
        self.encoded = None
        self.shared.clear()  # masks and positions end with the model's forward
        self.held.append(x)
        del x
        fused = FUSED.get(self.setup.loss) if self.program.head_kind == "causal-lm" and not plain_logits else None
        pairs = self.setup.by_rows and self.role != "evaluation"
        if fused is not None:
            loss = self._fused_loss(trl_rows if pairs and fused is trl_fused else fused, values)
        elif pairs or plain_logits:
            loss = self._logits(values)
        else:
            self.execute(lines, values)
            loss = values.pop("loss")  # type: ignore[assignment]
        values.clear()
        self.held.clear()
        self.tape.end_autocast()
        memory.label = "logits"
        if self.tape.autocast is not None:  # accelerate hands fp32 outputs on; the loss does not hang on these copies
            recording, self.tape.recording = self.tape.recording, False
            self.returned = [self.tape.cast(value, "float32") for value in self.returned]
            self.tape.recording = recording
        if self.returned:
            first = self.returned[0]
            self.logits_bytes, self.logits_dtype = rounded(first.elements * SIZES[first.dtype]), first.dtype
        if not self.setup.keep_outputs:
            self.returned = []
        self.batch_held.clear()
        if (pairs or plain_logits) and fused is None:
            return self._rows(loss, plain_logits)
        return loss

    def _logits(self, values: Environment) -> Storage:
        """The head down to what its loss would take."""
        lines = self.program.head
        for index, (_, kind, arguments, _, _) in enumerate(lines.steps):
            if kind in (causal_loss, plain_loss):
                self.execute(lines, values, index)
                return values[arguments[0]]  # type: ignore[return-value]
        raise ArchitectureFault(self.architecture.name, "a head without a loss")

    def _rows(self, logits: Storage, plain: bool) -> Storage:
        """Logits as the wrapped forward returns them, and their rows' log probabilities."""
        raised = self.tape.cast(logits, "float32") if self.tape.autocast is not None else logits
        del logits
        self.logits_bytes, self.logits_dtype = rounded(raised.elements * SIZES[raised.dtype]), raised.dtype
        if plain:
            return raised
        rows = row_log_probabilities(self, raised)
        if self.role == "training":
            half_copy(self, raised)
        return rows

    def _reference(self, phase: str) -> None:
        """The same rows under the reference model, without a graph, while the policy's activations live on."""
        kind = self.setup.reference_kind
        if kind not in ("copy", "adapter-off"):
            return
        memory = self.tape.memory
        memory.enter("reference")
        other = Walk(self.architecture, self.config, self.setup, self.every_layer, role="reference", tape=self.tape)
        recording, self.tape.recording = self.tape.recording, False
        other.forward()
        self.tape.recording = recording
        self.tape.repeated.clear()
        if kind == "copy":
            self.reference_parameters = list(other.parameters.values())
        memory.enter(phase)

    def _fused_loss(self, fused: Callable[..., Storage], values: Environment) -> Storage:
        """Head and loss in one: what the family's own head would do before its product is done first."""
        lines = self.program.head
        for index, (_, kind, arguments, _, label) in enumerate(lines.steps):
            if kind is head:
                self.execute(lines, values, index)
                self.tape.memory.label = label
                return fused(self, *[values[part] for part in arguments])
        raise ArchitectureFault(self.architecture.name, "a causal head without a `head` line")

    def enter_loss(self) -> None:
        """The output head begins."""
        if self.role == "training":
            self.tape.memory.enter("loss")

    def run(self) -> dict[str, int]:
        """Forward and backward of one micro-batch: the highest total of each phase, above what lives all the time."""
        memory = self.tape.memory
        memory.enter("forward")
        if self.sharding is not None:
            self.sharding.before_forward("root")
        loss = self.forward()
        if self.setup.by_rows and loss is not None:
            self._reference(memory.phase)
            loss = contrast(self, loss)
        if self.sharding is not None:
            self.sharding.after_forward("root")
        self.forward_bytes = memory.current
        has_head = self.program.head_kind in ("causal-lm", "seq2seq", "masked-lm", "speech-seq2seq")
        memory.enter("loss_backward" if has_head else "backward")
        if self.sharding is not None:
            self.sharding.before_backward("root")
        if loss is not None:
            self.tape.backward(loss)
        del loss
        if self.sharding is not None:
            self.sharding.after_backward("root", self.group("root"))
        peaks = memory.close()
        peaks.pop("setup", None)
        return peaks


def _into_bucket(parameter: Parameter) -> None:
    """A gradient is copied into its bucket, and becomes a view of it."""
    parameter.gradient = None
