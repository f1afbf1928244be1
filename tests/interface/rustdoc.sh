#!/bin/sh
# rustdoc as cargo calls it, with its JSON output switched on. The variable is set for rustdoc alone: build scripts that look
# at it would otherwise run again, and what depends on them would be built again.
RUSTC_BOOTSTRAP=1 exec rustdoc "$@"
