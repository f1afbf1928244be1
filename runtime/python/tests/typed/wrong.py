"""Mistakes that types find: each line with `# error: CODE` is one, and no other."""

import rtc
import rtc.testing

rtc.Config([("BLOCK", 128)])  # error: arg-type
rtc.Config({"BLOCK": 128}, num_warp=4)  # error: call-arg
text: str = rtc.cdiv(10, 3)  # error: assignment
rtc.autotune(configs=[{"BLOCK": 128}], key=["n"])  # error: list-item
rtc.set_device(0)  # error: arg-type
rtc.testing.do_bench("fn")  # error: call-overload
print(rtc.launch)  # error: attr-defined
