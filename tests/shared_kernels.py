"""Generated kernels, which are the same in many tests."""

import os


def share_kernels(program, cache):
    """Makes the cache folder `cache` (as in XDG_CACHE_HOME) use the kernels shared by all tests of a build."""
    kernels = os.path.join(os.path.dirname(os.path.abspath(program)), "tests", "kernels")
    os.makedirs(kernels, mode=0o700, exist_ok=True)
    os.makedirs(os.path.join(cache, "gallop"))
    os.symlink(kernels, os.path.join(cache, "gallop", "kernels"))
