"""A validation that records graphs nobody goes back through, or leaves dropout on."""

import ast
import re
from collections.abc import Iterator

from trainlint.api import Document, Found, Place, RunView, rule

NAMES = re.compile(
    r"_?(run_|do_)?(eval|evaluate|evaluation|val|valid|validate|validation|test)(_(epoch|one_epoch|loop|model))?"
)
MODELS = ("model", "net", "network", "classifier", "module", "unet", "encoder")
OFF = re.compile(r"no_grad|inference_mode|set_grad_enabled|enable_grad|backward|autograd|requires_grad|\byield\b")
ELSEWHERE = re.compile(r"LightningModule|keras|tensorflow|\bjax\b|flax|mlx|set_grad_enabled\(False\)")


@rule(severity="warning", formats=("python-script",))
def check(view: RunView) -> Iterator[Found]:
    document = view.root.document
    if document.module is None:
        return
    named = [one for one in _functions(document.module) if NAMES.fullmatch(one.name) and one.args.args]
    if not named or "torch" not in document.text or ELSEWHERE.search(document.text):
        return
    for function in named:
        last = function.end_lineno or function.lineno
        first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        text = "\n".join(document.line(number) for number in range(first, last + 1))
        forward = _forward(function)
        if forward is None:
            continue
        evaluates = re.search(r"\.eval\(\)|\.train\(False\)|\.train\(mode=False\)", document.text)
        if not OFF.search(text) and not _called_without(document, function.name, first, last):
            mode = "" if evaluates else ", and `model.eval()` is called nowhere, so dropout stays on"
            yield Found(
                at=_place(document, forward),
                message=f"`{function.name}` runs the model and records a graph: activations of every batch are "
                f"kept for a backward pass that never comes{mode}",
                help="put `@torch.inference_mode()` (or `torch.no_grad()`) on the function"
                + ("" if evaluates else ", and call `model.eval()` first"),
            )
        elif not evaluates and "no_grad" in text and "backward" in document.text:
            yield Found(
                at=_place(document, forward),
                message=f"`{function.name}` runs the model, and `model.eval()` is called nowhere: dropout and batch "
                "norm go on as in training",
                help="call `model.eval()` before and `model.train()` after it",
                severity="info",
            )


def _functions(module: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in module.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from (one for one in inside if isinstance(one, ast.FunctionDef))


def _forward(function: ast.FunctionDef) -> ast.Call | None:
    """The first call of a model inside a loop of the function."""
    for loop in ast.walk(function):
        if isinstance(loop, ast.For):
            for node in ast.walk(loop):
                if isinstance(node, ast.Call) and (node.args or node.keywords) and _model(node.func):
                    return node
    return None


def _model(called: ast.expr) -> bool:
    """`model`, `self.model`, `model.module`."""
    match called:
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return (owner == "self" and name in MODELS) or (owner in MODELS and name == "module")
        case ast.Name(id=name):
            return name in MODELS
    return False


def _called_without(document: Document, name: str, first: int, last: int) -> bool:
    """Whether a caller turns gradients off around it."""
    for found in re.finditer(rf"(?<!def )\b{name}\(", document.text):
        number = document.text.count("\n", 0, found.start()) + 1
        if first <= number <= last:
            continue
        line = document.line(number)
        margin = len(line) - len(line.lstrip())
        for above in range(number, 0, -1):
            text = document.line(above)
            indent = len(text) - len(text.lstrip())
            if text.strip() and (indent < margin or above == number):
                margin = indent
                decorated = text.lstrip().startswith("def ") and "no_grad" in document.line(above - 1)
                if decorated or re.search(r"no_grad|inference_mode|set_grad_enabled", text):
                    return True
    return False


def _place(document: Document, call: ast.Call) -> Place:
    line = document.line(call.lineno)
    column = len(line.encode()[: call.col_offset].decode(errors="ignore")) + 1
    return Place(document.file, call.lineno, column, call.lineno, column + len(ast.unparse(call.func)))
