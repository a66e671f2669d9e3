"""The package of the protocol may be missing where only a smoke part of the tests runs."""

import pytest

pytest.importorskip("mcp")
