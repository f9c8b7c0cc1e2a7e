"""Shell text as commands with places; nothing is run, and what only a run decides is unknown.

Variables that the text itself sets are expanded as bash does, word splitting and arrays included. A word that needs a
command's output, an argument or a variable nobody set has no text (None). A word that comes whole from a variable
stands where the variable is set, so that a finding points at what has to change.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from trainlint.documents import Place
from trainlint.formats.launch.shell_words import Piece, Token, tokens

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_BLOCKS = {"if": "fi", "for": "done", "while": "done", "until": "done", "select": "done", "case": "esac", "{": "}"}
_CLOSING = frozenset(_BLOCKS.values())
_LEADING = frozenset(("then", "do", "else", "elif", "!", "time", "if", "while", "until", "{", "env"))
_HEADS = frozenset(("for", "select", "case", "function"))
_DECLARING = frozenset(("export", "declare", "local", "readonly", "typeset"))
_SHELLS = frozenset(("bash", "sh", "zsh"))
_DEPTH = 3
UNKNOWN = "\0"


class Cells(NamedTuple):
    """Characters, and where in the file each stands; a NUL is what only a run decides."""

    text: str
    stands: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Word:
    """One word. `text` is None where only a run decides it, `raw` what is written; `place` is where its text stands,
    `used` where the word is."""

    text: str | None
    raw: str
    place: Place
    used: Place
    cells: Cells = field(default=Cells("", ()), repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command.

    `environment` holds its own assignments and what was exported before it. `cut` is a comment that ends the command
    although the line goes on. `conditional`: it stands inside `if`, `case`, a loop or a function. `open`: a variable
    whose value is not known here may add words.
    """

    words: tuple[Word, ...]
    environment: Mapping[str, Word]
    place: Place
    cut: Place | None = None
    conditional: bool = False
    open: bool = False

    @property
    def name(self) -> str:
        """The program's name without its folder; empty where unknown."""
        return (self.words[0].text or "").rpartition("/")[2] if self.words else ""


def commands(file: str, text: str) -> tuple[Command, ...]:
    """Every simple command of a shell text in order, those inside blocks, functions and `bash -c` included."""
    reader = Reader(file, text)
    reader.read(text, range(len(text)))
    return tuple(reader.found)


class Reader:
    """Goes through the tokens once; variables are kept as they are at that point."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]
        self.variables: dict[str, tuple[Cells, ...] | None] = {}
        self.exported: dict[str, Word] = {}
        self.blocks: list[tuple[str, set[str]]] = []
        self.found: list[Command] = []
        self.depth = 0

    def place(self, start: int, end: int) -> Place:
        """The place of a stretch of the file."""
        line = bisect_right(self.starts, start)
        last = bisect_right(self.starts, max(start, end - 1))
        return Place(self.file, line, start - self.starts[line - 1] + 1, last, end - self.starts[last - 1] + 1)

    def read(self, text: str, stands: Sequence[int]) -> None:
        """Read the commands of a text whose characters stand at these positions of the file."""
        words: list[Token] = []
        array: list[Token] | None = None
        for token in tokens(text):
            if token.kind == "word":
                (words if array is None else array).append(token)
                continue
            if token.kind == "comment":
                hides = text[token.start : token.end].rstrip().endswith("\\")
                if array is None and words and (token.continued or hides):
                    self._command(text, stands, words, self.place(stands[token.start], stands[token.end - 1] + 1))
                    words = []
                continue
            sign = text[token.start : token.end]
            if array is not None:
                if sign == ")":
                    self._array(text, stands, words.pop(), array)
                    array = None
            elif sign == "(" and words and words[-1].end == token.start and text[token.start - 1] == "=":
                array = []
            else:
                self._command(text, stands, words, None)
                words = []
                if sign == "(":
                    self.blocks.append((")", set()))
                elif sign == ")":
                    self._close(")")
                elif sign == ";;":
                    self._forget()
        self._command(text, stands, words, None)

    def _command(self, text: str, stands: Sequence[int], taken: list[Token], cut: Place | None) -> None:
        """One command, once its last token is known: reserved words, assignments, then the command itself."""
        taken = self._reserved(taken)
        own: dict[str, Word] = {}
        declares = ""
        while taken:
            head = taken[0].pieces[0] if taken[0].pieces else None
            if head is None or head.kind != "text" or head.quoted:
                break
            found = _ASSIGNMENT.match(head.text)
            if found is not None:
                self._assignment(text, stands, taken[0], found, own)
            elif head.text in _DECLARING and not declares:
                declares = head.text
            elif declares == "export" and head.text in self.variables:
                own[head.text] = self._word(text, stands, taken[0], self.variables[head.text] or (_unknown(0),))
            elif not declares:
                break
            taken = taken[1:]
        if not taken or declares:
            for name, word in own.items():
                if declares == "export" or name in self.exported:
                    self.exported[name] = word
                self._assign(name, None if word.text is None and not word.cells.text else (word.cells,))
            return
        words: list[Word] = []
        more = False
        for token in taken:
            fields, unsure = self._expand(text, stands, token)
            behind_flag = bool(words) and (words[-1].text or "").startswith("-") and "=" not in (words[-1].text or "")
            more = more or (unsure and not behind_flag)
            words += (self._word(text, stands, token, (cells,)) for cells in fields)
        if words:
            conditional = any(kind not in (")", "}") for kind, _ in self.blocks)
            place = self.place(stands[taken[0].start], stands[taken[-1].end - 1] + 1)
            self.found.append(Command(tuple(words), {**self.exported, **own}, place, cut, conditional, more))
            self.inner(words)

    def _reserved(self, taken: list[Token]) -> list[Token]:
        """What follows the reserved words; blocks are opened and closed on the way."""
        while taken and (word := _literal(taken[0])) in _CLOSING | _LEADING | _HEADS:
            if word in _CLOSING:
                self._close(word)
            elif word in _BLOCKS:
                self.blocks.append((_BLOCKS[word], set()))
            elif word in ("else", "elif"):
                self._forget()
            if word in _HEADS:
                if word in ("for", "select") and len(taken) > 1:
                    self._assign(_literal(taken[1]), None)
                if word == "function" and _literal(taken[-1]) == "{":
                    self.blocks.append(("}", set()))
                return []
            taken = taken[1:]
        return taken

    def _assignment(
        self, text: str, stands: Sequence[int], token: Token, found: re.Match[str], own: dict[str, Word]
    ) -> None:
        name = found[1]
        head = token.pieces[0]
        rest = head._replace(text=head.text[found.end() :], start=head.start + found.end())
        token = token._replace(start=rest.start, pieces=(rest, *token.pieces[1:]))
        if token.start >= token.end:
            own[name] = Word("", "", self.place(stands[token.end - 1], stands[token.end - 1] + 1), _nowhere(self.file))
            return
        fields, _ = self._expand(text, stands, token, split=False)
        cells = _joined(fields)
        if found[2]:
            before = self.variables.get(name)
            cells = _joined([*before, cells]) if before else _unknown(stands[token.start])
        own[name] = self._word(text, stands, token, (cells,))

    def _array(self, text: str, stands: Sequence[int], named: Token, items: list[Token]) -> None:
        found = _ASSIGNMENT.fullmatch(_literal(named))
        if found is None:
            return
        fields = tuple(cells for token in items for cells in self._expand(text, stands, token)[0])
        before = self.variables.get(found[1], ()) if found[2] else ()
        self._assign(found[1], None if before is None else (*before, *fields))

    def _expand(self, text: str, stands: Sequence[int], token: Token, split: bool = True) -> tuple[list[Cells], bool]:
        """A token's fields after expansion and word splitting, and whether it may be more than these."""
        fields: list[list[Cells]] = [[]]
        unsure = False
        kept = any(piece.quoted and piece.kind == "text" for piece in token.pieces)
        for piece in token.pieces:
            match piece.kind:
                case "text":
                    fields[-1].append(Cells(piece.text, tuple(stands[piece.start : piece.start + len(piece.text)])))
                case "nothing":
                    kept = False
                case "unknown":
                    fields[-1].append(_unknown(stands[piece.start]))
                case _:
                    known = self.variables.get(piece.text)
                    if not known or UNKNOWN in known[0].text:
                        alone = len(token.pieces) == 1 and not (piece.quoted and piece.kind == "name")
                        unsure = unsure or (alone and piece.text in self.variables)
                    if piece.text in self.variables and known == ():
                        continue
                    if known is None:
                        fields[-1].append(_unknown(stands[piece.start]))
                    elif piece.kind == "all":
                        fields[-1].append(known[0])
                        fields += ([cells] for cells in known[1:])
                    elif piece.quoted or not split:
                        fields[-1].append(known[0])
                    else:
                        parts = [(found.start(), found.end()) for found in re.finditer(r"\S+", known[0].text)]
                        for number, (low, high) in enumerate(parts):
                            if number:
                                fields.append([])
                            fields[-1].append(Cells(known[0].text[low:high], known[0].stands[low:high]))
        joined = [_joined(field) for field in fields]
        return [cells for cells in joined if cells.text or kept], unsure

    def _word(self, text: str, stands: Sequence[int], token: Token, fields: tuple[Cells, ...]) -> Word:
        """A field of a token as a word: it stands where its characters stand, where these are together elsewhere."""
        cells = fields[0]
        start, end = stands[token.start], stands[token.end - 1] + 1
        used = self.place(start, end)
        place, raw = used, self.text[start:end]
        where = cells.stands
        if where and not start <= where[0] < end and all(0 < b - a <= 2 for a, b in itertools.pairwise(where)):
            place, raw = self.place(where[0], where[-1] + 1), self.text[where[0] : where[-1] + 1]
        return Word(None if UNKNOWN in cells.text else cells.text, raw, place, used, cells)

    def inner(self, words: list[Word]) -> None:
        """The commands of `bash -c '…'`, also behind `srun` and the like."""
        for at, word in enumerate(words[:-2]):
            name = (word.text or "").rpartition("/")[2]
            flags = words[at + 1].text or ""
            if name in _SHELLS and flags.startswith("-") and flags.endswith("c") and self.depth < _DEPTH:
                self.depth += 1
                self.read(*words[at + 2].cells)
                self.depth -= 1
                return

    def _assign(self, name: str, value: tuple[Cells, ...] | None) -> None:
        self.variables[name] = value
        if self.blocks:
            self.blocks[-1][1].add(name)

    def _close(self, closing: str) -> None:
        if self.blocks and self.blocks[-1][0] == closing:
            if closing == "}":
                _, names = self.blocks.pop()
                if self.blocks:
                    self.blocks[-1][1].update(names)
            else:
                self._forget()
                self.blocks.pop()

    def _forget(self) -> None:
        """What a branch sets is unknown behind it."""
        for name in self.blocks[-1][1] if self.blocks else ():
            self.variables[name] = None
            if name in self.exported:
                self.exported[name] = replace(self.exported[name], text=None)


def _literal(token: Token) -> str:
    """A token's text if it is one plain piece without quotes, else an empty one."""
    match token.pieces:
        case (Piece("text", text, _, False),):
            return text
    return ""


def _joined(parts: Sequence[Cells]) -> Cells:
    if len(parts) == 1:
        return parts[0]
    return Cells("".join(part.text for part in parts), tuple(at for part in parts for at in part.stands))


def _unknown(at: int) -> Cells:
    return Cells(UNKNOWN, (at,))


def _nowhere(file: str) -> Place:
    return Place(file)
