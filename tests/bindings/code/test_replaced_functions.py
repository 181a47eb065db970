"""Functions of other packages that are replaced by what wraps them: once by each wrapper, in the package and where it is named again."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from troupe._after_import import replace


def doubled(function: Any) -> Any:
    return lambda value: 2 * function(value)


def plus_one(function: Any) -> Any:
    return lambda value: function(value) + 1


def package() -> tuple[SimpleNamespace, SimpleNamespace]:
    """A package with a function, and another that has it too."""
    def same(value: int) -> int:
        """Return the value."""
        return value

    return SimpleNamespace(same=same), SimpleNamespace(same=same, other=same)


def test_wrappers_of_one_function_are_a_chain() -> None:
    module, again = package()
    replace("same", doubled, module, again)
    replace("same", plus_one, module, again)
    assert module.same(3) == again.same(3) == 7 and again.other(3) == 3
    assert module.same.__name__ == "same" and module.same.__doc__ == "Return the value."


def test_each_wrapper_is_there_once_however_often_it_is_put_there() -> None:
    module, again = package()
    for _ in range(3):
        for each in (doubled, plus_one):
            replace("same", each, module, again)
    assert module.same(3) == again.same(3) == 7


def test_what_a_package_has_not_is_left_alone() -> None:
    module, again = package()
    replace("absent", doubled, module, again)
    assert not hasattr(module, "absent") and not hasattr(again, "absent")
