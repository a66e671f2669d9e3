"""Stores: ``protocol`` is the contract; ``files`` keeps it in logs and an index, ``postgres`` in tables."""
