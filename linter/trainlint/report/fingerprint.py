"""What makes a finding the same one after lines have moved: rule, file, its line's text, and which of its kind."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

from trainlint.result import Result
from trainlint.rule import Finding


def fingerprints(result: Result) -> Iterator[tuple[Finding, str]]:
    """Every finding with its fingerprint (64 hexadecimal digits), all different within a result."""
    lines = {file: text.split("\n") for file, text in (result.sources or {}).items()}
    seen: Counter[tuple[str, str, str]] = Counter()
    for finding in result.findings:
        source = lines.get(finding.place.file, [])
        line = source[finding.place.line - 1].strip() if 0 < finding.place.line <= len(source) else finding.message
        same = (finding.rule, finding.place.file.replace("\\", "/"), line)
        made = "\0".join((*same, str(seen[same])))
        seen[same] += 1
        yield finding, hashlib.sha256(made.encode("utf-8", "surrogatepass")).hexdigest()
