"""A LlamaIndex memory with a block that keepstone keeps. Runs offline.

pip install 'keepstone[llama-index]' && python examples/llama_index_memory.py
"""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory

from keepstone.integrations.llama_index import KeepstoneMemoryBlock


async def main(home: str) -> None:
    """Fill the short-term memory until it overflows, then ask for what left it."""
    memory = Memory.from_defaults(
        session_id="harbour",
        token_limit=60,
        tokenizer_fn=str.split,
        memory_blocks=[KeepstoneMemoryBlock(home, agent="desk")],
    )
    await memory.aput(ChatMessage(role="user", content="The harbour gate opens at six"))
    for number in range(12):
        await memory.aput(ChatMessage(role="user", content=f"Ship {number} reports wind from the west"))
    await memory.aput(ChatMessage(role="user", content="When does the harbour gate open?"))

    system, *_ = await memory.aget()
    print("recalled:", [line for line in str(system.content).splitlines() if "gate opens" in line])


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
