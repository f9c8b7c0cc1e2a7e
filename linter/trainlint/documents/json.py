"""JSON with positions. Comments and trailing commas are tolerated and noted, for some loaders tolerate them too."""

from __future__ import annotations

import json
import re
from bisect import bisect_right

from trainlint.documents.failure import Unreadable
from trainlint.documents.tree import Entry, Mapping, Node, Place, Problem, Scalar, Sequence

DEPTH = 100
_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
  | (?P<word>[A-Za-z_]\w*|-Infinity)
  | (?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)
  | (?P<mark>[{}\[\],:])
  )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {
    "true": True,
    "false": False,
    "null": None,
    "NaN": float("nan"),
    "Infinity": float("inf"),
    "-Infinity": float("-inf"),
}


def parse(file: str, text: str) -> tuple[tuple[Node, ...], list[Problem]]:
    """Return the value of a JSON text and what is odd about it; raise Unreadable where it breaks."""
    return _Parser(file, text).document()


def number(token: str) -> int | float:
    """A JSON number; one of more digits than Python converts is a float."""
    if any(sign in token for sign in ".eE") or len(token) > 4000:
        return float(token)
    return int(token)


class _Parser:
    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.problems: list[Problem] = []
        self.at = 0
        self.kind = ""
        self.token = ""
        self.begin = 0
        self.depth = 0

    def place(self, begin: int, end: int) -> Place:
        starts = self.starts
        line = last = bisect_right(starts, begin)
        if last < len(starts) and end > starts[last]:
            last = bisect_right(starts, end - 1)
        return Place(self.file, line, begin - starts[line - 1] + 1, last, end - starts[last - 1] + 1)

    def fail(self, message: str) -> Unreadable:
        return Unreadable("syntax", message, self.place(self.begin, max(self.at, self.begin + 1)))

    def advance(self) -> None:
        """Step to the next token, noting comments on the way."""
        while True:
            found = _TOKEN.match(self.text, self.at)
            if found is None:
                rest = re.compile(r"[ \t\r\n]*").match(self.text, self.at)
                self.begin = rest.end() if rest else self.at
                self.at = self.begin
                self.kind = self.token = ""
                if self.text.startswith('"', self.begin):
                    raise self.fail("a string that does not end on its line")
                if self.begin < len(self.text):
                    raise self.fail(f"unexpected `{self.text[self.begin]}`")
                return
            self.kind = kind = found.lastgroup or ""
            self.token = found[kind]
            self.begin, self.at = found.span(kind)
            if kind != "comment":
                return
            self.problems.append(Problem("json-comment", "a comment in JSON", self.place(self.begin, self.at)))

    def document(self) -> tuple[tuple[Node, ...], list[Problem]]:
        self.advance()
        if not self.kind:
            return (), self.problems
        root = self.value()
        if self.kind:
            raise self.fail(f"unexpected `{self.token}` behind the end of the value")
        return (root,), self.problems

    def value(self) -> Node:
        begin, end, token, kind = self.begin, self.at, self.token, self.kind
        if token in ("{", "[") and kind == "mark":
            self.depth += 1
            if self.depth > DEPTH:
                raise Unreadable("too-deep", f"nested deeper than {DEPTH} levels", self.place(begin, end))
            node: Node = self.mapping(begin) if token == "{" else self.sequence(begin)
            self.depth -= 1
            return node
        place = self.place(begin, end)
        if kind == "string":
            value: object = self.string(token)
        elif kind == "number":
            value = number(token)
        elif kind == "word" and token in _WORDS:
            value = _WORDS[token]
        elif kind == "word" and token in ("True", "False", "None"):
            raise self.fail(
                f"`{token}` is Python, JSON writes `{ {'True': 'true', 'False': 'false', 'None': 'null'}[token] }`"
            )
        elif not kind:
            raise self.fail("the file ends where a value belongs")
        else:
            raise self.fail(f"`{token}` where a value belongs")
        self.advance()
        return Scalar(value, token, place, kind != "string")

    def string(self, token: str) -> str:
        if "\\" not in token:
            return token[1:-1]
        try:
            return str(json.loads(token, strict=False))
        except ValueError as error:
            raise self.fail(f"bad string: {error}") from None

    def closed(self, mark: str) -> bool:
        """Whether a collection ends here; a comma before its end is noted."""
        if self.token == mark and self.kind == "mark":
            return True
        if self.token != "," or self.kind != "mark":
            raise self.fail(
                f"`{self.token}` where `,` or `{mark}` belongs" if self.kind else f"the file ends before `{mark}`"
            )
        comma = self.place(self.begin, self.at)
        self.advance()
        if self.token == mark and self.kind == "mark":
            self.problems.append(Problem("trailing-comma", f"a comma before `{mark}`", comma))
            return True
        return False

    def mapping(self, begin: int) -> Mapping:
        entries: list[Entry] = []
        seen: dict[str, Place] = {}
        self.advance()
        done = self.token == "}" and self.kind == "mark"
        while not done:
            if self.kind != "string":
                raise self.fail(
                    f"`{self.token}` where a key in double quotes belongs" if self.kind else "the file ends before `}`"
                )
            key = Scalar(self.string(self.token), self.token, self.place(self.begin, self.at), False)
            place = key.place
            first = seen.setdefault(str(key.value), place)
            if first is not place:
                message = f"`{key.value}` stands twice, the first time on line {first.line}"
                self.problems.append(Problem("duplicate-key", message, place, first))
            self.advance()
            if self.token != ":" or self.kind != "mark":
                raise self.fail("no `:` behind the key")
            self.advance()
            entries.append(Entry(key, self.value()))
            done = self.closed("}")
        place = self.place(begin, self.at)
        self.advance()
        return Mapping(tuple(entries), place)

    def sequence(self, begin: int) -> Sequence:
        items: list[Node] = []
        self.advance()
        done = self.token == "]" and self.kind == "mark"
        while not done:
            items.append(self.value())
            done = self.closed("]")
        place = self.place(begin, self.at)
        self.advance()
        return Sequence(tuple(items), place)
