"""The errors as the tree at the head of their module draws them."""

import inspect
import re

from keepstone import errors


def test_the_tree_draws_every_error_with_what_else_it_is() -> None:
    drawn = re.findall(r"[├└]── (\w+(?:\(\w+\))?)", errors.__doc__ or "")
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    own = [kind for kind in kinds if kind is not errors.KeepstoneError]
    assert sorted(drawn) == sorted(
        "".join([kind.__name__, *(f"({base.__name__})" for base in kind.__bases__[1:])]) for kind in own
    )
    assert {kind.__bases__[0] for kind in own} == {errors.KeepstoneError}
