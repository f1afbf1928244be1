"""Gathers what the compiler is given for a kernel: its source, where it stands in its file, and the values of the globals
and closure cells that it uses.

Each function becomes a module of its own, whose text has the function on the lines that it has in its file (so that
messages name the right place) and, behind it, one statement for each name that it uses:

    from rtc_m1 import scale as scale         # another jit function
    BLOCK = 128                               # a number, a text, a dtype, a tuple of such
    import triton.language as tl              # a module that the compiler knows
    import rtc_m2 as helpers                  # any other: a module of the attributes that are used
"""

import ast
import builtins
import inspect
import linecache
import math
import re
import sys
import textwrap
import types

from . import _rtc
from .language import core as tl_core


class Gathered:
    """The modules of a program: the first holds the kernel."""

    def __init__(self):
        self.modules = []       # [name, file, text]
        self.watched = []       # (dictionary, name, value): a copy where the value can change in place
        self._by_id = {}
        self._kept = []

    # ---- functions, classes, modules

    def function(self, obj, kind, decorator, extra=()):
        """Adds a function; gives its module and the name that it has there. `extra`: further names and values."""
        if id(obj) in self._by_id:
            return self._by_id[id(obj)]
        fn = _python_function(obj)
        text, line, file = source_of(obj)
        tree = ast.parse(text)
        node = next(n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)))
        name = f"rtc_m{len(self.modules)}"
        self._by_id[id(obj)] = name, node.name
        self._kept.append(obj)
        entry = [name, file, ""]
        self.modules.append(entry)
        scope = Scope(fn)
        statements = ["import triton.language as __tl"]
        statements += self._names(tree, node, scope, fn)
        statements += [s for n, v in extra if (s := self.declare(n, v)) is not None]
        further = getattr(obj, "_preamble", "")
        entry[2] = _placed(text, node, line, decorator) + "\n".join(statements) + "\n" + further
        return name, node.name

    def _class(self, cls):
        if id(cls) in self._by_id:
            return self._by_id[id(cls)]
        name = f"rtc_m{len(self.modules)}"
        self._by_id[id(cls)] = name, cls.__name__
        self._kept.append(cls)
        entry = [name, "<class>", ""]
        self.modules.append(entry)
        try:
            lines, line = inspect.getsourcelines(cls)
            text = textwrap.dedent("".join(lines))
            tree = ast.parse(text)
            node = next(n for n in tree.body if isinstance(n, ast.ClassDef))
            scope = Scope.of_module(sys.modules.get(cls.__module__), cls)
            statements = ["import triton.language as __tl"] + self._names(tree, node, scope, None)
            # Methods may name their own class.
            statements = [s for s in statements if s != f"from {name} import {cls.__name__} as {cls.__name__}"]
            entry[1] = inspect.getsourcefile(cls) or "<class>"
            decorator = "@aggregate" if "__triton_aggregate__" in vars(cls) else ""
            entry[2] = _placed(text, node, line, decorator) + "\n".join(statements) + "\n"
        except (OSError, TypeError, SyntaxError, StopIteration):
            if not (issubclass(cls, tuple) and hasattr(cls, "_fields")):
                return None
            entry[2] = f"from collections import namedtuple\n{cls.__name__} = namedtuple({cls.__name__!r}, {list(cls._fields)!r})\n"
        return name, cls.__name__

    def _module(self, module, used):
        """A module of the attributes that are used of a module of the user."""
        key = ("module", id(module))
        if key not in self._by_id:
            self._by_id[key] = f"rtc_m{len(self.modules)}", {}
            self.modules.append([self._by_id[key][0], getattr(module, "__file__", None) or "<module>", ""])
            self._kept.append(module)
        name, known = self._by_id[key]
        entry = next(m for m in self.modules if m[0] == name)
        for attribute, below in sorted(used.items()):
            if attribute in known and not below:
                continue
            if not hasattr(module, attribute):
                continue
            known[attribute] = True
            value = getattr(module, attribute)
            statement = self.declare(attribute, value, below)
            if statement is not None and statement not in entry[2].split("\n"):
                entry[2] += statement + "\n"
                self._watch(vars(module), attribute, value)
        return name

    # ---- names

    def _names(self, tree, node, scope, fn):
        # Decorators are Python's: what they use is no part of the kernel.
        node.decorator_list = []
        params = {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
        outside = _outside(node)
        used = {}
        chains(tree, used)
        hidden = _hidden(node)
        statements = []
        for name, attributes in sorted(used.items()):
            if name in params and name not in outside:
                continue
            found, value, dictionary = scope.find(name)
            if not found:
                continue
            if getattr(builtins, name, None) is value and value is not None:
                continue
            statement = self.declare(name, value, attributes)
            if statement is None:
                continue
            statements.append(statement)
            if name not in hidden:
                # A variable of an enclosing function is in no dictionary; its list can change nevertheless.
                self._watch({name: value} if dictionary is None else dictionary, name, value)
        if fn is not None and isinstance(node, ast.FunctionDef):
            statements += self._defaults(node, fn, scope)
        return statements

    def _watch(self, dictionary, name, value):
        """Has launches check that a constant stays what it is. A list is compared with a copy, as it can change in place."""
        if not isinstance(value, types.ModuleType) and literal(value) is not None:
            self.watched.append((dictionary, name, _copied(value)))

    def _defaults(self, node, fn, scope):
        """Names in defaults that only the enclosing function knew."""
        args, values = node.args, getattr(fn, "__defaults__", None) or ()
        statements = []
        for default, value in zip(args.defaults[len(args.defaults) - len(values):], values):
            if isinstance(default, ast.Name) and not scope.find(default.id)[0]:
                statement = self.declare(default.id, value)
                if statement is not None:
                    statements.append(statement)
        return statements

    def declare(self, name, value, attributes=None):
        """The statement by which a name has a value; None if the compiler cannot be told of it."""
        from .runtime import jit
        if isinstance(value, types.ModuleType):
            path = known_module(value, attributes or {})
            if path is not None:
                return f"import {path} as {name}"
            return f"import {self._module(value, attributes or {})} as {name}"
        if isinstance(value, tl_core.KernelFunction):
            return f"from {value.__module__} import {value.__name__} as {name}"
        if value is tl_core.range or value is tl_core.static_range or value is tl_core.constexpr:
            return f"from triton.language import {value.__name__} as {name}"
        if value is tl_core.PropagateNan or value is tl_core.dtype or value is tl_core.tensor or value is tl_core.const:
            return f"from triton.language import {value.__name__} as {name}"
        if isinstance(value, jit.JITFunction):
            helper = _helper(value)
            if helper is not None:
                return f"from torch._inductor.runtime.triton_helpers import {helper} as {name}"
            module, own = self.function(value, "jit", value._decorator_text())
            return f"from {module} import {own} as {name}"
        if isinstance(value, jit.ConstexprFunction):
            module, own = self.function(value, "constexpr", "@triton.constexpr_function")
            return f"from {module} import {own} as {name}"
        text = literal(value)
        if text is not None:
            return f"{name} = {text}"
        if isinstance(value, type):
            if value.__module__ == "builtins":
                return None
            found = self._class(value)
            return None if found is None else f"from {found[0]} import {found[1]} as {name}"
        if isinstance(value, tl_core.constexpr) and inspect.isfunction(value.value):
            module, own = self.function(value.value, "constexpr", "@triton.constexpr_function")
            return f"from {module} import {own} as {name}"
        if value is _rtc.cdiv:
            return f"from triton import cdiv as {name}"
        if inspect.isfunction(value):
            if (value.__module__ or "").split(".")[0] in (__package__, "triton"):
                return f"from triton import {value.__name__} as {name}"
            try:
                module, own = self.function(value, "host", "")
            except (NoSource, TypeError, SyntaxError, StopIteration):
                return None
            return f"from {module} import {own} as {name}"
        return None


class Scope:
    """Where a function's names are looked up."""

    def __init__(self, fn):
        self.cells = {}
        code, closure = getattr(fn, "__code__", None), getattr(fn, "__closure__", None)
        if code is not None and closure:
            for name, cell in zip(code.co_freevars, closure):
                try:
                    self.cells[name] = cell.cell_contents
                except ValueError:
                    pass
        self.globals = getattr(fn, "__globals__", {})

    @classmethod
    def of_module(cls, module, of_class):
        scope = cls(None)
        scope.globals = dict(vars(module)) if module is not None else {}
        for member in vars(of_class).values():
            if inspect.isfunction(member):
                scope.cells.update(Scope(member).cells)
        return scope

    def find(self, name):
        """Whether it is known, its value, and the dictionary of globals that holds it."""
        if name in self.cells:
            return True, self.cells[name], None
        if name in self.globals:
            return True, self.globals[name], self.globals
        return False, None, None


def _copied(value):
    """A copy of the lists in a value; the value itself where there are none."""
    if type(value) is list:
        return [_copied(item) for item in value]
    if type(value) is tuple:
        items = tuple(_copied(item) for item in value)
        return value if all(a is b for a, b in zip(items, value)) else items
    return value


def chains(tree, used):
    """Names that are read, each with the attributes that are read of it, as nested dictionaries."""
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            path: list[str] = []
            base: ast.expr = node
            while isinstance(base, ast.Attribute):
                path.append(base.attr)
                base = base.value
            if isinstance(base, ast.Name) and isinstance(base.ctx, ast.Load):
                inner.add(id(base))
                at = used.setdefault(base.id, {})
                for attribute in reversed(path):
                    at = at.setdefault(attribute, {})
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.setdefault(node.id, {})


def _outside(node):
    """Names that are evaluated where the function stands: of defaults and annotations."""
    if not isinstance(node, ast.FunctionDef):
        return set()
    args = node.args
    parts = [d for d in args.defaults + args.kw_defaults if d is not None]
    parts += [a.annotation for a in args.posonlyargs + args.args + args.kwonlyargs if a.annotation is not None]
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}


def _hidden(node):
    """Names that the function gives a value before it reads them: those of globals are hidden from it."""
    first = {}
    for found in ast.walk(node):
        if isinstance(found, ast.Name):
            # Targets stand before values, as in `x = x + 1`.
            place = found.lineno, found.col_offset, isinstance(found.ctx, ast.Load)
            first[found.id] = min(first.get(found.id, place), place)
    return {name for name, (_, _, is_load) in first.items() if not is_load}


def _placed(text, node, line, decorator):
    """The function's text on its own lines, with another decorator and without indentation."""
    lines = text.split("\n")[node.lineno - 1:node.end_lineno]
    first = line + node.lineno - 1
    head = "\n" * max(first - 2, 0) + (decorator + "\n" if decorator or first > 1 else "")
    return head + "\n".join(lines) + "\n"


def _python_function(obj):
    while not inspect.isfunction(obj) and hasattr(obj, "fn"):
        obj = obj.fn
    return obj


class NoSource(ValueError):
    """The text of a function cannot be read."""

    def __init__(self, fn):
        file = fn.__code__.co_filename
        places = {"<string>": "by `python -c` or `exec`", "<stdin>": "at the prompt or from standard input"}
        super().__init__(
            f"@jit functions should be defined in a Python file: `{fn.__name__}` was defined {places.get(file, f'in {file}')}, "
            "where the compiler cannot read its text; write it to a file and run or import that. A program that makes kernels "
            "can keep their text: `linecache.cache[name] = (len(text), None, text.splitlines(True), name)` before "
            "`exec(compile(text, name, \"exec\"), ..)`")


def source_of(obj):
    """A function's text without indentation, the line that it begins on, and its file."""
    own = getattr(obj, "_own_source", None)
    fn = _python_function(obj)
    if own is not None:
        return own
    try:
        lines, line = inspect.getsourcelines(fn)
    except OSError as error:
        raise NoSource(fn) from error
    return textwrap.dedent("".join(lines)), line, fn.__code__.co_filename


def has_source(fn):
    """Whether the file of a function can be read, or is known to Python as text."""
    return bool(linecache.getlines(fn.__code__.co_filename, fn.__globals__))



_MODULES = {"triton": "triton", "rtc": "triton", "math": "math", "numpy.math": "math"}
_HELPERS = "torch._inductor.runtime.triton_helpers"


def known_module(module, attributes):
    """The path under which the compiler knows a module."""
    name = module.__name__
    if name in _MODULES:
        return _MODULES[name]
    for root in ("rtc.language", "triton.language"):
        if name == root or name.startswith(root + "."):
            return "triton.language" + name[len(root):]
    if name == _HELPERS and attributes:
        known = set(tl_core.FUNCTIONS.get("triton_helpers", {})) | {"libdevice", "math"}
        return name if set(attributes) <= known else None
    return None


def _helper(function):
    """The name of one of TorchInductor's functions that the compiler has itself."""
    name = function.fn.__name__
    known = tl_core.FUNCTIONS.get("triton_helpers", {})
    return name if function.fn.__module__ == _HELPERS and name in known else None


def literal(value):
    """An expression of the kernel language for a value; None if there is none."""
    if isinstance(value, tl_core.constexpr):
        inner = literal(value.value)
        return None if inner is None else f"__tl.constexpr({inner})"
    if isinstance(value, tl_core.pointer_type):
        inner = literal(value.element_ty)
        return f"__tl.pointer_type({inner}{', const=True' if value.const else ''})"
    if isinstance(value, tl_core.block_type):
        return None
    if isinstance(value, tl_core.dtype):
        return "__tl." + repr(value).rsplit(".", 1)[1]
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str):
        return repr(str(value))
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else f'float("{float(value)}")'
    if type(value) in (tuple, list):
        items = [literal(item) for item in value]
        if None in items:
            return None
        inner = ", ".join(items)
        return f"({inner}{',' if len(items) == 1 else ''})" if type(value) is tuple else f"[{inner}]"
    if type(value).__name__ == "dtype" and type(value).__module__ == "torch":
        short = re.sub(r"^torch\.", "", str(value))
        named = {"half": "float16", "float": "float32", "double": "float64", "bool": "int1", "float8_e4m3fn": "float8e4nv",
                 "float8_e5m2": "float8e5"}
        short = named.get(short, short)
        return f"__tl.{short}" if short in {repr(t).rsplit('.', 1)[1] for t in tl_core._BY_NAME.values()} else None
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return literal(value.item())
    return None
