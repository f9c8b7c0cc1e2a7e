"""One module a file format: is it mine, what does it say of a run, and what does its framework make of that?"""

from trainlint.formats.format import Draft, Format
from trainlint.formats.fragment import Fragment, Reference, Role, say

__all__ = ["Draft", "Format", "Fragment", "Reference", "Role", "say"]
