"""System calls that run inside another process, as code that took the process over would make them: under the
process's own filter, user and limits. For x86-64, by ptrace, as root."""

import contextlib
import ctypes
import os
import pathlib
import platform
import signal
import struct

import pytest

import servers

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
ATTACH, DETACH, GETREGS, SETREGS, STEP, CONTINUE = 16, 17, 12, 13, 9, 7
SYSCALL = b"\x0f\x05"

needed = pytest.mark.skipif(os.getuid() != 0 or platform.machine() != "x86_64",
                            reason="needs root and x86-64, to inject system calls")

needs_filter = pytest.mark.skipif(servers.is_sanitized(), reason="workers with AddressSanitizer have no filter")

# Numbers of x86-64.
CALLS = {"read": 0, "write": 1, "open": 2, "close": 3, "lseek": 8, "mmap": 9, "ioctl": 16, "pread64": 17,
         "dup": 32, "getpid": 39, "socket": 41, "connect": 42, "sendto": 44, "recvfrom": 45, "sendmsg": 46,
         "recvmsg": 47, "shutdown": 48, "bind": 49, "setsockopt": 54, "getsockopt": 55, "kill": 62, "fcntl": 72, "ftruncate": 77,
         "getuid": 102, "tgkill": 234, "openat": 257, "accept4": 288, "fallocate": 285, "execve": 59, "stat": 4, "fstat": 5, "lstat": 6,
         "access": 21, "readlink": 89, "statfs": 137, "newfstatat": 262, "readlinkat": 267, "faccessat": 269,
         "name_to_handle_at": 303, "statx": 332, "openat2": 437, "faccessat2": 439}


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base "
        "ds es fs gs").split()]


class Ended(Exception):
    """The process was ended by the call: by the signal `number`."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


def ptrace(request, pid, address=None, data=None):
    ctypes.set_errno(0)
    if LIBC.ptrace(request, pid, address, data) == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), f"ptrace {request}")


class Injection:
    """A process that stands still, and makes the calls that it is given."""

    def __init__(self, pid):
        self.pid = pid
        self.alive = True
        self.others = []  # signals of others that came while it stood still
        self.stop()
        self.saved = Registers()
        ptrace(GETREGS, pid, None, ctypes.addressof(self.saved))
        self.memory = open(f"/proc/{pid}/mem", "r+b", buffering=0)
        self.instruction = self.find(SYSCALL)
        # Below the red zone of whatever function was interrupted.
        self.free = (self.saved.rsp - 16384) & ~0xFFF

    def find(self, code):
        for line in pathlib.Path(f"/proc/{self.pid}/maps").read_text().splitlines():
            span, rights, *_, name = line.split()
            if "x" not in rights or not name.endswith((".so.6", "[vdso]")):
                continue
            begin, end = (int(text, 16) for text in span.split("-"))
            at = self.peek(begin, end - begin).find(code)
            if at >= 0:
                return begin + at
        raise AssertionError("no system call instruction")

    def peek(self, address, size):
        self.memory.seek(address)
        return self.memory.read(size)

    def poke(self, address, data):
        self.memory.seek(address)
        self.memory.write(data)

    def put(self, data, offset=0):
        """Puts octets into free memory of the process; gives their address."""
        self.poke(self.free + offset, data)
        return self.free + offset

    def call(self, name, *arguments):
        """What the call returns: a negative error number, or the result. Raises Ended."""
        registers = Registers.from_buffer_copy(self.saved)
        registers.rip, registers.rax = self.instruction, CALLS[name]
        registers.orig_rax = 0xFFFFFFFFFFFFFFFF  # no call to be restarted
        for register, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), arguments):
            setattr(registers, register, value & 0xFFFFFFFFFFFFFFFF)
        ptrace(SETREGS, self.pid, None, ctypes.addressof(registers))
        self.go_on(STEP, signal.SIGTRAP)
        ptrace(GETREGS, self.pid, None, ctypes.addressof(registers))
        return ctypes.c_longlong(registers.rax).value

    def stop(self):
        ptrace(ATTACH, self.pid)
        self.wait(CONTINUE, signal.SIGSTOP)

    def go_on(self, how, until):
        ptrace(how, self.pid)
        self.wait(how, until)

    def wait(self, how, until):
        """Until this signal. Another one comes before the instruction, which is then still to be made."""
        while True:
            _, status = os.waitpid(self.pid, 0x40000000)  # __WALL
            if os.WIFSIGNALED(status):
                self.alive = False
                raise Ended(os.WTERMSIG(status))
            assert os.WIFSTOPPED(status), status
            if os.WSTOPSIG(status) == until:
                return
            self.others.append(os.WSTOPSIG(status))
            ptrace(how, self.pid)

    def setsockopt(self, descriptor, level, option, value):
        data = struct.pack("i", value) if isinstance(value, int) else value
        return self.call("setsockopt", descriptor, level, option, self.put(data), len(data))

    def leave(self):
        if self.alive:
            with contextlib.suppress(OSError):
                ptrace(SETREGS, self.pid, None, ctypes.addressof(self.saved))
                # Whoever pauses and continues all processes has paused this one as well: both are over.
                for number in set(self.others) - {signal.SIGSTOP, signal.SIGCONT}:
                    os.kill(self.pid, number)
                ptrace(DETACH, self.pid)
        self.memory.close()


@contextlib.contextmanager
def into(pid):
    """`with into(pid) as worker: worker.call("getpid")`. The process goes on afterwards, if it lives."""
    injection = Injection(pid)
    try:
        yield injection
    finally:
        injection.leave()


def lives(pid):
    """Whether the process is there, and has not ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def descriptors(pid):
    """What each descriptor of the process is: the text of its link."""
    folder = pathlib.Path(f"/proc/{pid}/fd")
    return {int(entry.name): os.readlink(entry) for entry in folder.iterdir()}


def listening(pid, transport, port):
    """The process's descriptor of the socket at 127.0.0.1:`port`; `transport`: udp or tcp. Read again where it is not found,
    since the kernel's list may lack an entry while the sockets of others come and go."""
    def find():
        inodes = set()
        for line in pathlib.Path(f"/proc/{pid}/net/{transport}").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].split(":")[1], 16) == port and fields[3] in ("07", "0A"):
                inodes.add(f"socket:[{fields[9]}]")
        return [number for number, link in descriptors(pid).items() if link in inodes]
    return servers.wait_until(f"{transport} port {port} is the process's", find, 10)[0]


def connection(pid):
    """The process's descriptor of its connection to the manager."""
    inodes = set()
    for line in pathlib.Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[4] == "0005":  # SOCK_SEQPACKET
            inodes.add(f"socket:[{fields[6]}]")
    return next(number for number, link in descriptors(pid).items() if link in inodes)
