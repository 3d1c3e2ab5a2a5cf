"""Kinds of mistakes that people make, and the places in a file where each can be planted.

Left out is what no test should have to notice: texts, annotations, defaults, decorators, messages,
progress, and everything outside functions, where constants of tuning and tables of words stand.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
Found = Iterator[tuple[ast.AST, str, ast.AST]]  # a place, a kind, what stands there instead

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq},
    **{ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn},
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
    **{ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
SIGNS = {ast.Not: "not dropped", ast.Invert: "not dropped", ast.USub: "sign dropped"}
PAIRS = ("min max", "minimum maximum", "argmin argmax", "any all", "zeros ones", "floor ceil")
OTHER = {a: b for pair in PAIRS for a, b in (pair.split(), reversed(pair.split()))}
DROPPED = ("sorted", "sort", "abs", "cumsum")
KEYWORDS = {("axis", "0"): "1", ("axis", "1"): "0", ("axis", "-1"): "0"}
KEYWORDS |= {("side", "'left'"): "'right'", ("side", "'right'"): "'left'"}
NOT_NUMBERS = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
LEFT_OUT = (ast.JoinedStr, ast.Raise, ast.Assert, ast.pattern, ast.ClassDef, Function)
NOT_WORKED_OUT = ("axis", "decimals", "strict", "timeout")
SAID = {"print", "tell", "say", "note", "warn", "progress", "advance", "show"}


@dataclass(frozen=True)
class Mistake:
    """What stands in a file from byte `start` to `end` is replaced; lines keep their numbers."""

    file: Path  # from the top of the checkout
    function: str
    compiled: bool
    kind: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        new = ast.unparse(ast.parse(self.new).body[0])
        return f"{self.file}:{self.line} {self.kind}: {self.old} → {new}"

    def applied(self, source: bytes) -> bytes:
        """The file with the mistake in it."""
        lines = b"\n" * source[self.start : self.end].count(b"\n")
        new, end = self.new.removesuffix(")"), ")" if self.new.endswith(")") else ""
        new_lines = new.encode() + lines + end.encode()
        return source[: self.start] + new_lines + source[self.end :]

    def compiles(self, source: str) -> bool:
        """Whether this is another program, that Python accepts."""
        try:
            made = ast.parse(self.applied(source.encode()))
            compile(made, str(self.file), "exec", dont_inherit=True)
        except SyntaxError:
            return False
        return ast.dump(made) != ast.dump(ast.parse(source))


def source_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def places(file: Path, source: str) -> Iterator[Mistake]:
    """All that can be planted in a file, from its top to its end."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for function in _functions(ast.parse(source)):
        compiled = any("jit" in ast.unparse(one) for one in function.decorator_list)
        for node, kind, new in _Finder(function).all():
            line, start = node.lineno, starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = f"({ast.unparse(new)})" if isinstance(new, ast.expr) else ast.unparse(new)
            place = (line, start, end, ast.unparse(node), text)
            yield Mistake(file, function.name, compiled, kind, *place)


def _functions(node: ast.AST) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function) and child.name not in ("__repr__", "__str__"):
            yield child
        if not isinstance(child, ast.If) or "TYPE_CHECKING" not in ast.unparse(child.test):
            yield from _functions(child)


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what is below it, without what is left out."""
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(node, LEFT_OUT) or _name(called) in SAID:
        return
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "decorator_list") and _worked_out(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _walked(child)


def _worked_out(node: ast.AST) -> bool:
    """Not an argument that has a kind of its own, or that changes no result of a right program."""
    return not isinstance(node, ast.keyword) or node.arg not in NOT_WORKED_OUT


def _name(node: ast.AST | None) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _text(node: ast.AST) -> bool:
    """Whether this is added, but never subtracted."""
    return isinstance(node, NOT_NUMBERS) or isinstance(getattr(node, "value", None), str)


class _Finder:
    """What can be done wrong in one function: a method per type of node."""

    def __init__(self, function: Function) -> None:
        self.nodes = [one for statement in function.body for one in _walked(statement)]
        self.arguments = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
        loops = (one for one in self.nodes if isinstance(one, ast.For | ast.comprehension))
        ranges = (one for one in loops if isinstance(one.iter, ast.Call))
        self.counters = {_name(one.target) for one in ranges if _name(one.iter.func) == "range"}
        returns = (one.value for one in self.nodes if isinstance(one, ast.Return))
        self.returned = {ast.unparse(value): value for value in returns if value}

    def all(self) -> Found:
        for node in self.nodes:
            yield from getattr(self, f"_{type(node).__name__.lower()}", lambda _: ())(node)

    def _compare(self, node: ast.Compare) -> Found:
        for k, op in enumerate(node.ops):
            ops = [*node.ops[:k], COMPARISONS[type(op)](), *node.ops[k + 1 :]]
            yield node, "comparison", ast.Compare(node.left, ops, node.comparators)

    def _binop(self, node: ast.BinOp) -> Found:
        if type(node.op) in ARITHMETIC and not (_text(node.left) or _text(node.right)):
            yield node, "arithmetic", ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)

    def _augassign(self, node: ast.AugAssign) -> Found:
        if type(node.op) in ARITHMETIC:
            other = ARITHMETIC[type(node.op)]()
            yield node, "arithmetic", ast.AugAssign(node.target, other, node.value)

    def _boolop(self, node: ast.BoolOp) -> Found:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, "and/or", ast.BoolOp(other, node.values)

    def _unaryop(self, node: ast.UnaryOp) -> Found:
        if type(node.op) in SIGNS:
            yield node, SIGNS[type(node.op)], node.operand

    def _constant(self, node: ast.Constant) -> Found:
        if isinstance(node.value, bool):
            yield node, "flag", ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield node, "constant", ast.Constant(node.value + 1)
            yield node, "constant", ast.parse(f"{node.value - 1}", mode="eval").body
        elif isinstance(node.value, float) and abs(node.value) >= 0.01:
            yield node, "constant", ast.Constant(node.value / 2.0)

    def _subscript(self, node: ast.Subscript) -> Found:
        if isinstance(node.ctx, ast.Load) and _name(node.slice) in self.counters:
            shifted = ast.BinOp(node.slice, ast.Sub(), ast.Constant(1))
            yield node, "index", ast.Subscript(node.value, shifted, node.ctx)

    def _if(self, node: ast.If | ast.IfExp) -> Found:
        for value in (True, False):
            yield node.test, "branch", ast.Constant(value)

    _ifexp = _if

    def _comprehension(self, node: ast.comprehension) -> Found:
        for test in node.ifs:
            yield test, "branch", ast.Constant(True)

    def _return(self, node: ast.Return) -> Found:
        value = node.value
        if isinstance(value, ast.Tuple) and len(value.elts) > 1:
            first, second, *others = value.elts
            yield value, "return", ast.Tuple([second, first, *others], value.ctx)
        known = self.arguments | (_names(value) if value else set())
        for text, other in self.returned.items():
            if value and text != ast.unparse(value) and _names(other) <= known:
                yield value, "return", other

    def _call(self, node: ast.Call) -> Found:
        name = _name(node.func)
        if name in OTHER:
            yield node, "min/max", ast.Call(_renamed(node.func), node.args, node.keywords)
        if name in DROPPED and len(node.args) == 1:
            dropped = node.args[0]
            if name == "sorted":
                dropped = ast.Call(ast.Name("list"), [dropped], [])
            yield node, "dropped", dropped
        own = isinstance(node.func, ast.Name) and not hasattr(builtins, name)
        if own and [type(one) for one in node.args[:2]] == [ast.Name, ast.Name]:
            first, second, *others = node.args
            yield node, "arguments", ast.Call(node.func, [second, first, *others], node.keywords)

    def _keyword(self, node: ast.keyword) -> Found:
        other = KEYWORDS.get((node.arg, ast.unparse(node.value)))
        if other:
            yield node.value, "axis", ast.parse(other, mode="eval").body

    def _continue(self, node: ast.Continue) -> Found:
        yield node, "branch", ast.Break()


def _renamed(called: ast.expr) -> ast.expr:
    """The sibling of a function: of np.minimum np.maximum."""
    other = OTHER[_name(called)]
    if isinstance(called, ast.Attribute):
        return ast.Attribute(called.value, other)
    return ast.Name(other)
