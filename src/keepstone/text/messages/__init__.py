"""Chat messages of model providers and frameworks: their texts, and conversion between their forms."""
