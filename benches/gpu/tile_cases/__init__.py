"""The kernels and cases of `tiles.py`, a module for each family."""

from tile_cases import atomics, dots, elements, gathers, loops, moves, packed, recurrences, reductions, scans, stencils

FAMILIES = [moves.cases, reductions.cases, scans.cases, gathers.cases, atomics.cases, stencils.cases,
            elements.cases, packed.cases, loops.cases, recurrences.cases, dots.cases]
