#!/usr/bin/env python3
"""Prints a free port of this machine, for programs that cannot choose one themselves."""

import random
import socket

FIRST = 10_000


def free_port():
    """A port below the ephemeral range, from which the kernel could assign it to another process in the meantime."""
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
