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
from trainlint.memory.autograd import PASS, Node, Parameter, Storage, Tape, Tensor, View
from trainlint.memory.chunked import FUSED, trl_fused, trl_rows
from trainlint.memory.errors import ArchitectureFault
from trainlint.memory.losses import causal_loss, head, plain_loss
from trainlint.memory.optimizers import step_bytes
from trainlint.memory.parallel import divided
from trainlint.memory.preference import contrast, half_copy, row_log_probabilities
from trainlint.memory.program import ModelProgram, Program, StackProgram, program
from trainlint.memory.setup import Setup

if TYPE_CHECKING:
    from trainlint.memory.sharding import Sharding

NOT_ADAPTED = ("lm_head", "score", "classifier", "router", "gate")
"""Leaves that target sets leave out: the output head, and routers of experts (no nn.Linear)."""
QUERY_VALUE = (
    "q_proj",
    "v_proj",
    "query",
    "value",
    "c_attn",
    "query_key_value",
    "qkv_proj",
    "q",
    "v",
    "q_lin",
    "v_lin",
    "Wqkv",
)

GROUPWISE = ("gptq", "awq", "hqq", "autoround", "compressed-tensors")
"""Quantizations with a scale and a zero point for each group of weights."""

Environment = dict[str, object]


class Walk:
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
        self.architecture = architecture
        self.config = config
        self.setup = setup
        self.every_layer = every_layer
        self.role = role
        self.training = role == "training"
        chosen = architecture.headed(setup.head)
        self.program: ModelProgram = program(architecture, chosen)
        evaluating = role == "evaluation"
        self.batch = (setup.eval_batch or setup.micro_batch) if evaluating else setup.micro_batch
        if setup.preference and not evaluating:
            self.batch *= 2
        length = (setup.eval_length or setup.length) if evaluating else setup.length
        length = -(-length // max(1, setup.context))
        self.sizes = architecture.sizes(
            config, chosen, {"seq": length, "batch": self.batch, "tokens": self.batch * length}
        )
        divided(self.sizes, setup)
        given = self.sizes.setdefault("seq", length)
        assert isinstance(given, int)
        self.length = given
        self.tokens = self.batch * self.length
        self.sizes |= {"batch": self.batch, "tokens": self.tokens, "length": length, "layer": 0}
        self.padded = setup.padded or setup.by_rows
        self.tied = bool(self.sizes.get("tied"))
        self.quantized = setup.quantization_bits in (2, 3, 4, 8) and setup.adapted
        self.weights = "float32" if self.quantized and setup.quantization_prepared else setup.weights
        self.compute = setup.autocast_dtype or setup.compute_dtype
        self.tape = tape or Tape(setup.autocast_dtype, register)
        self.tape.offload = setup.activation_offload
        self.accumulating = self.training and (setup.accumulation > 1 or setup.zero_grad == "to-zero")
        if setup.in_backward and self.training:
            self.tape.on_gradient = self._step_at_once
        self.bucket_views = self.training and setup.bucket_view and setup.sharding == "none" and setup.data > 1
        if self.bucket_views:
            self.tape.on_gradient = _into_bucket
        self.dense_gradients = False
        self.walks_last = False
        self.sharding: Sharding | None = None
        self.parameters: dict[str, Parameter] = {}
        self.prefix = ""
        self.copies = 1
        self.input_bytes = 0
        self.first_input = 0
        self.shared: Environment = {}
        self.held: list[object] = []
        self.block_held: list[object] = []
        self.batch_held: list[object] = []
        self.returned: list[Storage] = []
        self.encoded: Storage | None = None
        self.reference_parameters: list[Parameter] = []
        self.forward_bytes = 0
        self.logits_bytes = 0
        self.logits_dtype = "float32"

    # ---------------------------------------------------------------- parameters

    def quantizes(self, name: str) -> bool:
        """Whether a linear's weight is held quantized."""
        return self.quantized and name.rpartition(".")[2] not in ("score", "classifier")

    def adapts(self, name: str) -> bool:
        """Whether a linear carries an adapter."""
        if not self.setup.adapted or self.role == "reference":
            return False
        leaf = name.rpartition(".")[2]
        for target in self.setup.adapter_targets:
            if target in ("all-linear", "attention", "qv") and leaf in NOT_ADAPTED:
                continue
            match target:
                case "all-linear":
                    return True
                case "attention":
                    if "attn" in name.lower() or "attention" in name.lower():
                        return True
                case "qv":
                    if leaf in QUERY_VALUE:
                        return True
                case _:
                    if name == target or name.endswith("." + target):
                        return True
        return False

    def parameter(self, name: str, kind: str, shape: tuple[int, ...]) -> Parameter:
        """The parameter of that name in the place that is being walked, made at its first use."""
        if kind in ("embedding", "head") and self.setup.modules_to_save:
            saved = self._saved_module(name, kind, shape)
            if saved is not None:
                return saved
        return self._parameter(name, kind, shape)

    def _saved_module(self, name: str, kind: str, shape: tuple[int, ...]) -> Parameter | None:
        """peft's modules_to_save: a trained copy runs, the original stays where it is (utils/other.py)."""
        leaf = name.removesuffix(".weight").rpartition(".")[2]
        if not self.setup.adapted or leaf not in self.setup.modules_to_save:
            return None
        full = f"saved.{leaf}"
        found = self.parameters.get(full)
        if found is None:
            original = self._parameter(name, kind, shape)
            found = Parameter(full, kind, original.elements, original.dtype, shape, True, original.nbytes)
            self._keep(found)
        return found

    def _keep(self, parameter: Parameter) -> None:
        self.parameters[parameter.name] = parameter
        parameter.copies = self.copies
        if self.accumulating and parameter.trained:
            parameter.gradient = parameter.tensor  # already there; counted once for all

    def _parameter(self, name: str, kind: str, shape: tuple[int, ...]) -> Parameter:
        tied = kind == "embedding" or (kind == "head" and self.tied)
        full = "embedding" if tied else f"{self.prefix}.{name}"
        found = self.parameters.get(full)
        if found is not None:
            return found
        elements = 1
        for size in shape:
            elements *= size
        setup = self.setup
        dtype = setup.adapter_dtype if kind == "adapter" else self.weights
        trained = (not setup.adapted or kind == "adapter") and self.role != "reference" and kind != "frozen"
        nbytes = self._quantized_bytes(shape) if kind == "quantized" else rounded(elements * SIZES[dtype])
        dense = self.dense_gradients and group_of(full) != "root" and kind != "quantized"
        found = Parameter(full, kind, elements, dtype, shape, trained or dense, nbytes)
        found.optimized = trained
        self._keep(found)
        return found

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

    def _quantized_bytes(self, shape: tuple[int, ...]) -> int:
        """Bytes of a quantized weight with its scales (bitsandbytes 0.50.2, functional.py)."""
        elements = shape[0] * shape[1]
        setup = self.setup
        if setup.quantization_bits == 8:
            return rounded(elements) + rounded(4 * shape[0])
        codes = rounded((elements * setup.quantization_bits + 7) // 8)
        if setup.quantization_type in GROUPWISE:  # fp16 scales and packed zeros for groups of 128
            groups = -(-elements // 128)
            return codes + rounded(2 * groups) + rounded((groups * setup.quantization_bits + 7) // 8)
        blocks = -(-elements // 64)
        if not setup.double_quantization:
            return codes + rounded(4 * blocks) + 512
        return codes + rounded(blocks) + 512 + rounded(4 * -(-blocks // 256)) + rounded(4 * 256) + 512

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
            keys.append((body, number, checkpointed))
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

    def group(self, name: str) -> list[Parameter]:
        """Parameters of one block, or with "root" all that are in none."""
        return [parameter for full, parameter in self.parameters.items() if group_of(full) == name]

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

    def release(self) -> None:
        """Nothing will be walked any more: let go of the graph's leaves. Counts and names stay."""
        for parameter in [*self.parameters.values(), *self.reference_parameters]:
            parameter.release()


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


def group_of(full: str) -> str:
    """The block that a parameter belongs to, or "root"."""
    parts = full.split(".")
    return ".".join(parts[:2]) if len(parts) > 1 and parts[1].isdigit() else "root"


LONGEST_PERIOD = 8
"""Layers after which a pattern of layer kinds may repeat (five sliding, one full)."""


def stretches(keys: list[tuple[int, int, bool]]) -> list[tuple[int, int, int]]:
    """Layers cut where a repeating pattern begins and ends, as (first, one past the last, period).

    A pattern counts from three repetitions on; everything else is a stretch of one layer.
    """
    out: list[tuple[int, int, int]] = []
    start = 0
    while start < len(keys):
        best = (start + 1, 1)
        for period in range(1, LONGEST_PERIOD + 1):
            end = start + period
            while end < len(keys) and keys[end] == keys[end - period]:
                end += 1
            end -= (end - start) % period
            if end - start >= 3 * period and end > best[0]:
                best = (end, period)
        out.append((start, *best))
        start = best[0]
    return out
