"""The text block that goes into a system prompt.

What changes least comes first, so that a provider's prompt cache is hit: instructions of ours, notes, pinned
entries, preferences and decisions. Nothing of that depends on the query. What the query recalled, and the
newest turns, follow. docs/decisions tells why.
"""

from keepstone.context.assemble import Contents, build
from keepstone.context.counting import Counter, counter_of, estimate_tokens

__all__ = ["Contents", "Counter", "build", "counter_of", "estimate_tokens"]
