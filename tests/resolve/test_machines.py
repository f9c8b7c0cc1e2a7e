"""Configs of the machines of one job know of each other."""

from __future__ import annotations

from trainlint.documents import from_text
from trainlint.formats import Fragment
from trainlint.formats.registry import built_in, recognise
from trainlint.resolve.machines import mark_machines

CONFIG = """\
distributed_type: MULTI_GPU
machine_rank: {rank}
main_process_ip: {ip}
num_machines: {machines}
num_processes: 8
"""


def fragments(**texts: str) -> list[Fragment]:
    found: list[Fragment] = []
    for name, text in texts.items():
        shell = name == "run"
        document = from_text(f"{name}.{'sh' if shell else 'yaml'}", text, "shell" if shell else "yaml")
        found += [fragment for _, fragment in recognise(document, built_in())]
    return found


def config(rank: int = 0, ip: str = "10.0.0.1", machines: int = 2) -> str:
    return CONFIG.format(rank=rank, ip=ip, machines=machines)


def test_configs_that_agree_are_machines_of_one_job() -> None:
    found = fragments(b=config(1), a=config(0))
    mark_machines(found)
    machines = found[0].facts["machines"]
    assert isinstance(machines, tuple)
    assert [one.file for one in machines] == ["a.yaml", "b.yaml"]


def test_configs_that_differ_are_not() -> None:
    found = fragments(a=config(), b=config(ip="10.0.0.9"))
    mark_machines(found)
    assert not any("machines" in one.facts for one in found)


def test_one_machine_needs_no_others() -> None:
    found = fragments(a=config(machines=1), b=config(machines=1))
    mark_machines(found)
    assert not any("machines" in one.facts for one in found)


def test_a_rank_from_the_command_line_decides() -> None:
    found = fragments(a=config(), b=config(), run="accelerate launch --config_file a.yaml --machine_rank 1 train.py\n")
    mark_machines(found)
    assert not any("machines" in one.facts for one in found)
