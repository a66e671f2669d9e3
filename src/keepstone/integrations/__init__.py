"""Adapters that implement the memory interfaces of agent frameworks, one module a framework.

Each needs its framework, which an extra installs, and is imported by its full name:
``from keepstone.integrations.langgraph import KeepstoneStore``. All of them write ordinary entries and files,
so that what one adapter remembers, every other way in finds.
"""
