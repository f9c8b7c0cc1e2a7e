"""Models are fetched from a hub when asked, and read from the cache when linting: against a server on this machine."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from trainlint.cli import main
from trainlint.facts import cache
from trainlint.session import Request, open_session
from trainlint.settings import nearest

CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}
INDEX = {"metadata": {"total_size": 2468}, "weight_map": {}}
COUNTS = {"id": "acme/tiny", "safetensors": {"parameters": {"BF16": 1234}, "total": 1234}}
ANSWERS: dict[str, object] = {
    "/acme/tiny/resolve/main/config.json": CONFIG,
    "/acme/tiny/resolve/main/model.safetensors.index.json": INDEX,
    "/api/models/acme/tiny/revision/main?expand[]=safetensors": COUNTS,
    "/acme/plain/resolve/main/config.json": CONFIG,
    "/acme/tiny/resolve/v2/config.json": {**CONFIG, "hidden_size": 32},
    "/acme/gated/resolve/main/config.json": 401,
    "/acme/broken/resolve/main/config.json": b"<html>",
    "/acme/list/resolve/main/config.json": [],
    "/acme/down/resolve/main/config.json": 503,
}


class Hub(BaseHTTPRequestHandler):
    seen: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.seen.append((self.path, self.headers.get("Authorization")))
        answer = ANSWERS.get(self.path, 404)
        code = answer if isinstance(answer, int) else 200
        self.send_response(code)
        self.end_headers()
        if not isinstance(answer, int):
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a hub; what is fetched is kept in a folder of the test."""
    monkeypatch.setenv("TRAINLINT_CACHE", str(tmp_path / "cache"))
    for name in ("HF_TOKEN", "HF_ENDPOINT", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    Hub.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_model_is_fetched_once_and_used_without_the_hub(
    hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "add", "acme/tiny", "--endpoint", hub]) == 0
    said = capsys.readouterr().out
    assert said.startswith("acme/tiny: llama, 1.234e-06 B parameters, bfloat16, kept in ")
    kept = cache.find("acme/tiny")
    assert kept is not None
    assert (kept.config, kept.parameters, kept.nbytes, kept.dtype) == (CONFIG, 1234, 2468, "bfloat16")
    asked = len(Hub.seen)
    (tmp_path / "run.yaml").write_text("trainlint: run\nmodel: {id: acme/tiny}\n")
    monkeypatch.chdir(tmp_path)
    nearest.cache_clear()
    (resolved,) = open_session(Request(paths=("run.yaml",))).runs
    values = {path: found.value for path, found in resolved.run.values.items()}
    assert values["model.shape.hidden"] == 64
    assert values["model.parameters"] == 1234
    assert values["model.dtype"] == "bfloat16"
    assert values["model.checkpoint_bytes"] == 2468
    assert len(Hub.seen) == asked
    assert main(["models", "acme"]) == 0
    assert "acme/tiny" in capsys.readouterr().out


def test_a_hub_that_counts_nothing_gives_the_config_alone(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub)
    assert main(["models", "add", "acme/plain"]) == 0
    kept = cache.find("acme/plain")
    assert kept is not None
    assert (kept.parameters, kept.nbytes, kept.dtype) == (None, None, None)
    assert main(["models", "add", "acme/tiny", "--revision", "v2"]) == 0
    kept = cache.find("acme/tiny")
    assert kept is not None
    assert kept.config["hidden_size"] == 32


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("acme/gone", "has no model `acme/gone` with a config.json in `main`"),
        ("acme/gated", "does not show `acme/gated` (401): it is gated, private or not there"),
        ("acme/broken", "answers no JSON"),
        ("acme/list", "answers no JSON object"),
        ("acme/down", "answers 503"),
        ("../etc/passwd", "`../etc/passwd` is no id of a model"),
        ("a/b/c", "`a/b/c` is no id of a model"),
    ],
)
def test_what_can_not_be_had_is_said(hub: str, model: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "add", model, "--endpoint", hub]) == 2
    assert said in capsys.readouterr().err
    assert cache.every() == ()


def test_no_hub(hub: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert main(["models", "add", "acme/tiny", "--endpoint", address]) == 2
    assert f"can not reach {address}: " in capsys.readouterr().err
    assert main(["models", "add", "acme/tiny", "--endpoint", "file:///etc"]) == 2
    assert "`file:///etc` is no http address" in capsys.readouterr().err


def test_a_token_goes_to_its_own_hub_alone(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    main(["models", "add", "acme/tiny", "--endpoint", hub])
    assert {token for _, token in Hub.seen} == {None}
    monkeypatch.setenv("HF_ENDPOINT", hub)
    main(["models", "add", "acme/tiny"])
    assert {token for _, token in Hub.seen} == {None, "Bearer secret"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id": "a/b", "config": 1}', '{"config": {}}'])
def test_a_broken_cache_says_nothing(hub: str, text: str) -> None:
    path = cache.path_of("a/b")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert cache.find("a/b") is None
    assert cache.every() == ()


def test_places_of_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRAINLINT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache.folder() == tmp_path / "trainlint"
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "Library" / "Caches" / "trainlint"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert cache.folder() == tmp_path / "trainlint" / "Cache"
