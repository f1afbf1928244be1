#!/bin/sh
# Stands in for NVIDIA's assembler of one version: answers --version, and "assembles" to the text of that version.
if [ "$1" = --version ]; then echo 'Cuda compilation tools, release VERSION, VVERSION.1'; exit; fi
while [ "$1" != -o ]; do shift; done
echo VERSION >"$2"
