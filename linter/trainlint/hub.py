"""`trainlint models add`: fetch a model's config and counts from a hub, once and only when asked.

Asked for are `config.json`, the index of the weights, and the hub's own count of them; never the weights.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from trainlint.errors import TrainlintError
from trainlint.facts.cache import ID, Fetched, keep
from trainlint.resolve.weights import INDEX, from_index, of_elements

ENDPOINT = "https://huggingface.co"
SECONDS = 30
LIMIT = 64 << 20
"""Longer answers are no config (bytes)."""


def add(model_id: str, endpoint: str | None = None, revision: str = "main") -> str:
    """Fetch a model and keep it; returns what to tell. Raises TrainlintError where it can not be had."""
    if not ID.fullmatch(model_id) or ".." in model_id:
        raise TrainlintError(f"`{model_id}` is no id of a model: `organisation/name`")
    base = (endpoint or os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/")
    if urlsplit(base).scheme not in ("http", "https"):
        raise TrainlintError(f"`{base}` is no http address")
    fetched = _fetch(_Hub(base, model_id), revision)
    try:
        path = keep(fetched)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TrainlintError(f"can not write `{error.filename or ''}`: {reason}") from None
    said = [str(fetched.config.get("model_type") or "a model")]
    if fetched.parameters is not None:
        said.append(f"{fetched.parameters / 1e9:.4g} B parameters")
    if fetched.dtype is not None:
        said.append(fetched.dtype)
    return f"{model_id}: {', '.join(said)}, kept in {path}"


def _fetch(hub: _Hub, revision: str) -> Fetched:
    config = hub.json(f"/{hub.model}/resolve/{revision}/config.json")
    if config is None:
        raise TrainlintError(f"{hub.base} has no model `{hub.model}` with a config.json in `{revision}`")
    index = hub.json(f"/{hub.model}/resolve/{revision}/{INDEX}") or {}
    metadata = index.get("metadata")
    listed = from_index(metadata) if isinstance(metadata, dict) else None
    tensors = (hub.json(f"/api/models/{hub.model}/revision/{revision}?expand[]=safetensors") or {}).get("safetensors")
    by_type = tensors.get("parameters") if isinstance(tensors, dict) else None
    elements = Counter(
        {
            name: count
            for name, count in (by_type if isinstance(by_type, dict) else {}).items()
            if isinstance(count, int)
        }
    )
    parameters, dtype = of_elements(elements)
    return Fetched(
        hub.model,
        config,
        parameters if parameters is not None else listed.parameters if listed is not None else None,
        listed.nbytes if listed is not None else None,
        dtype,
        f"{hub.base}/{hub.model}",
    )


class _Hub:
    """One model of a hub."""

    def __init__(self, base: str, model: str) -> None:
        self.base = base
        self.model = model
        self.opener = build_opener(_Redirect)

    def json(self, path: str) -> dict[str, object] | None:
        """A JSON object, or None where the hub has none there."""
        address = self.base + path
        headers = {"User-Agent": "trainlint", "Accept": "application/json"}
        token = os.environ.get("HF_TOKEN")
        own = (ENDPOINT, (os.environ.get("HF_ENDPOINT") or ENDPOINT).rstrip("/"))
        if token and self.base in own:  # a token is for the hub that it was made for
            headers["Authorization"] = f"Bearer {token}"
        try:
            with self.opener.open(Request(address, headers=headers), timeout=SECONDS) as answer:
                data = answer.read(LIMIT + 1)
        except HTTPError as error:
            if error.code == 404:
                return None
            if error.code in (401, 403):
                raise TrainlintError(
                    f"{self.base} does not show `{self.model}` ({error.code}): it is gated, private or not there; "
                    "ask for access on its page and set HF_TOKEN"
                ) from None
            raise TrainlintError(f"{address} answers {error.code} {error.reason}") from None
        except (URLError, OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise TrainlintError(f"can not reach {self.base}: {str(reason).lower()}") from None
        if len(data) > LIMIT:
            raise TrainlintError(f"{address} answers more than {LIMIT >> 20} MiB")
        try:
            loaded = json.loads(data)
        except (ValueError, RecursionError):
            raise TrainlintError(f"{address} answers no JSON") from None
        if not isinstance(loaded, dict):
            raise TrainlintError(f"{address} answers no JSON object")
        return loaded


class _Redirect(HTTPRedirectHandler):
    """Follows to other hosts without the token."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: object, newurl: str
    ) -> Request | None:
        made = super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
        if made is not None and urlsplit(newurl).netloc != urlsplit(req.full_url).netloc:
            made.remove_header("Authorization")
        return made
