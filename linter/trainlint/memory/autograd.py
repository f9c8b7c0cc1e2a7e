"""Autograd on sizes: tensors that are only a number of bytes, a graph, and torch's order of events.

Nothing here knows what a transformer is. Three facts of torch are modelled, and they are enough:

* a tensor's storage lives as long as somebody holds it (a local name, a saved tensor, a gradient buffer);
* a node keeps exactly what its derivative formula names, and drops it the moment it has run;
* the engine runs the ready node that was created last; leaves take their gradient at once.

Tensors count themselves out when Python drops them, so lifetimes are CPython's own, as in torch. All sizes are bytes.
Sources: torch 2.13, torch/csrc/autograd/engine.cpp, input_buffer.cpp, functions/accumulate_grad.h,
torch/utils/checkpoint.py, aten/src/ATen/autocast_mode.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainlint.memory.account import SIZES
from trainlint.memory.engine import Engine
from trainlint.memory.graph import (
    REPEATED,
    Allocation,
    Call,
    Edge,
    Formula,
    Frame,
    Node,
    Parameter,
    Stop,
    Storage,
    Tensor,
    View,
)


class Tape(Engine):
    """Records operations in forward order and plays them backwards.

    `autocast` is the 16-bit dtype that matmuls run in, or None. `offload` moves saved tensors to the host.
    """

    def __init__(self, autocast: str | None, register: bool = False) -> None:
        super().__init__(register)
        self.sequence = 0
        self.autocast = autocast
        self.recording = True
        self.offload = False
        self.layer = -1
        self.repeated: dict[int, int] = {}
        self.created = 0

    def new(self, elements: int, dtype: str) -> Tensor:
        """A fresh tensor outside the graph."""
        return Tensor(self.memory, elements, dtype)

    def node(
        self,
        name: str,
        inputs: Sequence[Storage],
        saved: list[Storage],
        formula: Formula | Call,
        scratch: Sequence[Allocation] | None = None,
        holds: bool = False,
    ) -> Node | None:
        """A graph node, or None where nothing upstream is trained.

        Called before the output exists where no result is saved, as torch does; that matters when checkpointing stops
        early. `scratch` are allocations that live during the backward call only; `holds` says that the formula is a
        call that keeps tensors by itself.
        """
        if not self.recording:
            return None
        if self.recomputing is not None:
            return self._repeated(self.recomputing, name, inputs, saved, formula)
        edges: list[Edge | None] = []
        call: Call | None = None
        if formula.__class__ is tuple:
            for value, entry in zip(inputs, formula):  # noqa: B905  `strict` costs time
                producer = value.node
                if producer is not None:
                    edges.append((producer, value.slot, value.elements, value.dtype, entry))
                    producer.pending += 1
            if not edges:
                return None
        else:
            call = formula  # type: ignore[assignment]
            for value in inputs:
                producer = value.node
                if producer is None:
                    edges.append(None)
                else:
                    edges.append((producer, value.slot, value.elements, value.dtype, None))
                    producer.pending += 1
            if not any(edges):
                return None
        self.sequence += 1
        self.created += 1
        node = Node(self.sequence, name, saved or None, edges, scratch)
        node.call = call
        if self.memory.register is not None:
            node.label = self.memory.label
        frame = self.frame
        if holds and frame is not None:
            frame.whole = True
        if saved:
            if frame is not None:
                node.saved = None
                node.frame = frame
                frame.nodes.append(node)
            elif self.offload:
                node.saved = self._offloaded(node, saved)
        return node

    def _repeated(
        self, frame: Frame, name: str, inputs: Sequence[Storage], saved: list[Storage], formula: Formula | Call
    ) -> Node | None:
        """An operation of a checkpointed block once more: its first run's node takes what is saved.

        The second graph is thrown away, so it is not built, unless its dead ends or its backwards hold tensors.
        """
        for value in inputs:
            if value.node is not None:
                break
        else:
            return None
        node = REPEATED
        if frame.whole:
            node = Node(0, name, None, [(value.node, 0, 0, "", None) for value in inputs if value.node is not None])
            if formula.__class__ is not tuple:
                node.call = formula  # type: ignore[assignment]
        if saved:
            original = frame.nodes[frame.position]
            if original.dead:
                node.saved = saved
            else:
                original.saved = saved
            frame.position += 1
            if frame.position == len(frame.nodes):
                raise Stop
        return node

    def op(
        self,
        name: str,
        inputs: Sequence[Storage],
        elements: int,
        dtype: str,
        saved: list[Storage],
        formula: Formula | Call,
        keep_output: bool = False,
        outputs: tuple[Storage, ...] = (),
        scratch: Sequence[Allocation] | None = None,
    ) -> Tensor:
        """An operation with one new result.

        `keep_output`: the formula names the result (relu, tanh, softmax); `outputs`: further results that it names. To
        have those again, checkpointing must run the operation; inputs alone are there without running it.
        """
        if keep_output or outputs:
            result = Tensor(self.memory, elements, dtype)
            saved = [*saved, *outputs, result] if keep_output else [*saved, *outputs]
            result.node = self.node(name, inputs, saved, formula, scratch)
            if self.recomputing is not None and result.node is not None:
                result.node.saved = None  # a node must not hold its own result
        else:
            node = self.node(name, inputs, saved, formula, scratch)
            result = Tensor(self.memory, elements, dtype)
            result.node = node
        return result

    def cast(self, value: Storage, dtype: str) -> Storage:
        """`value.to(dtype)`: the same tensor where nothing changes, else a copy that saves nothing."""
        if value.dtype == dtype:
            return value
        return self.op("to", (value,), value.elements, dtype, [], ((value.elements, value.dtype),))

    def lower(self, value: Storage) -> Storage:
        """Autocast's cast of an argument. Only trained fp32 leaves are cached, until the autocast context ends."""
        if self.autocast is None or value.dtype != "float32":
            return value
        parameter = value.parameter
        if parameter is not None and parameter.trained:
            hit = self.cache.get(parameter)
            if hit is None:
                label = self.memory.label
                self.memory.label = "autocast copies of weights"
                hit = self.cache[parameter] = (self.layer, self.cast(value, self.autocast))
                self.memory.label = label
            return hit[1]
        return self.cast(value, self.autocast)

    def end_autocast(self) -> None:
        """Drop the weight copies; a walked layer that stands for others takes theirs along."""
        for layer, times in self.repeated.items():
            mark = self.memory.mark()
            for parameter in [key for key, hit in self.cache.items() if hit[0] == layer]:
                del self.cache[parameter]
            self.memory.repeat(mark, times)
        self.cache.clear()

    def checkpoint(self, run: Callable[[Storage], Storage], value: Storage) -> Storage:
        """`torch.utils.checkpoint(run, value, use_reentrant=False)`: keeps the input, runs again in the backward."""
        frame = Frame([value])
        if self.offload and value.elements * SIZES[value.dtype] >= 1024:  # the input goes to the host as well
            frame.inputs = []
        elements, dtype, node = value.elements, value.dtype, value.node

        def again() -> None:
            if frame.inputs:
                run(frame.inputs[0])
                return
            back = Tensor(self.memory, elements, dtype)
            back.node = node
            run(back)

        frame.again = again
        outer, self.frame = self.frame, frame
        try:
            return run(value)
        finally:
            self.frame = outer

    def checkpoint_reentrant(self, run: Callable[..., Storage], *values: Storage) -> Storage:
        """`torch.utils.checkpoint(run, *values, use_reentrant=True)`: one node that keeps the inputs.

        Its backward runs the block with a graph of its own, all of it, and then that graph's backward, while the
        incoming gradient is held (torch/utils/checkpoint.py, CheckpointFunction).
        """
        recording, self.recording = self.recording, False
        try:
            result = run(*values)
        finally:
            self.recording = recording
        shapes = [(value.elements, value.dtype, value.node is not None) for value in values]

        def call(gradient: Storage | None, saved: list[Storage]) -> list[Storage | None]:
            leaves = [Parameter("", "input", size, dtype, (1,), wanted, 0) for size, dtype, wanted in shapes]
            for leaf, value in zip(leaves, saved, strict=True):
                leaf.tensor.owner = value
                leaf.tensor.parameter = None
            cache, self.cache = self.cache, {}
            start = run(*(leaf.tensor for leaf in leaves)).node
            self.cache = cache
            if start is not None and gradient is not None:
                self.play(start, gradient)
            del start
            back = [leaf.gradient for leaf in leaves]
            for leaf in leaves:
                leaf.gradient = leaf.tensor.owner = None
            return back

        node = self.node("checkpoint", values, [*values], call)
        return View(result, result.elements, result.dtype, node)

    def discard(self, value: Storage) -> None:
        """A result that no loss hangs on: its node will not run. Consumers are discarded before producers."""
        node = value.node
        if node is None or self.recomputing is not None:
            return
        node.dead = True
        self.created -= 1
        for edge in node.edges:
            if edge is not None:
                edge[0].pending -= 1

    def _offloaded(self, node: Node, saved: list[Storage]) -> list[Storage] | None:
        """Saved tensors go to the host until the node runs: save_on_cpu's hooks, which leave small ones and weights."""
        back: list[Allocation] = []
        stay: list[Storage] = []
        for value in saved:
            if value.parameter is not None or value.elements * SIZES[value.dtype] < 1024:
                stay.append(value)
            else:
                back.append((value.elements, value.dtype))
        if back:
            node.scratch = [*(node.scratch or ()), *back]
        return stay or None
