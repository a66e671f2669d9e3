"""A LangGraph graph with long-term memory in keepstone. Runs offline, without a model.

pip install 'keepstone[langgraph]' && python examples/langgraph_store.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

import keepstone
from keepstone.integrations.langgraph import KeepstoneStore


class State(TypedDict):
    """The state that the graph passes on."""

    user: str
    said: str
    known: list[str]


def remember(state: State, *, store: BaseStore) -> dict[str, list[str]]:
    """Put what the user said into their namespace, and return what was known before."""
    namespace = ("users", state["user"])
    known = [item.value["text"] for item in store.search(namespace)]
    store.put(namespace, str(len(known)), {"text": state["said"]})
    return {"known": known}


def main(home: str) -> None:
    """Run the graph twice, as two conversations would."""
    graph = StateGraph(State)
    graph.add_node("remember", remember)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", END)
    app = graph.compile(store=KeepstoneStore(home))

    app.invoke({"user": "ada", "said": "I never fly, I take the ferry", "known": []})
    answer = app.invoke({"user": "ada", "said": "Book me a trip to Dover", "known": []})
    print("known from before:", answer["known"])

    with keepstone.open(home) as memory:
        for hit in memory.agent("default").recall("how does Ada travel? ferry", limit=1):
            print("recalled:", hit.entry.text, "from session", hit.entry.session)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
