#!/usr/bin/env python3
"""Prints a port of this machine that is free, for programs that cannot choose one by themselves."""

import random
import socket

FIRST = 10_000


def free_port():
    """One below those that the kernel gives out by itself, as others beside this test would get such a one meanwhile."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        end = int(file.read().split()[0])
    for _ in range(1000):
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", random.SystemRandom().randrange(FIRST, max(end, FIRST + 1000))))
                return trial.getsockname()[1]
            except OSError:
                pass
    raise RuntimeError(f"no port from {FIRST} on is free")


if __name__ == "__main__":
    print(free_port())
