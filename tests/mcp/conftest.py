"""These tests need the protocol's package, which is an extra."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("mcp") else ["test_*.py"]
