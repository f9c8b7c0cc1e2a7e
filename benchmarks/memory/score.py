"""Score trainlint, rules of thumb and other estimators on the same cases in the same run.

    python benchmarks/memory/score.py --simulated truth.jsonl … --published cases.jsonl [--peers PYTHON] [--worst 20]

`--peers` names an interpreter in which the other estimators are installed. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cases import Case, published, simulated
from thumb import GB, RULES

from trainlint.facts import models

GIB = 1 << 30
ALLOCATOR = ("allocated", "peak_allocated", "claimed")
Answers = dict[str, dict[str, int | None]]


def ours(cases: Iterable[Case]) -> dict[str, dict[str, Any]]:
    """`trainlint estimate` on a run file a case."""
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases):
            place = Path(folder, str(number))
            place.mkdir()
            place.joinpath("run.json").write_text(json.dumps(case.run), "utf-8")
            if case.config is not None:
                place.joinpath("config.json").write_text(json.dumps(case.config), "utf-8")
        command = [sys.executable, "-m", "trainlint", "estimate", folder, "--output-format", "json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    runs = {Path(run["root"]).parent.name: run for run in json.loads(done.stdout)["runs"]}
    return {case.name: runs[str(number)] for number, case in enumerate(cases) if str(number) in runs}


def asked(case: Case, config: Mapping[str, Any], parameters: int, trainable: int) -> dict[str, Any]:
    """A case as the peers see it."""
    run = case.run
    optimizer = run["optimizer"]
    adapter = run.get("adapter", {})
    return {
        "name": case.name, "config": {key: value for key, value in config.items() if value is not None},
        "parameters": parameters, "method": run["method"], "weights": run["precision"]["weights"],
        "compute": run["precision"]["compute"], "autocast": run["precision"]["autocast"],
        "micro": run["batch"]["micro"], "accumulation": run["batch"]["accumulation"],
        "length": run["length"]["max"], "checkpointing": run["checkpointing"] is not False,
        "attention": run["attention"], "optimizer": optimizer if isinstance(optimizer, str) else optimizer["name"],
        "rank": adapter.get("rank", 8), "targets": adapter.get("targets", "all-linear") if adapter else "all-linear",
        "double": run.get("quantization", {}).get("double", False), "sharding": _sharding(case),
        "devices": _devices(case), "trainable": trainable,
    }  # fmt: skip


def _sharding(case: Case) -> str:
    return str(case.run.get("sharding", {}).get("kind", "none"))


def _devices(case: Case) -> int:
    return int(case.run.get("parallel", {}).get("data", 1))


def answers(cases: list[Case], found: Mapping[str, dict[str, Any]], python: str | None) -> Answers:
    """Bytes by estimator and case."""
    out: Answers = defaultdict(dict)
    questions = []
    for case in cases:
        run = found[case.name]
        span = "allocated" if case.kind in ALLOCATOR else "device_use"
        out["trainlint"][case.name] = run[span]["likely"]
        known = models.find(str(case.run["model"].get("id", "")))
        config = case.config or (known.config if known is not None else None)
        total, trainable = run["parameters"]["total"] or 0, run["parameters"]["trainable"] or 0
        parameters = total if case.run["method"] == "full" else total - trainable
        if config is not None:
            questions.append(asked(case, config, parameters, trainable))
        for name, rule in RULES.items():
            size = rule(parameters / GB, case.run["method"], _devices(case)) if parameters else None
            out[name][case.name] = None if size is None else int(size * GB)
    if python is not None:
        path = Path(__file__).with_name("peers.py")
        lines = "\n".join(map(json.dumps, questions))
        done = subprocess.run([python, str(path)], input=lines, capture_output=True, text=True, check=True)
        print(done.stderr[-2000:], file=sys.stderr)
        for line in done.stdout.splitlines():
            answer = json.loads(line)
            for peer, size in answer.items():
                if peer != "name":
                    out[peer][answer["name"]] = size
    return out


def quantile(values: Iterable[float], share: float) -> float:
    """A value of the sorted ones, none of them made up."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(cases: list[Case], said: Answers) -> str:
    """Errors on the cases that each answers."""
    rows = [
        "| | answers | median error | 90th percentile | bias | within 10 % | trainlint on these |",
        "|-|-|-|-|-|-|-|",
    ]
    sized = [case for case in cases if case.seen]
    for name in said:
        errors = _errors(sized, said[name])
        if not errors:
            rows.append(f"| {name} | 0 of {len(sized)} | | | | | |")
            continue
        size = [abs(error) for error in errors.values()]
        near = sum(error <= 0.1 for error in size) / len(size)
        same = _errors([case for case in sized if case.name in errors], said["trainlint"])
        rows.append(
            f"| {name} | {len(errors)} of {len(sized)} | {quantile(size, 0.5):.1%} | {quantile(size, 0.9):.0%} | "
            f"{statistics.median(errors.values()):+.0%} | {near:.0%} | {quantile(map(abs, same.values()), 0.5):.1%} |"
        )
    return "\n".join(rows)


def _errors(cases: list[Case], sizes: Mapping[str, int | None]) -> dict[str, float]:
    """How far off each answer is, as a share of what was seen."""
    out = {}
    for case in cases:
        size = sizes.get(case.name)
        if size and case.seen:
            out[case.name] = size / case.seen - 1
    return out


def verdicts(cases: list[Case], said: Answers, found: Mapping[str, dict[str, Any]]) -> str:
    """Out-of-memory reports that are called, and runs that ran and are denied."""
    failed = [case for case in cases if case.kind == "oom" and case.room]
    ran = [case for case in cases if case.kind != "oom" and case.room]
    rows = ["| | failures called | of what ran, denied |", "|-|-|-|"]
    warned = sum(found[case.name]["verdict"] in ("exceeds", "tight") for case in failed)
    denied = sum(found[case.name]["verdict"] == "exceeds" for case in ran)
    rows.append(f"| trainlint (exceeds or tight; exceeds) | {warned} of {len(failed)} | {denied} of {len(ran)} |")
    for name, sizes in said.items():
        over = [sum((sizes.get(case.name) or 0) > (case.room or 0) for case in group) for group in (failed, ran)]
        asked_for = [sum(sizes.get(case.name) is not None for case in group) for group in (failed, ran)]
        rows.append(f"| {name} (likely) | {over[0]} of {asked_for[0]} | {over[1]} of {asked_for[1]} |")
    return "\n".join(rows)


def intervals(cases: list[Case], found: Mapping[str, dict[str, Any]]) -> str:
    """How many measurements lie inside, and how wide that is."""
    inside, widths = 0, []
    for case in cases:
        span = found[case.name]["allocated" if case.kind in ALLOCATOR else "device_use"]
        if case.seen and span["likely"]:
            inside += span["low"] <= case.seen <= span["high"]
            widths.append((span["high"] - span["low"]) / case.seen)
    share, width = inside / len(widths), quantile(widths, 0.5)
    return f"{inside} of {len(widths)} inside the interval ({share:.0%}), median width {width:.0%}"


def by_source(cases: list[Case], said: Answers) -> str:
    """One row a source, as rows of one source are no independent evidence."""
    groups: dict[str, list[float]] = defaultdict(list)
    errors = _errors(cases, said["trainlint"])
    for case in cases:
        if case.name in errors:
            groups[case.source].append(errors[case.name])
    rows = ["| source | cases | median error | bias |", "|-|-|-|-|"]
    for source, off in sorted(groups.items(), key=lambda item: -len(item[1])):
        rows.append(f"| {source} | {len(off)} | {quantile(map(abs, off), 0.5):.1%} | {statistics.median(off):+.0%} |")
    return "\n".join(rows)


def worst(cases: list[Case], said: Answers, count: int) -> str:
    """The cases that are furthest off."""
    errors = _errors(cases, said["trainlint"])
    seen = {case.name: (case.seen or 0) / GIB for case in cases}
    rows = ["| case | seen, GiB | error |", "|-|-|-|"]
    for name in sorted(errors, key=lambda name: -abs(errors[name]))[:count]:
        rows.append(f"| {name} | {seen[name]:.1f} | {errors[name]:+.0%} |")
    return "\n".join(rows)


def main() -> None:
    """Read the arguments, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulated", nargs="*", default=[], type=Path)
    parser.add_argument("--published", nargs="*", default=[], type=Path)
    parser.add_argument("--peers", metavar="PYTHON")
    parser.add_argument("--worst", type=int, default=20)
    options = parser.parse_args()
    for title, paths, read in (
        ("Simulated peaks", options.simulated, simulated), ("Published measurements", options.published, published),
    ):  # fmt: skip
        cases = [case for path in paths for case in read(path)]
        if not cases:
            continue
        found = ours(cases)
        cases = [case for case in cases if case.name in found]
        said = answers(cases, found, options.peers)
        print(f"## {title}\n\n{table(cases, said)}\n")
        if read is published:
            print(f"{intervals(cases, found)}\n\n{verdicts(cases, said, found)}\n\n{by_source(cases, said)}\n")
            print(f"### The worst {options.worst}\n\n{worst(cases, said, options.worst)}\n")


if __name__ == "__main__":
    main()
