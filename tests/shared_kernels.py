"""The kernels that tests compile, which are the same in many of them."""

import os


def share_kernels(program, cache):
    """Lets the cache folder `cache` (as in XDG_CACHE_HOME) hold its kernels where those of all tests of a build are."""
    kernels = os.path.join(os.path.dirname(os.path.abspath(program)), "tests", "kernels")
    os.makedirs(kernels, mode=0o700, exist_ok=True)
    os.makedirs(os.path.join(cache, "gallop"))
    os.symlink(kernels, os.path.join(cache, "gallop", "kernels"))
