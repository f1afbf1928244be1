"""Advice on the Python around kernels: what makes the host wait, what each trial of autotuning would add up."""

import ast
import sys

#: Methods of tensors that wait for the device.
WAITING = ("item", "tolist")


def host_waits(path):
    """Lines of wrappers at which the host waits for the GPU: pairs of a line and what is called. Wrappers are the functions
    that launch a kernel, `kernel[grid](..)`."""
    try:
        with open(path) as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return []
    found = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and not _is_kernel(function):
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            if any(isinstance(call.func, ast.Subscript) for call in calls):
                found |= {(call.lineno, call.func.attr) for call in calls
                          if isinstance(call.func, ast.Attribute) and call.func.attr in WAITING and not call.args}
    return sorted(found)


def _is_kernel(function):
    names = [node.attr if isinstance(node, ast.Attribute) else node.id for decorator in function.decorator_list
             for node in ast.walk(decorator) if isinstance(node, (ast.Attribute, ast.Name))]
    return "jit" in names


def on_file(path):
    """Says what is to be said of a file."""
    for line, method in host_waits(path):
        print(f"warning[host-sync]: {path}:{line}: `.{method}()` in a wrapper makes the host wait for the GPU, at each call "
              "(rtc explain synchronization)", file=sys.stderr)


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
