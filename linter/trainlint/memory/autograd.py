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
from heapq import heappop, heappush

from trainlint.memory.account import SIZES, Memory
from trainlint.memory.graph import (
    PASS,
    Allocation,
    Call,
    Entry,
    Formula,
    Frame,
    Node,
    Parameter,
    Stop,
    Storage,
    Tensor,
    View,
)


class Tape:
    """Records operations in forward order and plays them backwards.

    `autocast` is the 16-bit dtype that matmuls run in, or None. `offload` moves saved tensors to the host.
    """

    def __init__(self, autocast: str | None, register: bool = False) -> None:
        self.memory = Memory(register)
        self.sequence = 0
        self.autocast = autocast
        self.recording = True
        self.offload = False
        self.layer = -1
        self.cache: dict[Parameter, tuple[int, Storage]] = {}
        self.repeated: dict[int, int] = {}
        self.frame: Frame | None = None
        self.recomputing: Frame | None = None
        self.on_gradient: Callable[[Parameter], None] | None = None
        self.created = 0
        self.played = 0

    # ---------------------------------------------------------------- forward

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
    ) -> Node | None:
        """A graph node, or None where nothing upstream is trained.

        Called before the output exists where no result is saved, as torch does; that matters when checkpointing stops
        early. `scratch` are allocations that live during the backward call only.
        """
        if not self.recording:
            return None
        for value in inputs:
            if value.node is not None:
                break
        else:
            return None
        self.sequence += 1
        node = Node(self.sequence, name, saved or None)
        if scratch:
            node.scratch = scratch
        recomputing = self.recomputing
        if formula.__class__ is tuple:
            entries: Sequence[Entry] = formula
        else:
            node.call = formula  # type: ignore[assignment]
            entries = (None,) * len(inputs)
        edges = node.edges
        for value, entry in zip(inputs, entries, strict=True):
            producer = value.node
            if producer is None:
                edges.append(None)
            else:
                edges.append((producer, value.slot, value.elements, value.dtype, entry))
                if recomputing is None:
                    producer.pending += 1
        if self.memory.register is not None:
            node.label = self.memory.label
        if recomputing is None:
            self.created += 1
            if saved:
                frame = self.frame
                if frame is not None:
                    node.saved = None
                    node.frame = frame
                    frame.nodes.append(node)
                elif self.offload:
                    node.saved = self._offloaded(node, saved)
        elif saved:
            node.saved = None
            original = recomputing.nodes[recomputing.position]
            if original.dead:  # nobody will ask for it, but the new graph keeps it while it is made
                node.saved = saved
            else:
                original.saved = saved
            recomputing.position += 1
            if recomputing.position == len(recomputing.nodes):
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

    # ---------------------------------------------------------------- backward

    def backward(self, root: Storage) -> None:
        """Run the graph from `root`, whose gradient is one more tensor of its size."""
        if root.node is None:
            return
        self.memory.label = "loss"
        self.play(root.node, Tensor(self.memory, root.elements, root.dtype))

    def play(self, start: Node, gradient: Storage) -> None:
        """The engine's loop (engine.cpp, thread_main and evaluate_function)."""
        memory = self.memory
        register = memory.register
        start.gradient = gradient
        del gradient
        ready = [(-start.sequence, start)]
        leaves: list[Node] = []
        grads: Sequence[Storage | None]
        result: Storage | None
        while ready:
            node = heappop(ready)[1]
            self.played += 1
            if register is not None:
                memory.label = node.label
            if node.before is not None:
                node.before()
                node.before = None
            frame = node.frame
            if frame is not None and not frame.recomputed:
                self._recompute(frame)
                if register is not None:
                    memory.label = node.label
            incoming = node.gradient
            node.gradient = None
            edges = node.edges
            if node.call is not None:
                kept = list(node.saved or ())
                if node.scratch:
                    kept += [Tensor(memory, size, dtype) for size, dtype in node.scratch]
                grads = node.call(incoming, kept)
                node.call = None  # what it closes over goes with the graph
                kept.clear()
                returned: list[Storage | None] = list(grads)
                grads = ()
                differs = True
            else:
                returned = []
                differs = False
                for edge in edges:
                    if edge is None or (entry := edge[4]) is None:
                        returned.append(None)
                        continue
                    if entry.__class__ is tuple:
                        result = Tensor(memory, entry[0], entry[1])
                    elif entry == PASS:
                        result = incoming
                        if result is None:
                            returned.append(None)
                            continue
                    else:
                        returned.append(View(incoming, edge[2], edge[3]))
                        continue
                    if result.elements != edge[2] or result.dtype != edge[3]:
                        differs = True
                    returned.append(result)
                result = None
                scratch = node.scratch
                if scratch:
                    temporaries = [Tensor(memory, size, dtype) for size, dtype in scratch]
                    temporaries.clear()
            if frame is not None:
                node.saved = None  # checkpointing hands saved tensors over: they die with the call
            # validate_outputs: sums of broadcast inputs and casts come before the saved tensors and the gradient go
            for index, edge in enumerate(edges) if differs else ():
                if edge is None:
                    continue
                result = returned[index]
                if result is None:
                    continue
                if result.elements != edge[2]:
                    result = returned[index] = Tensor(memory, edge[2], result.dtype)
                if result.dtype != edge[3]:
                    result = returned[index] = Tensor(memory, edge[2], edge[3])
                result = None
            incoming = node.others = node.saved = None
            if frame is not None:
                node.frame = None
                frame.left -= 1
                if not frame.left:
                    frame.inputs = []
                    frame.again = None
                    frame.nodes = []
            for index, edge in enumerate(edges):
                if edge is None:
                    continue
                target = edge[0]
                result = returned[index]
                if result is not None:
                    returned[index] = None
                    slot = edge[1]
                    if slot == 0:
                        if target.gradient is None:
                            target.gradient = result
                        else:  # summed in place where nobody else holds either
                            target.gradient = result = None
                            target.gradient = Tensor(memory, edge[2], edge[3])
                    else:
                        if target.others is None:
                            target.others = {}
                        if slot in target.others:
                            del target.others[slot]
                            result = None
                            target.others[slot] = Tensor(memory, edge[2], edge[3])
                        else:
                            target.others[slot] = result
                    result = None
                target.pending -= 1
                if not target.pending:
                    if target.parameter is not None:
                        leaves.append(target)
                    else:
                        heappush(ready, (-target.sequence, target))
            if leaves:
                for leaf in leaves:
                    self._accumulate(leaf)
                leaves.clear()

    def _accumulate(self, leaf: Node) -> None:
        """AccumulateGrad: the first gradient of a leaf is taken, not copied; a later one is added in place."""
        gradient = leaf.gradient
        leaf.gradient = None
        parameter = leaf.parameter
        if gradient is None or parameter is None:
            return
        if parameter.gradient is None:
            if self.memory.register is not None and isinstance(gradient, Tensor):
                self.memory.register.rename(gradient, "gradients")
            parameter.gradient = gradient
        if self.on_gradient is not None and parameter.kind != "input":
            del gradient
            self.on_gradient(parameter)

    def _recompute(self, frame: Frame) -> None:
        """Run a checkpointed block again, in an autocast context (and so with weight copies) of its own."""
        frame.recomputed = True
        frame.left = sum(not node.dead for node in frame.nodes)
        again = frame.again
        if again is None:
            raise RuntimeError("a checkpointed block without a way to run it again")
        outer = self.recomputing, self.frame
        self.recomputing = frame
        self.frame = None
        cache, self.cache = self.cache, {}
        try:
            again()
        except Stop:
            pass
        finally:
            self.recomputing, self.frame = outer
            self.cache = cache

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
