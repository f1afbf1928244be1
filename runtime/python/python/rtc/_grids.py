"""What functions that give grids do with the dictionary of arguments."""

import dis

# The instructions that put a local variable on the stack and do nothing else; names differ between versions of Python.
_LOADS = {"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"}
# Those that do something with another variable before.
_SECOND_LOADS = {"LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_LOAD_FAST"}
# By these a function sees its own variables.
_OWN_VARIABLES = {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"}
_VARARGS, _VARKEYWORDS = 4, 8


def names_asked(code):
    """The names in a function's `meta["NAME"]`, if it does nothing else with its only parameter; else None."""
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & (_VARARGS | _VARKEYWORDS):
        return None
    parameter = code.co_varnames[0]
    # A function within it would have the dictionary, too.
    if parameter in code.co_cellvars or _OWN_VARIABLES & set(code.co_names):
        return None
    steps = [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "EXTENDED_ARG")]
    names = []
    for step, key, subscript in zip(steps, steps[1:] + steps[:1], steps[2:] + steps[:2]):
        touched = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        # Constants and attributes may have the parameter's name.
        if "FAST" not in step.opname or parameter not in touched:
            continue
        is_subscript = subscript.opname == "BINARY_SUBSCR" or (subscript.opname, subscript.argrepr) == ("BINARY_OP", "[]")
        is_load = step.opname in _LOADS or step.opname in _SECOND_LOADS and touched.index(parameter) == 1
        if not is_load or key.opname != "LOAD_CONST" or type(key.argval) is not str or not is_subscript:
            return None
        if subscript.is_jump_target or key.is_jump_target:
            return None
        names.append(key.argval)
    return tuple(dict.fromkeys(names))
