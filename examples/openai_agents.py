"""An OpenAI Agents SDK agent whose conversation keepstone remembers. Runs offline, on a scripted model.

pip install 'keepstone[openai-agents]' && python examples/openai_agents.py
"""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message

import keepstone
from keepstone.integrations.openai_agents import KeepstoneSession


async def main(home: str) -> None:
    """Talk twice, and find later what was said."""
    model = ScriptedModel(steps=[[assistant_message("San Francisco")], [assistant_message("California")]])
    guide = Agent(name="guide", instructions="Answer in one word.", model=model)
    session = KeepstoneSession("golden-gate", home=home, agent="guide")
    offline = RunConfig(tracing_disabled=True)

    for question in ("In which city is the Golden Gate Bridge?", "In which state is that?"):
        result = await Runner.run(guide, question, session=session, run_config=offline)
        print(question, result.final_output)

    print(len(await session.get_items()), "items in the session")
    with keepstone.open(home) as memory:
        for hit in memory.agent("guide").recall("Golden Gate Bridge", limit=1):
            print("recalled:", hit.entry.text)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
