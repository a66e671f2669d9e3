"""The page that is shown for one that is missing or failed."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.server.conftest import serving

ASKED = """
import sys
from pathlib import Path
from fastapi import FastAPI
from starlette.testclient import TestClient
import keepstone
from keepstone.web import mount

def access(request):
    raise RuntimeError("the key is walnut")

app = FastAPI()
with keepstone.open(sys.argv[1]) as home:
    mount(app, home, project=Path(sys.argv[1]), access=access)
    with TestClient(app, raise_server_exceptions=False) as http:
        for path in ("/a/default/sessions", "/nowhere"):
            answer = http.get(path)
            print(answer.status_code, answer.text.replace("\\n", " "))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what a browser gets for a page that fails, and for one that is not there."""
    command = [sys.executable, "-c", ASKED, str(tmp_path_factory.mktemp("failing"))]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)
    return done.stdout.splitlines()


def test_a_page_that_failed_keeps_the_words_of_the_error_to_itself(answers: list[str]) -> None:
    assert answers[0].startswith("500 ")
    assert "This page failed" in answers[0]
    assert "walnut" not in answers[0]


def test_an_address_without_a_page_is_answered_as_not_found(answers: list[str]) -> None:
    assert answers[1].startswith("404 ")
    assert "There is no such page" in answers[1]


def test_an_error_page_looks_like_a_page(answers: list[str]) -> None:
    assert ["/_keepstone/style.css" in answer for answer in answers] == [True, True]


def test_pages_of_an_agent_whose_memory_is_a_file_say_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path) as server, server.client() as client:
        memory = server.home / "agents/broken/memory"
        memory.parent.mkdir(parents=True)
        memory.write_text("")
        pages = [client.get(f"/a/broken/{page}") for page in ("sessions", "session?id=s")]
        others = [client.get(f"/a/broken/{page}").status_code for page in ("recall?q=x", "overview", "files")]
    for page in pages:
        assert page.status_code == 200
        assert f"{memory} is not a folder; move it away, then try again" in page.text
    assert others == [200, 200, 200]
    assert server.log == ""
