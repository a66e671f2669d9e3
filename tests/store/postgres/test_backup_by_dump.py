"""A home is backed up by pg_dump and restored by psql, as docs/reliability.md shows."""

from __future__ import annotations

import os
import subprocess
from urllib.parse import parse_qs, urlsplit

import psycopg
from psycopg import sql
from tests.postgres_server import programs

import keepstone


def test_a_dump_restores_entries_history_files_and_vectors(dsn: str) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        session = home.agent("a").session("s")
        session.add("note", text="walnut\0", id="one", embedding=[1, 0])
        session.update("one", text="pecan\0")
        home.agent("a").files.write("plan.md", "today")
    parts = urlsplit(dsn)
    schema = parse_qs(parts.query)["options"][0].partition("=")[2].partition(",")[0]
    server = f"{parts.scheme}://{parts.netloc}/"
    copy = f"restored_{os.getpid()}"
    with psycopg.connect(f"{server}postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(copy)))
    try:
        with psycopg.connect(f"{server}{copy}", autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        dump = [programs() / "pg_dump", f"--schema={schema}", "--no-owner", f"{server}postgres"]
        dumped = subprocess.run(list(map(str, dump)), check=True, capture_output=True).stdout
        restore = [f"{programs()}/psql", "--quiet", "--set=ON_ERROR_STOP=1", f"{server}{copy}"]
        subprocess.run(restore, input=dumped, check=True, capture_output=True)
        with keepstone.open(f"{server}{copy}?{parts.query}", embedder="none") as home:
            agent = home.agent("a")
            assert [version.text for version in agent.history("one")] == ["walnut\0", "pecan\0"]
            assert agent.files.read("plan.md") == "today"
            agent.session("s").add("note", text="written after the restore")
            assert len(agent.recall("restore pecan")) == 2
            assert {finding.level for finding in home.doctor(deep=True)} <= {"ok", "warning"}
    finally:
        with psycopg.connect(f"{server}postgres", autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(copy)))
