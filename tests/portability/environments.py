"""Processors that this one can pretend to be."""

from collections.abc import Mapping

from sfumato.core.carried_loops import BASELINES

# Without these numpy takes its plainest loops, and the system's library those without fused steps.
_NUMPY = "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_CNL"
_SYSTEM = "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL"

OTHERWISE: Mapping[str, str] = {
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": _NUMPY,
    "GLIBC_TUNABLES": _SYSTEM,
}
"""All at once."""

ENVIRONMENTS: Mapping[str, Mapping[str, str]] = {
    **{core: {"OPENBLAS_CORETYPE": core} for core in ("Prescott", "Nehalem", "Haswell", "Zen")},
    "numpy": {"NPY_DISABLE_CPU_FEATURES": _NUMPY},
    "system": {"GLIBC_TUNABLES": _SYSTEM},
    "numba": {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
    # Those that a wheel brings its loops along for.
    **{machine: baseline.settings for machine, baseline in BASELINES.items()},
}
"""One at a time; numba's needs a cache of its own."""
