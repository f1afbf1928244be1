"""The kernel language as host code sees it."""

import ast
import inspect
import os
import pydoc
import unittest

import rtc
import rtc.language as tl


class Documentation(unittest.TestCase):

    def test_functions_carry_the_reference(self):
        self.assertIn("tl.load(pointer, mask=None", tl.load.__doc__)
        self.assertIn("the value where the mask is false", pydoc.render_doc(tl.load))
        signature = inspect.signature(tl.atomic_poll)
        self.assertEqual(list(signature.parameters), ["pointer", "expected_value", "sem", "scope", "timeout_ns"])
        self.assertIs(signature.parameters["timeout_ns"].default, None)
        self.assertEqual(signature.parameters["sem"].annotation, "tl.constexpr")
        self.assertEqual(inspect.signature(tl.reshape).parameters["shape"].kind, inspect.Parameter.VAR_POSITIONAL)
        for name in dir(tl):
            function = getattr(tl, name)
            if isinstance(function, tl.core.KernelFunction):
                self.assertTrue(function.__doc__, name)
                inspect.signature(function)

    def test_the_stub_names_what_the_module_has(self):
        path = os.path.join(os.path.dirname(tl.__file__), "__init__.pyi")
        with open(path) as file:
            stub = ast.parse(file.read())
        functions = {node.name for node in stub.body if isinstance(node, ast.FunctionDef)}
        self.assertTrue(functions)
        self.assertEqual({name for name in functions if not hasattr(tl, name)}, set())


class Dtypes(unittest.TestCase):

    def test_names_and_sizes(self):
        self.assertEqual([str(t) for t in (tl.float16, tl.bfloat16, tl.int1, tl.uint64)], ["fp16", "bf16", "int1", "uint64"])
        self.assertEqual([t.primitive_bitwidth for t in (tl.float8e5, tl.int1, tl.float64)], [8, 1, 64])
        self.assertTrue(tl.int32.is_int_signed() and tl.uint8.is_int_unsigned() and tl.float8e4nv.is_fp8())
        self.assertEqual(tl.int8.get_int_max_value(), 127)
        self.assertEqual(tl.uint8.get_int_min_value(), 0)
        self.assertEqual(tl.pointer_type(tl.float32).element_ty, tl.float32)
        self.assertEqual(repr(tl.float32), "triton.language.float32")
        self.assertEqual(tl.dtype("fp16"), tl.float16)
        with self.assertRaisesRegex(ValueError, "no dtype 'fp17'"):
            tl.dtype("fp17")

    def test_str_to_ty(self):
        self.assertEqual(tl.str_to_ty("*fp16"), tl.pointer_type(tl.float16))
        names = ["i64", "int64", "fp32", "float32", "bfloat16", "float8_e5m2", "i1", "u1", "bool", "uint8", "fp8e4nv"]
        self.assertEqual([str(tl.str_to_ty(name)) for name in names],
                         ["int64", "int64", "fp32", "fp32", "bf16", "fp8e5", "int1", "int1", "int1", "uint8", "fp8e4nv"])
        with self.assertRaisesRegex(ValueError, "no type 'float31'"):
            tl.str_to_ty("float31")


class Constexprs(unittest.TestCase):

    def test_operators_give_constexprs(self):
        four = tl.constexpr(3) + 1
        self.assertIsInstance(four, tl.constexpr)
        self.assertEqual([four.value, (2 ** four).value, (7 // four).value, (-four).value], [4, 16, 1, -4])
        self.assertTrue((four > 3).value and bool(four == 4) and list(range(four)) == [0, 1, 2, 3])
        self.assertEqual(tl.constexpr(four).value, 4)


class Functions(unittest.TestCase):

    def test_host_functions(self):
        self.assertEqual([rtc.cdiv(10, 4), rtc.cdiv(8, 4)], [3, 2])
        self.assertEqual([rtc.next_power_of_2(n) for n in (0, 1, 5, 8, 1000)], [0, 1, 8, 8, 1024])

    def test_functions_of_kernels_say_so(self):
        with self.assertRaisesRegex(ValueError, "tl.load"):
            tl.load(3)
        with self.assertRaisesRegex(ValueError, "libdevice.tanh"):
            tl.extra.libdevice.tanh(1.0)

    def test_what_is_missing_is_named(self):
        with self.assertRaisesRegex(AttributeError, r"rtc has no `triton.language.loda`"):
            tl.loda
        with self.assertRaisesRegex(AttributeError, "rtc has no `rtc.jitt`"):
            rtc.jitt

    def test_all_public_names_are_there(self):
        for name in tl.__all__:
            self.assertTrue(hasattr(tl, name), name)
        for name in rtc.__all__:
            self.assertTrue(hasattr(rtc, name), name)
