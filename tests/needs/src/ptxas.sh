#!/bin/sh
# Stands in for NVIDIA's assembler of one version: answers --version, and "assembles" to the text of that version and the line of
# the source that limits registers. A thread takes 146 of these, or as many as are allowed.
if [ "$1" = --version ]; then echo 'Cuda compilation tools, release VERSION, VVERSION.1'; exit; fi
while [ "$1" != -o ]; do source=$1; shift; done
most=$(grep '^.maxnreg' "$source" 2>/dev/null | tr -dc 0-9)
echo "ptxas info    : Used ${most:-146} registers"
{ echo VERSION; if [ "$most" ]; then echo ".maxnreg $most"; fi; } >"$2"
