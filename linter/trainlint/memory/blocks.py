"""The blocks of a stack, walked forward, with what their backward will have to do for the layers that are not walked.

Layers repeat, alone or in a pattern, so of each such stretch two rounds are walked: the first, and the second, which
stands for all others. What happens in one round differs from what happens in the next only by a constant, forward and
backward.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trainlint.memory.account import Mark, Totals
from trainlint.memory.architecture import Architecture
from trainlint.memory.autograd import Tape
from trainlint.memory.graph import PASS, Node, Storage, Tensor, View
from trainlint.memory.model import Model
from trainlint.memory.patterns import LayerKey, stretches
from trainlint.memory.program import Environment, Program, StackProgram
from trainlint.memory.setup import Setup

if TYPE_CHECKING:
    from trainlint.memory.sharding import Sharding


class Blocks(Model):
    """A model whose stacks can be walked, and everything that its forward's Python code holds on to meanwhile."""

    def __init__(
        self,
        architecture: Architecture,
        config: Mapping[str, object],
        setup: Setup,
        every_layer: bool,
        role: str,
        tape: Tape,
    ) -> None:
        super().__init__(architecture, config, setup, role)
        self.every_layer = every_layer
        self.tape = tape
        self.walks_last = False
        self.sharding: Sharding | None = None
        self.shared: Environment = {}
        self.held: list[object] = []
        self.block_held: list[object] = []
        self.encoded: Storage | None = None

    def execute(self, lines: Program, values: Environment, end: int | None = None) -> None:
        """Run statements on values and their sizes (the first `end` of them); names die where the program says."""
        memory = self.tape.memory
        find = values.__getitem__
        for names, kind, arguments, dead, label in lines.steps[:end]:
            if kind is not None:
                memory.label = label
                if len(names) == 1:
                    values[names[0]] = kind(self, *map(find, arguments))
                elif names:
                    results = kind(self, *map(find, arguments))
                    for index, name in enumerate(names):
                        values[name] = results[index]  # type: ignore[index]
                    results = None
                else:
                    kind(self, *map(find, arguments))
            for name in dead:
                del values[name]

    def stack(self, stack: StackProgram, index: int) -> Storage:
        """Embed, walk the blocks, close: one encoder or decoder."""
        tape, memory = self.tape, self.tape.memory
        spec = stack.stack
        self.prefix = f"s{index}"
        values: Environment = {**stack.embed.sizes(self.sizes), **self.shared}
        self.execute(stack.embed, values)
        x = values.pop("x")
        assert isinstance(x, (Tensor, View))
        self.held += [x if name == "x" else values[name] for name in spec.hold]  # locals of the forward, to its end
        shared: Environment = {name: values[name] for name in stack.shared}  # masks, rotary tables, biases
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
        for start, end, period in stretches(tuple(keys)):
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
        values = {**stack.final.sizes(self.sizes), "x": x, **shared}
        del x
        self.execute(stack.final, values)
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
    ) -> tuple[list[Environment], list[LayerKey]]:
        """What each layer sees under shared names, and its (body, view, checkpointed); equal keys are equal layers."""
        spec, setup = stack.stack, self.setup
        full = setup.checkpointing == "full" and self.training
        every = setup.checkpoint_every
        if not spec.types and not spec.variants and setup.trained_layers <= 0:
            if not full or every == 1:
                return [shared] * layers, [(0, 0, full)] * layers
            return [shared] * layers, [(0, 0, (layer + 1) % every == 0) for layer in range(layers)]
        types = self.config.get("layer_types") if spec.types else None
        named: dict[str, tuple[int, Environment]] = {}
        views: list[Environment] = []
        keys: list[LayerKey] = []
        for layer in range(layers):
            kind = str(types[layer]) if isinstance(types, (list, tuple)) and layer < len(types) else ""
            if kind not in named:
                renames = spec.types.get(kind, {})
                seen: Environment = {name: shared[other] for name, other in renames.items()}
                view = {**shared, **seen}
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
            views.append(view)
            keys.append((body, number if self.trains(layer) else -1 - number, full and (layer + 1) % every == 0))
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

    def _block(self, body: Program, sizes: Environment, x: Storage, shared: Environment, checkpointed: bool) -> Storage:
        """One block, under checkpointing run again in the backward."""
        tape, prefix, layer = self.tape, self.prefix, self.tape.layer
        linked: list[str | int] = []

        def run(x: Storage, *others: Storage) -> Storage:
            before, self.prefix = self.prefix, prefix
            tape.layer = layer
            values: Environment = {**sizes, **shared, "x": x}
            if others:
                values.update(zip(linked, others, strict=True))
            del x, others
            try:
                self.execute(body, values)
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


def _then(node: Node, action: Callable[[], None]) -> None:
    """One more thing to do before a node runs, after what there is already."""
    inner = node.before

    def both() -> None:
        if inner is not None:
            inner()
        action()

    node.before = both
