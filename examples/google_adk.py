"""A Google ADK agent that remembers earlier sessions. Runs offline, on a scripted model.

pip install 'keepstone[adk]' && python examples/google_adk.py
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from tempfile import TemporaryDirectory
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai.types import Content, Part

import keepstone
from keepstone.integrations.adk import KeepstoneMemoryService


class Echo(BaseLlm):
    """A model that says what memory it was given."""

    model: str = "echo"

    async def generate_content_async(
        self, llm_request: LlmRequest, *_: Any, **__: Any
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer with what the memory in the prompt says about ferries."""
        parts = [part for content in llm_request.contents[:-1] for part in content.parts or ()]
        lines = [line for part in parts for line in (part.text or "").splitlines() if "ferry" in line]
        answer = lines[0] if lines else "I did not know that"
        yield LlmResponse(content=Content(role="model", parts=[Part(text=answer)]))


async def main(home: str) -> None:
    """Tell one session something, and ask another one."""
    sessions, memory = InMemorySessionService(), KeepstoneMemoryService(home, agent="travel")
    agent = LlmAgent(name="clerk", model=Echo(), tools=[PreloadMemoryTool()])
    runner = Runner(agent=agent, app_name="trips", session_service=sessions, memory_service=memory)

    for day, text in (("monday", "I never fly, I take the ferry"), ("tuesday", "Fly or ferry?")):
        await sessions.create_session(app_name="trips", user_id="ada", session_id=day)
        message = Content(role="user", parts=[Part(text=text)])
        async for event in runner.run_async(user_id="ada", session_id=day, new_message=message):
            if event.content and event.content.parts:
                print(day, "->", event.content.parts[0].text)
        session = await sessions.get_session(app_name="trips", user_id="ada", session_id=day)
        if session is not None:
            await memory.add_session_to_memory(session)

    with keepstone.open(home) as opened:
        print("recalled:", opened.agent("travel").recall("ferry", limit=1)[0].text)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
