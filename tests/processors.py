"""Run the tests as if on older processors: the same suite has to pass wherever it is run.

    uv run python tests/processors.py                          # everything, on every processor of PROCESSORS
    uv run python tests/processors.py tests/stack -x            # arguments of pytest
    uv run python tests/processors.py --only avx2 tests/stack   # one of them

The libraries choose their code when they are loaded, by what the processor offers; environment variables forbid them
the rest. What differs then is the order of sums and the last bits of exp and log, so no test may rest on these: it
compares two formulas within a tolerance, and bits only between two runs of the same code on the same shapes. A
processor without AVX2 has no faster code that could be forbidden, and passes for the older ones.
"""

import argparse
import os
import subprocess
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched
from numpy._core._multiarray_umath import __cpu_features__ as available


def without(*allowed: str) -> str:
    """NumPy's own lists of instructions that this processor offers and that are forbidden, but for ``allowed``."""
    return " ".join(name for name in dispatched if available.get(name) and name not in allowed)


#: What is set for each, for PyTorch, oneDNN and MKL, OpenBLAS and NumPy.
PROCESSORS = {
    "avx2": {  # most desktops: no AVX-512
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": without("X86_V3"),
    },
    "default": {  # the least that the libraries are built for
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": without(),
    },
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], add_help=False)
    parser.add_argument("--only", choices=PROCESSORS)
    options, arguments = parser.parse_known_args()
    failed = []
    for name in [options.only] if options.only else PROCESSORS:
        print(f"\n{name}: " + " ".join(f"{key}={value!r}" for key, value in PROCESSORS[name].items()), flush=True)
        command = [sys.executable, "-m", "pytest", *arguments]
        if subprocess.run(command, env={**os.environ, **PROCESSORS[name]}, check=False).returncode:
            failed.append(name)
    print(f"\nFailed on {', '.join(failed)}." if failed else "\nAll passed.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
