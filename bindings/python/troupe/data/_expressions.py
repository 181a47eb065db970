"""Texts like "age > 30 and city in ['Oslo', 'Rome']" as pyarrow's expressions.

Nothing of the text is run.
"""

from __future__ import annotations

import ast
import operator
from typing import Any

import pyarrow.compute as pc

_COMPARES = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_SUMS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def of_text(text: str) -> pc.Expression:
    """The expression. Raises ValueError naming the part that is none."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ValueError(f"filter(expr={text!r}) is no expression: {error.msg}") from None
    return _of(tree.body, text)


def _of(node: ast.expr, text: str) -> Any:
    match node:
        case ast.Name():
            return pc.field(node.id)
        case ast.Constant():
            return pc.scalar(node.value)
        case ast.UnaryOp(op=ast.Not()):
            return ~_of(node.operand, text)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return pc.scalar(-node.operand.value)  # type: ignore[attr-defined]
        case ast.BoolOp():
            parts = [_of(each, text) for each in node.values]
            joined = parts[0]
            for each in parts[1:]:
                joined = joined & each if isinstance(node.op, ast.And) else joined | each
            return joined
        case ast.BinOp() if type(node.op) in _SUMS:
            return _SUMS[type(node.op)](_of(node.left, text), _of(node.right, text))
        case ast.Compare():
            return _compared(node, text)
    raise ValueError(
        f"filter(expr={text!r}): {ast.unparse(node)!r} is not understood; there are columns, "
        "numbers, texts, comparisons, in, and, or, not, "
        "+ - * /; filter(fn) takes a function for all else"
    )


def _compared(node: ast.Compare, text: str) -> Any:
    left, joined = node.left, None
    for op, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(right, (ast.List, ast.Tuple, ast.Set)) or not all(
                isinstance(each, ast.Constant) for each in right.elts
            ):
                raise ValueError(f"filter(expr={text!r}): `in` takes a list of values")
            one = _of(left, text).isin([each.value for each in right.elts])  # type: ignore[attr-defined]
            one = ~one if isinstance(op, ast.NotIn) else one
        elif type(op) in _COMPARES:
            one = _COMPARES[type(op)](_of(left, text), _of(right, text))
        else:
            raise ValueError(f"filter(expr={text!r}): {ast.unparse(node)!r} is not understood")
        joined = one if joined is None else joined & one
        left = right
    return joined
