"""Chat messages of model providers and frameworks: what they say, and how one is turned into another's."""
