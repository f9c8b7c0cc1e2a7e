from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trainlint.memory.device_use import GIB, LIKELY, Peak, device_use, pressing

SIZES = st.integers(0, 80 * GIB)


@given(SIZES, SIZES, st.integers(1, 64), st.booleans())
def test_bounds_are_in_order_and_above_the_tensors(allocated: int, held: int, devices: int, varying: bool) -> None:
    peak = Peak(allocated, min(held, allocated))
    used = device_use(peak, peak, peak, devices, varying)
    assert allocated < used.low < used.likely <= used.high


@given(SIZES, SIZES, SIZES)
def test_more_tensors_never_show_less(allocated: int, more: int, held: int) -> None:
    small, large = Peak(allocated, min(held, allocated)), Peak(allocated + more, min(held, allocated))
    assert device_use(small, small, small).likely <= device_use(large, large, large).likely
    assert pressing(small) <= pressing(large)


def test_what_stays_is_not_cached_twice() -> None:
    states, activations = Peak(10 * GIB, 10 * GIB), Peak(10 * GIB, 0)
    assert device_use(states, states, states).likely < device_use(activations, activations, activations).likely


def test_several_devices_have_buffers_to_talk() -> None:
    peak = Peak(10 * GIB, 5 * GIB)
    one, two = device_use(peak, peak, peak), device_use(peak, peak, peak, 2)
    assert two.likely - one.likely == LIKELY.buffers
    assert device_use(peak, peak, peak, 8) == two


def test_a_cache_never_outgrows_the_device() -> None:
    peak = Peak(20 * GIB, 5 * GIB)
    free = device_use(peak, peak, peak, varying=True)
    assert free.high > 48 * GIB
    assert device_use(peak, peak, peak, varying=True, room=24 * GIB).high <= max(24 * GIB, pressing(peak))
    assert device_use(peak, peak, peak, varying=True, room=8 * GIB).high == max(pressing(peak), free.likely)


def test_reserved_over_allocated_on_t4_cards() -> None:
    """61 LoRA runs: reserved exceeded allocated by 0.05 to 0.6 of what comes and goes, by 0.25 at the median."""
    peak = Peak(7 * GIB, 2 * GIB)
    used = device_use(peak, peak, peak)
    assert used.low - peak.allocated < 0.05 * peak.moving + GIB
    assert used.high - peak.allocated > 0.6 * peak.moving
