"""The page of each client says what the commands do today."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from keepstone.mcp.clients import CLIENTS, ClientKind

SCRIPT = Path(__file__).parents[2] / "scripts" / "client_pages.py"


@pytest.fixture(scope="module")
def script() -> Any:
    spec = importlib.util.spec_from_file_location("client_pages", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_clients_page_shows_what_the_commands_print(script: Any, client: ClientKind) -> None:
    page = (script.PAGES / f"{client.name}.md").read_text("utf-8")
    assert page == script.page(client), "run python scripts/client_pages.py"
