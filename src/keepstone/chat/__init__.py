"""A conversation that remembers, without a screen: turns, models, tools.

``exchange`` holds what a model is given and gives back, ``conversation`` stores
turns and asks, ``tools`` is what a model may do with memory, ``choice`` finds
the model that a person named; the other modules are one kind of model each.
"""

from keepstone.chat.choose_model import ModelChoice, choose
from keepstone.chat.conversation import Conversation, Delta
from keepstone.chat.messages import ChatModel, ModelError

__all__ = ["ChatModel", "Conversation", "Delta", "ModelChoice", "ModelError", "choose"]
