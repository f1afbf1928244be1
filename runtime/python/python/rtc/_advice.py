"""Advice on kernels and the Python around them: what makes the host wait, what each trial of autotuning would add up, divisions
that do not round as Python's, products that are slow."""

import ast
import sys

#: Methods of tensors that wait for the device.
WAITING = ("item", "tolist")


def host_waits(path):
    """Lines of wrappers at which the host waits for the GPU: pairs of a line and what is called. Wrappers are the functions
    that launch a kernel, `kernel[grid](..)`."""
    found = set()
    for function in ast.walk(_tree(path)):
        if isinstance(function, ast.FunctionDef) and not _is_kernel(function):
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            if any(isinstance(call.func, ast.Subscript) for call in calls):
                found |= {(call.lineno, call.func.attr) for call in calls
                          if isinstance(call.func, ast.Attribute) and call.func.attr in WAITING and not call.args}
    return sorted(found)


def in_kernels(path):
    """Lines of kernels with what is worth a word: triples of a line, a code and a sentence."""
    found = set()
    for function in ast.walk(_tree(path)):
        if not isinstance(function, ast.FunctionDef) or not _is_kernel(function):
            continue
        constants = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg) and a.annotation is not None
                     and "constexpr" in ast.unparse(a.annotation)}
        values = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)} - constants
        values |= {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node in ast.walk(function):
            if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod)):
                negated = isinstance(node.left, ast.UnaryOp) and isinstance(node.left.op, ast.USub)
                if negated and values & {n.id for n in ast.walk(node.left) if isinstance(n, ast.Name)}:
                    found.add((node.lineno, "negative-division", f"`{ast.unparse(node)}` rounds towards zero in a kernel, as in C, and not "
                               "down, as in Python; for a quotient rounded up there is `tl.cdiv` (rtc explain division)"))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "dot":
                said = {k.arg: k.value.value for k in node.keywords if isinstance(k.value, ast.Constant)}
                if said.get("input_precision") == "ieee" or said.get("allow_tf32") is False:
                    found.add((node.lineno, "slow-product", "this product of fp32 keeps all bits of its operands, which is several times "
                               "slower than tf32, the default (rtc explain tf32)"))
    return sorted(found)


def _tree(path):
    """The syntax of a file; of none where it cannot be read."""
    try:
        with open(path) as file:
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])


def _is_kernel(function):
    names = [node.attr if isinstance(node, ast.Attribute) else node.id for decorator in function.decorator_list
             for node in ast.walk(decorator) if isinstance(node, (ast.Attribute, ast.Name))]
    return "jit" in names


def on_file(path):
    """Says what is to be said of a file."""
    for line, method in host_waits(path):
        print(f"warning[host-sync]: {path}:{line}: `.{method}()` in a wrapper makes the host wait for the GPU, at each call "
              "(rtc explain synchronization)", file=sys.stderr)
    for line, code, sentence in in_kernels(path):
        print(f"warning[{code}]: {path}:{line}: {sentence}", file=sys.stderr)


def on_tuning(compiled, restored):
    """Says which memory the trials of autotuning change again and again. `compiled`: a compiled kernel; `restored`: the
    parameters that are zeroed or restored between trials."""
    data = getattr(compiled, "rtc_metadata", None) or {"params": []}
    names = [p["name"].split(".")[0] for p in data["params"] if p.get("access") == "read_write"]
    names = [name for name in dict.fromkeys(names) if name not in restored]
    if names:
        shown = ", ".join(f"`{name}`" for name in names)
        print(f"warning[reset-to-zero]: kernel `{compiled.fn.__name__}` reads and writes {shown}, and each trial of autotuning runs it: "
              f"name what adds up in `reset_to_zero`, or in `restore_value` (rtc explain autotuning-order)", file=sys.stderr)
