"""Conversations with memory, without a UI: turns, models and tools.

``messages`` has the requests to models and their responses, ``conversation`` stores turns and calls models,
``tools`` are the model's tools for memory, and ``choose_model`` resolves a model's name. ``endpoint``,
``openai_model``, ``anthropic_model`` and ``offline`` are for the kinds of models.
"""

from keepstone.chat.choose_model import ModelChoice, choose
from keepstone.chat.conversation import Conversation, Delta
from keepstone.chat.messages import ChatModel
from keepstone.errors import ModelError

__all__ = ["ChatModel", "Conversation", "Delta", "ModelChoice", "ModelError", "choose"]
