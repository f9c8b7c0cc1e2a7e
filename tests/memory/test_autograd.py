"""The engine's rules, each as torch keeps it. Sizes are multiples of 512 bytes, so that rounding does not matter."""

from __future__ import annotations

from trainlint.memory.account import rounded
from trainlint.memory.autograd import Tape
from trainlint.memory.graph import Parameter, Storage
from trainlint.memory.primitives import add, cat, dropout, matmul, mul, scale, softmax, split, unary

N = 1024
"""Elements: 4096 bytes in fp32."""


def parameter(elements: int = N, trained: bool = True, dtype: str = "float32") -> Parameter:
    return Parameter("w", "linear", elements, dtype, (elements,), trained, 4 * elements)


def test_requests_are_rounded_to_the_allocators_unit() -> None:
    assert [rounded(size) for size in (0, 1, 512, 513)] == [0, 512, 512, 1024]


def test_a_storage_lives_as_long_as_somebody_holds_it() -> None:
    tape = Tape(None)
    held = tape.new(N, "float32")
    part = split(tape, held, [N // 2, N // 2])
    assert tape.memory.current == 4 * N
    del held
    assert tape.memory.current == 4 * N
    del part
    assert tape.memory.current == 0


def test_without_a_trained_input_nothing_is_saved() -> None:
    tape = Tape(None)
    x: Storage = tape.new(N, "float32")
    for _ in range(3):
        x = unary(tape, x, "silu")
    assert tape.memory.current == 4 * N


def test_a_product_saves_only_what_its_gradients_need() -> None:
    tape = Tape(None)
    weight = parameter()
    x = tape.new(N, "float32")
    y = mul(tape, weight.tensor, x)
    del x
    assert tape.memory.current == 2 * 4 * N
    z = scale(tape, y)
    del y
    assert tape.memory.current == 2 * 4 * N
    tape.backward(z)
    assert weight.gradient is not None


def test_after_backward_exactly_the_gradients_live() -> None:
    tape = Tape(None)
    first, second, frozen = parameter(), parameter(), parameter(trained=False)
    x: Storage = mul(tape, first.tensor, tape.new(N, "float32"))
    x = mul(tape, x, frozen.tensor)
    x = add(tape, dropout(tape, softmax(tape, x), 0.5), mul(tape, second.tensor, x))
    tape.backward(x)
    del x
    assert tape.created == tape.played
    assert tape.memory.current == 2 * 4 * N
    assert frozen.gradient is None


def test_an_existing_gradient_is_added_to_in_place() -> None:
    tape = Tape(None)
    weight = parameter()
    weight.gradient = weight.tensor
    loss = scale(tape, weight.tensor)
    tape.backward(loss)
    del loss
    assert tape.memory.current == 0


def test_gradients_of_a_value_used_twice_are_summed() -> None:
    tape = Tape(None)
    weight = parameter()
    x = scale(tape, weight.tensor)
    loss = add(tape, unary(tape, x, "silu"), unary(tape, x, "tanh", saves_output=True))
    del x
    tape.backward(loss)
    del loss
    assert tape.memory.current == 4 * N


def test_a_concatenation_hands_out_views() -> None:
    tape = Tape(None)
    left, right = parameter(), parameter()
    loss = cat(tape, [left.tensor, right.tensor])
    tape.backward(loss)
    del loss
    assert left.gradient is not None
    assert right.gradient is not None
    assert tape.memory.current == 2 * 4 * N  # one storage, seen by both


def test_autocast_caches_copies_of_trained_leaves_until_it_ends() -> None:
    tape = Tape("bfloat16")
    weight, frozen = parameter(N * 4), parameter(N * 4, trained=False)
    x = tape.new(64 * N, "bfloat16")
    first = matmul(tape, x, weight.tensor, None, 64, 64)
    del first
    assert tape.memory.current == 2 * 64 * N + 2 * 4 * N
    second = matmul(tape, x, frozen.tensor, None, 64, 64)
    del second
    assert tape.memory.current == 2 * 64 * N + 2 * 4 * N
    tape.end_autocast()
    assert tape.memory.current == 2 * 64 * N


def checkpointed(reentrant: bool) -> tuple[Tape, Storage, Parameter]:
    tape = Tape(None)
    weight = parameter()
    x = scale(tape, weight.tensor)

    def block(value: Storage) -> Storage:
        for _ in range(4):
            value = unary(tape, value, "silu")
        return value

    if reentrant:
        return tape, tape.checkpoint_reentrant(block, x), weight
    return tape, tape.checkpoint(block, x), weight


def test_a_checkpointed_block_keeps_its_input_and_its_result() -> None:
    for reentrant in (False, True):
        tape, result, weight = checkpointed(reentrant)
        assert tape.memory.current == 2 * 4 * N
        tape.backward(result)
        del result
        assert tape.memory.current == 4 * N
        assert weight.gradient is not None


def test_offloaded_tensors_leave_the_device_until_they_are_asked_for() -> None:
    tape = Tape(None)
    tape.offload = True
    weight = parameter()
    x: Storage = scale(tape, weight.tensor)
    for _ in range(5):
        x = unary(tape, x, "silu")
    assert tape.memory.current == 4 * N
    tape.backward(x)
    del x
    assert tape.memory.current == 4 * N


def test_the_register_knows_what_lives() -> None:
    tape = Tape(None, register=True)
    register = tape.memory.register
    assert register is not None
    tape.memory.label = "attention"
    x = tape.new(N, "float32")
    assert register.totals["attention", "float32"] == (4 * N, N)
    register.rename(x, "gradients")
    assert register.totals["gradients", "float32"] == (4 * N, N)
    del x
    assert all(total == (0, 0) for total in register.totals.values())


def test_repeating_adds_what_happened_since_the_mark() -> None:
    tape = Tape(None, register=True)
    mark = tape.memory.mark()
    held = tape.new(N, "float32")
    tape.memory.repeat(mark, 3)
    assert tape.memory.current == 4 * 4 * N
    register = tape.memory.register
    assert register is not None
    assert register.totals["", "float32"] == (4 * 4 * N, 4 * N)
    del held
    assert tape.memory.current == 3 * 4 * N
