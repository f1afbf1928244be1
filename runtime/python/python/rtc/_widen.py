"""The second oracle: the same kernel in double precision, and which of its statements loses most bits.

The kernel's text is cut at a statement: what stands before runs in its own types, everything behind in fp64. A statement
costs what the error grows by when the cut moves behind it. Only the text is changed: values that statements behind the cut
assign or load become fp64, and dtypes that they name, `x.dtype.element_ty` among them. So that the last rounding does not
hide the others, memory that the kernel only writes is fp64, too.
"""

import ast
import textwrap
from typing import Any

from . import _arrays, _gather
from .runtime.jit import JITFunction

_FLOATS = {"float16", "bfloat16", "float32", "float8e4nv", "float8e5", "float8e4b15"}
_WIDEN = '''
@triton.jit
def __wide(x):
    if x.dtype.is_floating():
        return x.to(tl.float64)
    else:
        return x


@triton.constexpr_function
def __wide_type(dtype):
    return tl.float64 if dtype.is_floating() else dtype
'''


class Statement:
    """A statement of a kernel at the top of its body."""

    def __init__(self, node, line):
        self.node, self.line = node, line
        self.first, self.last = node.lineno, node.end_lineno


def statements(kernel):
    """The statements of a kernel and its text."""
    text, line, _ = _gather.source_of(kernel)
    tree = ast.parse(text)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
    body = [n for n in function.body if not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant))]
    return text, [Statement(n, line + n.lineno - 1) for n in body]


def cut(text, body, at):
    """The text with everything from statement `at` on in fp64."""
    edits = _Edits(text)
    for statement in body[at:]:
        kept = set()
        for node in ast.walk(statement.node):
            if _keeps_types(node):
                kept.update(ast.walk(node))
            if isinstance(node, ast.Call) and (_is_load(node) or _is_bitcast(node)):
                edits.wrap(node, "__wide")
            elif node in kept or not isinstance(node, ast.Attribute):
                continue
            elif node.attr == "element_ty":
                # Memory keeps its type, but accumulators of the type of its elements become fp64.
                edits.wrap(node, "__wide_type")
            elif node.attr in _FLOATS and isinstance(node.value, ast.Name):
                edits.replace_name(node, "float64")
    # Values from before the cut.
    # What only a loop or a branch assigns has no value behind it for sure.
    plain = [s.node for s in body[:at] if isinstance(s.node, (ast.Assign, ast.AugAssign, ast.AnnAssign))]
    names = sorted({n.id for s in plain for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})
    used = {n.id for s in body[at:] for n in ast.walk(s.node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    if at > 0 and at < len(body):
        words = "; ".join(f"{n} = __wide({n})" for n in names if n in used)
        if words:
            edits.insert_line(body[at].node, words)
    return edits.applied()


def _called(node):
    """The last part of the name of the function that a call names."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)


def _is_load(node):
    return _called(node) in ("load", "load_tensor_descriptor")


def _is_bitcast(node):
    """Whether a call reads bits as another type. `to` and `cast` do if they are told to."""
    told = any(word.arg == "bitcast" and not (isinstance(word.value, ast.Constant) and not word.value.value) for word in node.keywords)
    return told and _called(node) in ("to", "cast")


def _keeps_types(node):
    """Whether types in an expression stay as they are: those of memory and of bits, and those that are compared with the
    type of elements of memory, which decide what the kernel does."""
    if isinstance(node, ast.Call):
        return _called(node) == "pointer_type" or _is_bitcast(node)
    return isinstance(node, ast.Compare) and any(isinstance(n, ast.Attribute) and n.attr == "element_ty" for n in ast.walk(node))


class _Edits:
    """Changes of a text at nodes of its tree; one may contain others."""

    def __init__(self, text):
        self.data = text.encode()
        self.starts = [0]
        for line in self.data.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.edits: list[tuple[Any, ...]] = []

    def _span(self, node):
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def wrap(self, node, function):
        """Has the node be an argument of a function."""
        begin, end = self._span(node)
        # What ends at a place comes before what begins there; of nodes that share an end, the outer one is outside.
        self.edits.append((begin, 2, -end, begin, f"{function}("))
        self.edits.append((end, 0, -begin, end, ")"))

    def replace_name(self, node, name):
        """Replaces the name of an attribute."""
        _, end = self._span(node)
        self.edits.append((end - len(node.attr.encode()), 3, 0, end, name))

    def insert_line(self, node, line):
        """Inserts a line before a statement."""
        begin, _ = self._span(node)
        self.edits.append((begin, 1, 0, begin, f"{line}\n{' ' * node.col_offset}"))

    def applied(self):
        """The changed text."""
        parts, done = [], 0
        for begin, _, _, end, new in sorted(self.edits):
            parts += [self.data[done:begin], new.encode()]
            done = end
        return b"".join([*parts, self.data[done:]]).decode()


def widened(kernel, at):
    """The kernel, cut at a statement."""
    text, body = statements(kernel)
    made = JITFunction(kernel.fn, do_not_specialize=kernel.do_not_specialize, debug=kernel.debug,
                       do_not_specialize_on_alignment=kernel.do_not_specialize_on_alignment)
    made._own_source = (cut(text, body, at), _gather.source_of(kernel)[1], kernel.fn.__code__.co_filename)
    made._preamble = textwrap.dedent(_WIDEN)
    return made


def written(launch):
    """The names of the pointers that a launched kernel only writes."""
    return [p["name"] for p in launch.compiled.rtc_metadata["params"] if p.get("access") == "write"]


def run(launch, at, outputs):
    """Runs a noted launch cut at a statement; gives what it wrote, as arrays in double precision."""
    import numpy as np
    kernel = widened(launch.kernel, at)
    arguments, wide = dict(launch.arguments), {}
    for name, value in launch.arguments.items():
        if name in outputs:
            wide[name] = arguments[name] = np.zeros(launch.before[name][0], np.float64)
        elif _arrays.is_array(value):
            data = launch.before[name][-1]
            arguments[name] = _arrays.read(value, data)
    kernel._launch(launch.grid, False, tuple(arguments.values()), None, launch.options)
    return wide


class Loss:
    """What the second oracle says of a launch."""

    def __init__(self, total, lines, actual, exact):
        self.total, self.lines, self.actual, self.exact = total, lines, actual, exact

    def worst(self):
        """The line that loses most: (line, text, error that it adds); None if none loses anything."""
        found = max(self.lines, key=lambda line: line[2], default=None)
        return found if found is not None and found[2] > 0 else None


def _error(actual, expected, live):
    import numpy as np
    worst = 0.0
    for name in expected:
        a, e = actual[name][live[name]], expected[name][live[name]]
        nonzero = e != 0
        if nonzero.any():
            worst = max(worst, float(np.abs((a[nonzero] - e[nonzero]) / e[nonzero]).max()))
    return worst


def analyse(launch):
    """The largest relative error of a launch against the same kernel in fp64, and what each statement adds to it."""
    outputs = written(launch)
    if not outputs:
        return None
    text, body = statements(launch.kernel)
    exact = run(launch, 0, outputs)
    live = {name: value == value for name, value in exact.items()}
    lines, before, actual = [], 0.0, exact
    source = text.split("\n")
    for at in range(1, len(body) + 1):
        statement = body[at - 1]
        if isinstance(statement.node, ast.Expr) and at < len(body):
            continue
        actual = run(launch, at, outputs)
        error = _error(actual, exact, live)
        if error > before:
            lines.append((statement.line, source[statement.first - 1].strip(), error - before))
        before = max(before, error)
    chosen = lambda arrays: {name: array[live[name]] for name, array in arrays.items()}
    return Loss(before, lines, chosen(actual), chosen(exact))
