"""Where entries are kept: ``base`` says what a store does, ``files`` does it with logs and an index."""
