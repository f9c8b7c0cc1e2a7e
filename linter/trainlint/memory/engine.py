"""The autograd engine on sizes: plays a graph backwards in torch's order of events.

The ready node that was created last runs first; a node drops what it saved the moment it has run; leaves take their
gradient at once. Sources: torch 2.13, torch/csrc/autograd/engine.cpp, input_buffer.cpp, functions/accumulate_grad.h,
torch/utils/checkpoint.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from trainlint.memory.account import Memory
from trainlint.memory.graph import PASS, Edge, Frame, Node, Parameter, Stop, Storage, Tensor, View


class Engine:
    """Runs the graph that a tape has recorded, and blocks under checkpointing again."""

    def __init__(self, register: bool) -> None:
        self.memory = Memory(register)
        self.cache: dict[Parameter, tuple[int, Storage]] = {}
        self.frame: Frame | None = None
        self.recomputing: Frame | None = None
        self.on_gradient: Callable[[Parameter], None] | None = None
        self.played = 0

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
        returned: list[Storage | None]
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
                returned = self._called(node, incoming)
                differs = True
            else:
                returned = []
                differs = False
                for _, _, elements, dtype, entry in edges:  # type: ignore[misc]  # without a call no edge is None
                    if entry.__class__ is tuple:
                        result = Tensor(memory, entry[0], entry[1])
                    elif entry == PASS:
                        result = incoming
                        if result is None:
                            returned.append(None)
                            continue
                    elif entry is None:
                        returned.append(None)
                        continue
                    else:
                        returned.append(View(incoming, elements, dtype))
                        continue
                    if result.elements != elements or result.dtype != dtype:
                        differs = True
                    returned.append(result)
                if node.scratch:
                    temporaries = [Tensor(memory, size, dtype) for size, dtype in node.scratch]
                    temporaries.clear()
            result = None
            if frame is not None:
                node.saved = None  # checkpointing hands saved tensors over: they die with the call
            if differs:
                self._validate(edges, returned)
            incoming = node.others = node.saved = None
            if frame is not None:
                node.frame = None
                frame.left -= 1
                if not frame.left:
                    frame.inputs = []
                    frame.again = None
                    frame.nodes = []
            index = -1
            for edge in edges:
                index += 1
                if edge is None:
                    continue
                target, slot, _, _, _ = edge
                result = returned[index]
                if result is not None:
                    returned[index] = None
                    if not slot:
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

    def _called(self, node: Node, incoming: Storage | None) -> list[Storage | None]:
        """What a backward that no formula describes hands on; what it closes over goes with the graph."""
        kept = list(node.saved or ())
        for size, dtype in node.scratch or ():
            kept.append(Tensor(self.memory, size, dtype))
        assert node.call is not None
        returned = list(node.call(incoming, kept))
        node.call = None
        return returned

    def _validate(self, edges: Sequence[Edge | None], returned: list[Storage | None]) -> None:
        """Sum broadcast inputs and cast, before saved tensors and the gradient go (validate_outputs)."""
        for index, edge in enumerate(edges):
            result = returned[index]
            if edge is None or result is None:
                continue
            if result.elements != edge[2]:
                result = returned[index] = Tensor(self.memory, edge[2], result.dtype)
            if result.dtype != edge[3]:
                result = returned[index] = Tensor(self.memory, edge[2], edge[3])
            result = None

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
        dead = sum([node.dead for node in frame.nodes])
        frame.left = len(frame.nodes) - dead
        frame.whole = frame.whole or dead > 0
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
