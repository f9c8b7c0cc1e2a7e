"""Walking a model's operations forward and back: the bytes that live at every moment of one training step.

Layers repeat, alone or in a pattern, so of each such stretch two rounds are walked: the first, and the second, which
stands for all others. What happens in one round differs from what happens in the next only by a constant, forward and
backward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trainlint.memory.account import SIZES, Mark, Totals, rounded
from trainlint.memory.architecture import Architecture
from trainlint.memory.autograd import Tape
from trainlint.memory.chunked import FUSED, trl_fused, trl_rows
from trainlint.memory.errors import ArchitectureFault
from trainlint.memory.graph import PASS, Node, Parameter, Storage, Tensor, View
from trainlint.memory.losses import causal_loss, head, plain_loss
from trainlint.memory.model import Model
from trainlint.memory.optimizers import step_bytes
from trainlint.memory.patterns import stretches
from trainlint.memory.preference import contrast, half_copy, row_log_probabilities
from trainlint.memory.program import Program, StackProgram
from trainlint.memory.setup import Setup

if TYPE_CHECKING:
    from trainlint.memory.sharding import Sharding

Environment = dict[str, object]


class Walk(Model):
    """One model in one setup, and everything that its forward's Python code holds on to."""

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
        super().__init__(architecture, config, setup, role)
        self.every_layer = every_layer
        self.tape = tape or Tape(setup.autocast_dtype, register)
        self.tape.offload = setup.activation_offload
        if setup.in_backward and self.training:
            self.tape.on_gradient = self._step_at_once
        self.bucket_views = self.training and setup.bucket_view and setup.sharding == "none" and setup.data > 1
        if self.bucket_views:
            self.tape.on_gradient = _into_bucket
        self.walks_last = False
        self.sharding: Sharding | None = None
        self.input_bytes = 0
        self.first_input = 0
        self.shared: Environment = {}
        self.held: list[object] = []
        self.block_held: list[object] = []
        self.batch_held: list[object] = []
        self.returned: list[Storage] = []
        self.encoded: Storage | None = None
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

    # ---------------------------------------------------------------- running lines

    def execute(self, lines: Program, values: Environment, sizes: tuple[object, ...], end: int | None = None) -> None:
        """Run statements on named values (the first `end` of them); names die where the program says."""
        memory = self.tape.memory
        for names, kind, arguments, keywords, dead, label in lines.steps[:end]:
            if kind is not None:
                memory.label = label
                positional = [values[part] if part.__class__ is str else sizes[part] for part in arguments]  # type: ignore[index]
                if keywords:
                    named = {key: values[part] if part.__class__ is str else sizes[part] for key, part in keywords}  # type: ignore[index]
                    result = kind(self, *positional, **named)
                    del named
                else:
                    result = kind(self, *positional)
                del positional
                if len(names) == 1:
                    values[names[0]] = result
                elif names:
                    for index, name in enumerate(names):
                        values[name] = result[index]  # type: ignore[index]
                result = None
            for name in dead:
                values.pop(name, None)

    # ---------------------------------------------------------------- forward

    def forward(self, plain_logits: bool = False) -> Storage | None:
        """All stacks and the head, down to the loss; with `plain_logits` down to the logits, whatever the loss is."""
        memory = self.tape.memory
        x: Storage | None = None
        for index, stack in enumerate(self.program.stacks):
            x = self._stack(stack, index)
        assert x is not None
        self.prefix = "head"
        values: Environment = {"x": x, **{name: self.shared[name] for name in self.program.head_inputs}}
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
            self.execute(self.program.head, values, self.program.head.sizes(self.sizes))
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
        sizes = lines.sizes(self.sizes)
        for index, (_, kind, arguments, _, _, _) in enumerate(lines.steps):
            if kind in (causal_loss, plain_loss):
                self.execute(lines, values, sizes, index)
                return values[str(arguments[0])]  # type: ignore[return-value]
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
        sizes = lines.sizes(self.sizes)
        for index, (_, kind, arguments, keywords, _, label) in enumerate(lines.steps):
            if kind is head:
                self.execute(lines, values, sizes, index)
                self.tape.memory.label = label
                positional = [values[part] if isinstance(part, str) else sizes[part] for part in arguments]
                named = {key: values[part] if isinstance(part, str) else sizes[part] for key, part in keywords}
                return fused(self, *positional, **named)
        raise ArchitectureFault(self.architecture.name, "a causal head without a `head` line")

    def enter_loss(self) -> None:
        """The output head begins."""
        if self.role == "training":
            self.tape.memory.enter("loss")

    def _stack(self, stack: StackProgram, index: int) -> Storage:
        """Embed, walk the blocks, close: one encoder or decoder."""
        tape, memory = self.tape, self.tape.memory
        spec = stack.stack
        self.prefix = f"s{index}"
        values: Environment = dict(self.shared)
        self.execute(stack.embed, values, stack.embed.sizes(self.sizes))
        x = values.pop("x")
        assert isinstance(x, (Tensor, View))
        self.held += [x if name == "x" else values[name] for name in spec.hold]  # locals of the forward, to its end
        shared = {name: values[name] for name in stack.shared}  # masks, rotary tables, biases
        self.shared.update(shared)
        values.clear()
        layers = spec.layers.value(self.sizes)
        assert isinstance(layers, int)
        self.layers = layers
        views, keys = self._layers(stack, shared, layers)
        bodies = [(body, body.sizes(self.sizes)) for body in stack.bodies]
        kept: list[tuple[Storage, int]] = []
        linked = self.walks_last or spec.keeps_outputs
        linked = linked or any(getattr(value, "node", None) is not None for value in shared.values())
        for start, end, period in stretches(keys):
            ends = 3 if linked else 2  # what all layers add to (a shared bias) is made by the last one's backward
            times = (end - start) // period - ends
            if times < 1 or self.every_layer or (self.sharding is not None and not linked):
                times = 0
            second = start + period if times else end
            last = end - period if times and linked else end
            middle: Node | None = None
            for layer in [*range(start, second + period), *range(last, end)] if times else range(start, end):
                repeated = second <= layer < second + period
                tape.layer = index * 1000 + layer
                self.prefix = f"s{index}.{layer}"
                self.copies = times + 1 if repeated else 1
                if layer == second:
                    outer, mark = memory.open_window(), memory.mark()
                x, entry = self._enter(x)
                group = self.prefix
                if self.sharding is not None:
                    self.sharding.before_forward(group)
                body, sizes = bodies[keys[layer][0]]
                x = self._block(body, sizes, x, views[layer], keys[layer][2])
                if layer == last:
                    self._repeat_backward(middle, entry, times)
                if self.sharding is not None:
                    self._shard(self.sharding, group, entry, x.node)
                if spec.keeps_outputs:
                    kept.append((x, times if repeated else 0))
                if repeated:
                    tape.repeated[tape.layer] = times
                if layer == second:
                    middle = entry
                if layer == second + period - 1:  # the layers that are not walked add what these have added
                    memory.close_window(outer, mark, times)
                    if not linked:
                        self._repeat_backward(middle, x.node, times)
        tape.layer = -1
        self.copies = 1
        self.prefix = f"s{index}"
        values = {"x": x, **shared}
        del x
        self.execute(stack.final, values, stack.final.sizes(self.sizes))
        while kept:
            mark, times = memory.mark(), kept.pop()[1]
            memory.repeat(mark, times)
        self.held.clear()
        result = values["x"]
        assert isinstance(result, (Tensor, View))
        if index == 0 and len(self.program.stacks) > 1:
            self.encoded = result
        self.shared["enc"] = result  # what a following stack attends to
        return result

    def _layers(
        self, stack: StackProgram, shared: Environment, layers: int
    ) -> tuple[list[Environment], list[tuple[int, int, bool]]]:
        """What each layer sees under shared names, and its (body, view, checkpointed); equal keys are equal layers."""
        spec, setup = stack.stack, self.setup
        types = self.config.get("layer_types") if spec.types else None
        named: dict[str, tuple[int, Environment]] = {}
        views: list[Environment] = []
        keys: list[tuple[int, int, bool]] = []
        full = setup.checkpointing == "full" and self.training
        for layer in range(layers):
            kind = str(types[layer]) if isinstance(types, (list, tuple)) and layer < len(types) else ""
            if kind not in named:
                renames = spec.types.get(kind, {})
                view = {**shared, **{seen: shared[name] for seen, name in renames.items()}}
                same = next((old for old in named.values() if old[1] == view), None)
                named[kind] = same or (len(named), view)
            number, view = named[kind]
            body = 0
            if spec.variants:
                self.sizes["layer"] = layer
                for index, variant in enumerate(spec.variants):
                    if variant.when.value(self.sizes):
                        body = index + 1
                        break
            checkpointed = full and (layer + 1) % setup.checkpoint_every == 0
            views.append(view)
            keys.append((body, number if self.trains(layer) else -1 - number, checkpointed))
        return views, keys

    def _enter(self, x: Storage) -> tuple[Storage, Node | None]:
        """A block's input passes a node that does nothing: when it runs in backward, the block is done."""
        node = self.tape.node("block", (x,), [], (PASS,))
        if node is None:
            return x, None
        return View(x, x.elements, x.dtype, node), node

    def _repeat_backward(self, entry: Node | None, leave: Node | None, times: int) -> None:
        """Backward: what this layer frees and adds, each layer that is not walked does too."""
        if entry is None or leave is None:
            return
        memory = self.tape.memory
        opened: list[tuple[tuple[int, Totals | None], Mark]] = []

        def begins() -> None:
            opened.append((memory.open_window(), memory.mark()))

        def done() -> None:
            window, mark = opened.pop()
            memory.close_window(window, mark, times)

        _then(entry, done)
        _then(leave, begins)

    def _block(
        self, body: Program, sizes: tuple[object, ...], x: Storage, shared: Environment, checkpointed: bool
    ) -> Storage:
        """One block, under checkpointing run again in the backward."""
        tape, prefix, layer = self.tape, self.prefix, self.tape.layer

        linked: list[str] = []

        def run(x: Storage, *others: Storage) -> Storage:
            before, self.prefix = self.prefix, prefix
            tape.layer = layer
            values = {**shared, **dict(zip(linked, others, strict=True)), "x": x}
            del x, others
            try:
                self.execute(body, values, sizes)
            finally:
                self.prefix = before
                self.block_held.clear()
            return values["x"]  # type: ignore[return-value]

        if not checkpointed or x.node is None or not tape.recording:
            return run(x)
        if self.setup.reentrant:  # whatever else of the block's inputs has a graph is handed in and detached as well
            linked += [name for name, value in shared.items() if getattr(value, "node", None) is not None]
            return tape.checkpoint_reentrant(run, x, *(shared[name] for name in linked))  # type: ignore[arg-type]
        return tape.checkpoint(run, x)

    # ---------------------------------------------------------------- sharding

    def _shard(self, sharding: Sharding, group: str, entry: Node | None, leave: Node | None) -> None:
        sharding.after_forward(group)
        if entry is not None:
            inner = entry.before

            def done() -> None:
                sharding.after_backward(group, self.group(group))
                if inner is not None:
                    inner()

            entry.before = done
        if leave is not None:
            leave.before = lambda: sharding.before_backward(group)

    # ---------------------------------------------------------------- a whole step

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


def _then(node: Node, action: Callable[[], None]) -> None:
    """One more thing to do before a node runs, after what there is already."""
    inner = node.before

    def both() -> None:
        if inner is not None:
            inner()
        action()

    node.before = both


def _into_bucket(parameter: Parameter) -> None:
    """A gradient is copied into its bucket, and becomes a view of it."""
    parameter.gradient = None
