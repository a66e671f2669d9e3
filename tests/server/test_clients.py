"""A client that is generated from the server's description sends every operation."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.server.operations import SCRIPT


@pytest.fixture
def generated(own_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package of a generated client."""
    with own_server.client() as http:
        (tmp_path / "openapi.json").write_bytes(http.get("/v1/openapi.json").content)
    command = [sys.executable, "-m", "openapi_py_fetch", "openapi.json", "generated"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "[warn]" not in told.stdout, told.stdout
    monkeypatch.syspath_prepend(tmp_path / "generated")
    monkeypatch.setenv("NO_PROXY", "*")
    yield import_module("openapi_client")
    for name in [name for name in sys.modules if name.partition(".")[0] == "openapi_client"]:
        del sys.modules[name]


def test_a_generated_python_client_sends_every_operation(generated: Any, own_server: Any) -> None:
    configuration = generated.Configuration(host=own_server.url, access_token=own_server.token)
    client = generated.ApiClient(configuration)
    groups = [getattr(generated, name)(client) for name in dir(generated) if name.endswith("Api")]
    for step in SCRIPT:
        (group,) = [each for each in groups if hasattr(each, step.operation)]
        send = getattr(group, f"{step.operation}_with_http_info")
        path = {name: quote(value, safe="") for name, value in step.path.items()}  # It does not encode them.
        body = {} if step.body is None else {"body": step.body}
        try:
            answer, status, headers = send(**path, **step.query, **body)
        except generated.ApiException as error:
            answer, status, headers = error.body, error.status, error.headers
        assert (step, status) == (step, step.status)
        assert answer
        assert headers["x-request-id"]


def test_a_generated_python_client_knows_the_types_of_answers(generated: Any) -> None:
    models = import_module("openapi_client.models")
    assert {"data", "tags", "valid_to", "embedding"} <= set(models.Entry.__annotations__)
    assert {"stable", "left_out"} <= set(models.Context.__annotations__)
    assert generated.EntriesApi.get_entry.__annotations__["return"] is models.Entry
