"""Adapters that implement the memory interfaces of agent frameworks, one module per framework.

Each module needs its framework, which an extra installs, and is imported by its full name: ``from
keepstone.integrations.langgraph import KeepstoneStore``. All adapters write ordinary entries and files, so
that every other interface finds them.
"""
