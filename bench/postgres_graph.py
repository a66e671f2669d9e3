"""Recall@10 of filtered HNSW search in PostgreSQL, compared with exact search.

    python bench/postgres_graph.py [VECTORS] [--questions 100]      # 100,000 unless said

An agent's graph (HNSW) is queried for a session that has 1, 10 or 50 % of the agent's vectors. The vectors
form 500 clusters. A session has vectors of all clusters, or its own clusters, which is the worst case for a
graph: most queries are then far from every vector that passes the filter. For comparison, the same graph is
queried without iterative scans, as by a handwritten query.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import closing
from pathlib import Path
from statistics import fmean, median

import numpy as np
import psycopg
from psycopg.types.numeric import Int8

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.postgres_server import running_server, schema_of

from keepstone.model import Scope
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.session_lines import literal
from keepstone.store.postgres.vector_format import VectorDumper
from keepstone.store.postgres.vector_rows import make_graph
from keepstone.vector import Matrix, Vector, given_space

DIM, CENTRES, PLACES = 384, 500, 10
SPACE = given_space(DIM).id
AGENT = "a"
SHARES = {"percent-1": 0.01, "percent-10": 0.10, "percent-50": 0.50, "others": 0.39}
CHANCE = np.random.default_rng(11)
_NEVER = 1 << 60
_MIDDLES = CHANCE.standard_normal((CENTRES, DIM), dtype=np.float32)


def around(centres: object) -> Matrix:
    """Return vectors of unit length around cluster centres."""
    middles = _MIDDLES[np.asarray(centres)]
    made = middles + 0.8 * CHANCE.standard_normal(middles.shape, dtype=np.float32)
    found: Matrix = made / np.linalg.norm(made, axis=1, keepdims=True)
    return found


def centres_of(session: str, *, own: bool) -> list[int]:
    """Return the cluster centres of a session's vectors."""
    if not own:
        return list(range(CENTRES))
    begin = 0
    for name, share in SHARES.items():
        count = round(share * CENTRES)
        if name == session:
            return list(range(begin, begin + count))
        begin += count
    raise AssertionError(session)


def fill(dsn: str, vectors: int, *, own: bool) -> None:
    """Insert vectors of all sessions in random order."""
    names = CHANCE.choice(list(SHARES), vectors, p=list(SHARES.values()))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.adapters.register_dumper("numpy.ndarray", VectorDumper)
        into = "COPY vectors (agent, space, key, session, embedding) FROM STDIN (FORMAT BINARY)"
        with connection.cursor().copy(into) as copy:
            centres = np.array([CHANCE.choice(centres_of(str(name), own=own)) for name in names])
            for begin in range(0, vectors, 10_000):
                made = around(centres[begin : begin + 10_000])
                for at, vector in enumerate(made, begin):
                    copy.write_row((AGENT, SPACE, Int8(at), str(names[at]), vector))
        connection.execute(
            "INSERT INTO spaces SELECT agent, session, space, %s, count(*) FROM vectors GROUP BY 1, 2, 3",
            (DIM,),
        )
        connection.execute("VACUUM (ANALYZE) vectors, spaces")


def ask(store: PostgresStore, session: str, vector: Vector, hnsw_from: int) -> tuple[set[int], float]:
    """Return the keys found, and the milliseconds of the search."""
    began = time.perf_counter()
    with store.reader(AGENT) as reader:
        found = reader.similar(vector, SPACE, Scope(AGENT, (session,)), PLACES, hnsw_from)
    return {one.key for one in found}, 1000 * (time.perf_counter() - began)


def without(dsn: str, session: str, vectors: Matrix) -> list[set[int]]:
    """Return the keys that the graph finds without iterative scans."""
    sql = (
        f"SELECT key FROM vectors WHERE agent = '{AGENT}' AND space = '{SPACE}' AND session = '{session}' "
        f"ORDER BY (embedding::vector({DIM})) <#> %s::vector({DIM}) LIMIT {PLACES}"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET hnsw.ef_search = 200")
        # Force the planner to use the graph.
        connection.execute("SET enable_seqscan = off; SET enable_sort = off")
        return [{key for (key,) in connection.execute(sql.encode(), (literal(one),))} for one in vectors]


def measure(vectors: int, questions: int, *, own: bool) -> None:
    """Print recall@10 and milliseconds for scopes of several sizes."""
    with (
        running_server(settings={"maintenance_work_mem": "1GB", "shared_buffers": "1GB"}) as server,
        schema_of(server.dsn) as dsn,
        closing(PostgresStore(dsn)) as store,
    ):
        fill(dsn, vectors, own=own)
        make_graph(store._connections, AGENT, SPACE, DIM)  # noqa: SLF001 As upkeep does.
        print(f"{vectors:,} vectors, {'centres of its own' if own else 'all centres'} a session")
        for session, share in SHARES.items():
            asked = around(CHANCE.choice(CENTRES, questions))
            exact = [ask(store, session, one, _NEVER) for one in asked]
            graph = [ask(store, session, one, 1) for one in asked]
            plain = without(dsn, session, asked)

            def recall(found: list[set[int]], exact: list[tuple[set[int], float]] = exact) -> float:
                return fmean(len(one & best) / len(best) for one, (best, _) in zip(found, exact, strict=True))

            print(
                f"    {share:.0%}: recall@10 {recall([one for one, _ in graph]):.3f}, "
                f"without iterative scans {recall(plain):.3f}; p50 {median(ms for _, ms in graph):.1f} ms, "
                f"exact {median(ms for _, ms in exact):.1f} ms",
                flush=True,
            )


def main() -> None:
    os.environ["KEEPSTONE_EMBEDDER"] = "none"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("vectors", type=int, nargs="?", default=100_000)
    parser.add_argument("--questions", type=int, default=100)
    wanted = parser.parse_args()
    for own in (False, True):
        measure(wanted.vectors, wanted.questions, own=own)


if __name__ == "__main__":
    main()
