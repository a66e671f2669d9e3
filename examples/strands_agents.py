"""A Strands agent whose session keepstone remembers. Runs offline, on a scripted model.

pip install 'keepstone[strands]' && python examples/strands_agents.py
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from tempfile import TemporaryDirectory
from typing import Any

from strands import Agent
from strands.models import Model

import keepstone
from keepstone.integrations.strands import KeepstoneSessionManager


class Counting(Model):
    """A model that answers with the number of messages that it was sent."""

    def update_config(self, **_: Any) -> None:
        """Do nothing: there is nothing to configure."""

    def get_config(self) -> dict[str, Any]:
        """Return no configuration."""
        return {}

    async def structured_output(self, *_: Any, **__: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Return no structured output."""
        yield {}

    async def stream(self, messages: list[Any], *_: Any, **__: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Answer with one text."""
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockDelta": {"delta": {"text": f"I read {len(messages)} messages"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def main(home: str) -> None:
    """Talk twice, each time with a new agent object, as after a restart."""
    for text in ("We use pnpm", "Which tool do we use?"):
        agent = Agent(
            model=Counting(),
            agent_id="builder",
            session_manager=KeepstoneSessionManager("project", home, agent="coder"),
            callback_handler=None,
        )
        print(text, "->", str(agent(text)).strip())

    with keepstone.open(home) as memory:
        print("recalled:", memory.agent("coder").recall("pnpm", limit=1)[0].text)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(folder)
