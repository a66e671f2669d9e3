"""The page of each client says what the commands do today."""

import pytest
from tests.scripts import script
from tests.warm import warm

from keepstone.mcp.clients import CLIENTS, ClientKind

pages = script("client_pages")


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_clients_page_shows_what_the_commands_print(client: ClientKind) -> None:
    page = (pages.PAGES / f"{client.name}.md").read_text("utf-8")
    assert page == pages.page(client, warm()), "run python scripts/client_pages.py"
