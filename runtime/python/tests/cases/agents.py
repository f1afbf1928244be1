"""`rtc mcp`, by the protocol's own client where it is installed, and by lines of JSON."""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = ["-m", "rtc", "mcp", "--python", sys.executable]


def file(*parts):
    with open(os.path.join(HERE, *parts)) as opened:
        return opened.read()


class Client:
    """A client that speaks the protocol line by line."""

    def __init__(self, *words):
        self.process = subprocess.Popen([sys.executable, *SERVER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.number = 0
        self.request("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "0"})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method, **params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == self.number:
                return answer

    def call(self, tool, **arguments):
        """The structured answer of a tool."""
        found = self.request("tools/call", name=tool, arguments=arguments)["result"]
        assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
        assert found["isError"] == (found["structuredContent"]["error"] is not None), found
        return found["structuredContent"]


GELU = file("contracts", "gelu.py")
#: The mask leaves out the last five elements.
WRONG = GELU.replace("element_ty), mask=i < n)", "element_ty), mask=i < n - 5)")


class Agents(unittest.TestCase):

    def test_a_kernel_is_mended_by_the_answers(self):
        with Client() as client:
            found = client.call("check", source=GELU.replace("tl.erf(", "tl.errf("), signature="*fp32, *fp32, i32, 256")
            (error,) = [one for one in found["diagnostics"] if one["severity"] == "error"]
            self.assertEqual((found["ok"], found["error"]["code"]), (False, error["code"]))
            self.assertEqual(error["labels"][0]["line"], 12)
            self.assertTrue(client.call("explain", name=error["code"])["ok"])
            found = client.call("check", source=GELU, signature="*fp32, *fp32, i32, 256")
            self.assertEqual((found["ok"], found["error"]), (True, None))

            found = client.call("verify", source=WRONG, seed=1)
            self.assertEqual((found["ok"], found["error"], found["result"]["correct"]), (False, None, False))
            result = found["result"]["cases"][0]["results"][0]
            self.assertEqual((result["wrong"], result["worst"]["index"]), (5, [995]))
            # Neither timed nor measured before it is right.
            for tool in ("bench", "counters", "tune", "explain_speed", "run"):
                self.assertEqual(client.call(tool, source=WRONG)["error"]["code"], "no-verdict")

            found = client.call("verify", source=GELU, seed=1)
            self.assertTrue(found["ok"], found)
            self.assertEqual(found["result"]["launches"][0]["outputs"], ["o"])
            found = client.call("counters", source=GELU)
            counters = found["result"]["counters"]
            self.assertEqual(counters["stores"]["bytes"], 4000)
            self.assertTrue(0.9 < counters["stores"]["efficiency"] <= 1, counters["stores"])
            stored = [line["line"] for line in counters["by_line"] if line["global"]["bytes"] >= 4000]
            self.assertTrue(all("tl." in GELU.splitlines()[line - 1] for line in stored) and stored, stored)
            found = client.call("run", source=GELU, sanitize="all")
            self.assertTrue(found["ok"], found)
            self.assertEqual(client.call("run", source=GELU, launch=7)["error"]["code"], "usage")
            found = client.call("tune", source=GELU)
            self.assertTrue(found["ok"], found)
            tuned = found["result"]
            self.assertEqual(tuned["decided_by"], "model")
            self.assertEqual(tuned["candidates"][0]["config"], tuned["winner"])
            for name in ("model_ms", "registers", "spill_bytes", "shared_bytes", "waves", "timed"):
                self.assertIn(name, tuned["candidates"][0])
            self.assertIn("is_clear", tuned["uncertainty"])
            explained = client.call("explain_speed", source=GELU)["result"]
            self.assertEqual((explained["bound"], explained["counted"]), ("launch", True), explained)
            found = client.call("bench", source=GELU)
            self.assertGreater(found["result"]["kernel_time_ms"], 0)
            # Of another text, nothing is known.
            self.assertEqual(client.call("bench", source=GELU + "\n")["error"]["code"], "no-verdict")
            found = client.call("precision", source=GELU)
            self.assertEqual(found["error"], None)

    def test_kernels_are_compiled(self):
        with Client() as client:
            given = {"source": GELU, "signature": "*fp32:16, *fp32:16, i32:16, 256", "arch": "sm_90a", "options": {"num_warps": 8}}
            found = client.call("compile", **given, ptx=True)
            (kernel,) = found["result"]["kernels"]
            self.assertEqual((kernel["kernel"], kernel["num_warps"]), ("gelu", 8))
            self.assertIn(".visible .entry gelu", kernel["ptx"])
            self.assertIn("registers", json.dumps([one["message"] for one in found["diagnostics"]]))
            self.assertIn("linear(shape [256]", client.call("layouts", **given)["result"]["text"])

    def test_what_a_call_must_have(self):
        with Client() as client:
            for tool, given in [("verify", {}), ("verify", {"source": 3}), ("verify", {"source": GELU, "rtol": 1.0}),
                                ("verify", {"source": GELU, "fixed": ["--no-sanitize"]}), ("compile", {"source": GELU})]:
                self.assertEqual(client.call(tool, **given)["error"]["code"], "usage", (tool, given))
            self.assertIn("error", client.request("tools/call", name="remove", arguments={}))

    def test_cheats_are_found(self):
        with Client() as client:
            for name in sorted(os.listdir(os.path.join(HERE, "cheats"))):
                if name.endswith(".py"):
                    found = client.call("verify", source=file("cheats", name))
                    self.assertFalse(found["ok"], name)
                    self.assertIsNot((found["result"] or {}).get("correct"), True, name)

    def test_a_reference_of_the_server(self):
        reference = os.path.join(HERE, "contracts", "gelu.py")
        with Client("--reference", reference) as client:
            self.assertTrue(client.call("verify", source=GELU)["ok"])
            wrong = GELU.replace("0.5 * v", "0.6 * v").replace("(0.5 * x", "(0.6 * x")
            self.assertFalse(client.call("verify", source=wrong)["ok"])
            for more in ({"reference": wrong}, {"fixed": [1000]}):
                self.assertEqual(client.call("verify", source=GELU, **more)["error"]["code"], "usage")
        with Client() as client:
            self.assertTrue(client.call("verify", source=wrong)["ok"])
            self.assertFalse(client.call("verify", source=wrong, reference=GELU)["ok"])

    def test_limits(self):
        endless = GELU.replace("    o = np", "    while True:\n        pass\n    o = np")
        greedy = GELU.replace("    o = np", "    held = np.ones(3 << 28)\n    o = np")
        with Client("--time-limit", "12", "--memory-limit", "2") as client:
            found = client.call("verify", source=endless)
            self.assertEqual(found["error"]["code"], "time-limit")
            self.assertLess(found["seconds"], 13)
            self.assertFalse(client.call("verify", source=greedy)["ok"])
            self.assertTrue(client.call("verify", source=GELU)["ok"])

    def test_resources(self):
        with Client() as client:
            tools = client.request("tools/list")["result"]["tools"]
            self.assertTrue(all(tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object" for tool in tools))
            pages = client.request("resources/list")["result"]["resources"]
            self.assertIn("rtc://language/language.md", [page["uri"] for page in pages])
            for page in pages:
                (content,) = client.request("resources/read", uri=page["uri"])["result"]["contents"]
                self.assertEqual(len(content["text"].encode()), page["size"])
            self.assertIn("error", client.request("resources/read", uri="rtc://language/../../etc/passwd"))

    @unittest.skipUnless(importlib.util.find_spec("mcp"), "the protocol's client in Python is not installed")
    def test_with_the_official_client(self):
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        async def talk():
            # The client passes on few variables by itself.
            started = StdioServerParameters(command=sys.executable, args=SERVER, env=dict(os.environ))
            async with stdio_client(started) as (given, told), ClientSession(given, told) as session:
                await session.initialize()
                names = [tool.name for tool in (await session.list_tools()).tools]
                wrong = await session.call_tool("verify", {"source": WRONG})
                right = await session.call_tool("verify", {"source": GELU})
                pages = (await session.list_resources()).resources
                text = (await session.read_resource(pages[0].uri)).contents[0].text
                return names, wrong, right, text

        names, wrong, right, text = asyncio.run(asyncio.wait_for(talk(), 100))
        self.assertEqual(names, ["check", "compile", "layouts", "verify", "run", "counters", "tune", "explain_speed", "precision", "bench",
                                 "explain"])
        content = [getattr(found, "structuredContent", None) or found.structured_content for found in (wrong, right)]
        self.assertEqual([found["ok"] for found in content], [False, True])
        self.assertIn("# ", text)


if __name__ == "__main__":
    unittest.main()
