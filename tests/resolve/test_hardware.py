from __future__ import annotations

import pytest

from trainlint.run import Value

from .runs import Folder, folder, value

__all__ = ["folder"]

GIB = 1 << 30
RUN = "trainlint: run\nbatch: {micro: 2}\n"


def test_nothing_is_known_where_nothing_is_said(folder: Folder) -> None:
    folder.file("run.yaml", RUN)
    run = folder.run()
    assert [path for path in run.values if path.startswith("device.")] == []


def test_a_name_brings_what_the_device_has(folder: Folder) -> None:
    folder.file("run.yaml", RUN)
    run = folder.run(device=Value("RTX 4090"))
    low, high = value(run, "device.memory"), value(run, "device.memory_high")
    assert isinstance(low, int)
    assert isinstance(high, int)
    assert 23 * GIB < low <= high <= 24 * GIB
    assert value(run, "device.capability") == 8.9
    assert value(run, "device.unified") is False
    memory = run.device.memory
    assert memory is not None
    assert (memory.origin, memory.note, memory.unit) == ("derived", "RTX 4090", "byte")


def test_a_name_of_several_sizes_is_an_interval(folder: Folder) -> None:
    folder.file("run.yaml", RUN)
    run = folder.run(device=Value("A100"))
    low, high = value(run, "device.memory"), value(run, "device.memory_high")
    assert isinstance(low, int)
    assert isinstance(high, int)
    assert low < 41 * GIB < 79 * GIB < high
    assert value(folder.run(device=Value("A100 80GB")), "device.memory_high") == high


COMMENTS = [
    ("# trainlint: device=RTX 4090", {"device.name": "RTX 4090"}),
    ("# trainlint: device=RTX 4090:2", {"device.name": "RTX 4090", "device.count": 2}),
    ("# trainlint: device = H100 80GB : 8", {"device.name": "H100 80GB", "device.count": 8}),
    ("# trainlint: device='RTX 4090'", {"device.name": "RTX 4090"}),
    ("# trainlint: devices=4", {"device.count": 4}),
    ("# trainlint: device-memory=24 GiB", {"device.memory": 24 * GIB, "device.claimed_memory": 24 * GIB}),
    ("# trainlint: host-memory=64GB", {"device.host_memory": 64_000_000_000}),
    ("# trainlint: device-memory=24", {}),
    ("# trainlint: device-memory=24 tokens", {}),
    ("# trainlint: devices=0", {}),
    ("# trainlint: devices=many", {}),
    ("# trainlint: the device=RTX 4090", {}),
    ("# device=RTX 4090", {}),
]


@pytest.mark.parametrize(("comment", "expected"), COMMENTS)
def test_comments(folder: Folder, comment: str, expected: dict[str, object]) -> None:
    folder.file("run.yaml", f"{comment}\n{RUN}")
    run = folder.run()
    for path in ("device.name", "device.count", "device.host_memory", "device.claimed_memory"):
        assert value(run, path) == expected.get(path), path
        found = run.get(path)
        if found is not None:
            assert found.place is not None
            assert found.place.line == 1
    if "device.memory" in expected:
        assert value(run, "device.memory") == expected["device.memory"]


def test_who_wins(folder: Folder) -> None:
    folder.file("trainlint.toml", 'device = "T4"\ndevices = 1\nhost-memory = "8 GiB"\n')
    folder.file("run.yaml", RUN)
    assert value(folder.run(), "device.name") == "T4"
    folder.file("run.yaml", RUN + "device: {name: V100, count: 2}\n")
    assert value(folder.run(), "device.name") == "V100"
    folder.file("run.yaml", "# trainlint: device=RTX 3090\n" + RUN + "device: {name: V100, count: 2}\n")
    run = folder.run()
    assert (value(run, "device.name"), value(run, "device.count")) == ("RTX 3090", 2)
    run = folder.run(device=Value("H100"), devices=Value(8))
    assert (value(run, "device.name"), value(run, "device.count")) == ("H100", 8)
    assert value(run, "device.host_memory") == 8 * GIB


def test_a_memory_is_that_of_the_device_it_was_said_of(folder: Folder) -> None:
    folder.file("trainlint.toml", 'device = "T4"\ndevice-memory = "12 GiB"\n')
    folder.file("run.yaml", RUN)
    assert value(folder.run(), "device.memory") == 12 * GIB
    run = folder.run(device=Value("A100 80GB"))
    assert value(run, "device.claimed_memory") is None
    low = value(run, "device.memory")
    assert isinstance(low, int)
    assert low > 79 * GIB
    folder.file("run.yaml", "# trainlint: device=A100 80GB\n" + RUN)
    assert value(folder.run(), "device.claimed_memory") is None
    folder.file("run.yaml", RUN + "device: A100 80GB\n")
    assert value(folder.run(), "device.claimed_memory") is None
    folder.file("run.yaml", RUN + "device: {memory: 10 GiB}\n")
    assert value(folder.run(), "device.memory") == 10 * GIB


def test_more_memory_than_the_device_has_is_a_claim(folder: Folder) -> None:
    folder.file("run.yaml", RUN)
    run = folder.run(device=Value("RTX 4090"), device_memory=Value(64 * GIB, unit="byte"))
    assert value(run, "device.claimed_memory") == 64 * GIB
    high = value(run, "device.memory_high")
    assert isinstance(high, int)
    assert high <= 24 * GIB


def test_a_size_in_the_name_that_nobody_sells_is_a_claim(folder: Folder) -> None:
    folder.file("run.yaml", RUN)
    assert value(folder.run(device=Value("RTX 4090 48GB")), "device.claimed_memory") == 48 * GIB


def test_an_unknown_device_with_a_stated_memory(folder: Folder) -> None:
    folder.file("run.yaml", RUN + "device: {name: Zeta 9, memory: 48 GiB}\n")
    run = folder.run()
    assert value(run, "device.memory") == value(run, "device.memory_high") == 48 * GIB
    assert value(run, "device.capability") is None


def test_the_processor(folder: Folder) -> None:
    folder.file("run.yaml", RUN + "device: cpu\n")
    run = folder.run()
    assert value(run, "device.cpu_only") is True
    assert value(run, "device.memory") is None


def test_processes_follow_from_devices(folder: Folder) -> None:
    folder.file("run.yaml", RUN + "device: {count: 8}\nbatch.accumulation: 4\nparallel: {tensor: 2}\n")
    run = folder.run()
    assert value(run, "parallel.world") == 8
    assert value(run, "parallel.data") == 4
    assert value(run, "batch.effective") == 2 * 4 * 4
    effective = run.batch.effective
    assert effective is not None
    assert (effective.origin, effective.unit) == ("derived", "sample")


def test_what_is_written_is_not_derived(folder: Folder) -> None:
    folder.file("run.yaml", RUN + "device: {count: 8}\nparallel: {data: 2, world: 16}\n")
    run = folder.run()
    assert (value(run, "parallel.world"), value(run, "parallel.data")) == (16, 2)


def test_profiles(folder: Folder) -> None:
    folder.file("run.yaml", RUN)
    profile = folder.run().profile
    assert profile is not None
    assert (profile.value, profile.origin) == ("default", "default")
    folder.file("trainlint.toml", 'profile = "teaching"\n')
    assert value(folder.run(), "profile") == "teaching"
    assert value(folder.run(profile="default"), "profile") == "default"
    folder.file("run.yaml", "# trainlint: profile=strict\n" + RUN)
    assert value(folder.run(), "profile") == "strict"
    folder.file("run.yaml", "# trainlint: profile=none\n" + RUN)
    assert value(folder.run(), "profile") == "teaching"
    folder.file("run.yaml", RUN + "profile: strict\n")
    assert value(folder.run(), "profile") == "strict"


def test_data_from_the_settings(folder: Folder) -> None:
    folder.file("run.yaml", RUN)
    folder.file("trainlint.toml", "data = { rows = 52000, tokens = { p50 = 180, p95 = 900 } }\n")
    run = folder.run()
    assert value(run, "data.rows") == 52000
    assert {name: found.value for name, found in run.data.tokens.items()} == {"p50": 180, "p95": 900}
