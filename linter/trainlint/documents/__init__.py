"""Text to trees in which every node knows file, line, column, end and raw text. Knows nothing of training."""

from trainlint.documents.failure import Unreadable
from trainlint.documents.read import SIZE_LIMIT, from_bytes, from_text, read, syntax_of
from trainlint.documents.tree import (
    Comment,
    Document,
    Entry,
    Mapping,
    Node,
    Place,
    Problem,
    Scalar,
    Sequence,
    Syntax,
    nodes,
    plain,
    scalars,
)

__all__ = [
    "SIZE_LIMIT",
    "Comment",
    "Document",
    "Entry",
    "Mapping",
    "Node",
    "Place",
    "Problem",
    "Scalar",
    "Sequence",
    "Syntax",
    "Unreadable",
    "from_bytes",
    "from_text",
    "nodes",
    "plain",
    "read",
    "scalars",
    "syntax_of",
]
