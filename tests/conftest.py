"""Settings that must hold before any test module is imported."""

import os

# Two test workers share a machine with whatever else runs there, and sums must come out the same
# everywhere: one thread each, decided before NumPy loads its BLAS.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

from hypothesis import settings  # noqa: E402

settings.register_profile("abele", deadline=None, print_blob=True)
settings.load_profile("abele")
