"""The policy for secrets in log lines before they are written: mask or refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from keepstone.errors import SecretError
from keepstone.model import Record
from keepstone.secrets.detection import (
    UNTOUCHED,
    Secret,
    is_password,
    kinds_in,
    masked,
    placeholder,
    secrets_in,
)
from keepstone.secrets.kinds import PASSWORD

_OTHER_ID = "choose another id, as ids cannot be masked"


def mask(record: Record) -> Record:
    """Return a log line with placeholders for secrets; the line itself if it has none.

    Raises:
        SecretError: The entry's id looks like a secret. A masked id would name another entry.
    """
    if next(secrets_in(record), None) is None:
        return record
    for kind in kinds_in(str(record.get("id", ""))):
        raise _refusal(Secret(kind, "id"), _OTHER_ID)
    kept = {key: value for key, value in record.items() if key in UNTOUCHED}
    return dict(_masked(record) | kept)


def _masked(value: Any, key: str = "") -> Any:
    if isinstance(value, str):
        text = masked(value)
        return placeholder(PASSWORD) if text == value and is_password(key, value) else text
    if isinstance(value, dict):
        return _masked_object(value)
    return [_masked(item, key) for item in value] if isinstance(value, list) else value


def _masked_object(value: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, item in value.items():
        key = masked(name)
        while key != name and (key in result or key in value):
            key += "'"  # Two masked keys must stay distinct.
        result[key] = _masked(item, name)
    return result


def refuse(record: Record) -> Record:
    """Return a log line unless it has a suspected secret.

    Raises:
        SecretError: The line has a suspected secret. The message has its kind and place, never its value.
    """
    for secret in secrets_in(record):
        raise _refusal(secret, "remove it, or open the home with secrets='mask'")
    return record


def _refusal(secret: Secret, remedy: str) -> SecretError:
    return SecretError(
        f"{secret.where} contains what looks like a secret ({secret.kind}), which this home refuses; "
        f"nothing was written: {remedy}"
    )


def guard_of(policy: Literal["mask", "refuse"]) -> Callable[[str, Sequence[Record]], list[Record]]:
    """Return a function that masks or refuses secrets in lines before they are written.

    Ids that look like secrets are always refused, as they cannot be masked.
    """
    act = mask if policy == "mask" else refuse

    def guard(session: str, records: Sequence[Record]) -> list[Record]:
        for kind in kinds_in(session):
            raise _refusal(Secret(kind, "the session's id"), _OTHER_ID)
        return [act(record) for record in records]

    return guard
