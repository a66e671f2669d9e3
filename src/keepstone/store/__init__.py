"""Stores: ``protocol`` says what a store does, ``file_store`` does it with logs and an index."""
