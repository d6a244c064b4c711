"""The memory of other processes, which root can read."""

import re


def memory_of(pid):
    """The writable memory of a process but for files and shared memory, in pieces."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            first, last, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if not rights.startswith("rw-p"):
                continue
            memory.seek(int(first, 16))
            at, end = int(first, 16), int(last, 16)
            try:
                yield memory.read(end - at)
            except OSError:
                continue  # a guard page


def found_in(pid, wanted):
    """The names of those `wanted` values that the memory of a process has."""
    pieces = list(memory_of(pid))
    return {name for name, value in wanted.items() if any(value in piece for piece in pieces)}
