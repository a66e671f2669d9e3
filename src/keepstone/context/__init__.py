"""The memory block of a system prompt.

The stable prefix comes first, for providers' prompt caches: instructions, notes, pinned entries, preferences
and decisions, none of which depends on the query. Recalled entries and the newest turns follow.
"""

from keepstone.context.assemble import Contents, build
from keepstone.context.counting import Counter, counter_of, estimate_tokens

__all__ = ["Contents", "Counter", "build", "counter_of", "estimate_tokens"]
