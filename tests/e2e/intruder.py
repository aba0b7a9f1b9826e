"""Makes a running process do a system call, as an intruder who has taken it over would: what the kernel then says is what he gets.

Root only, x86-64 only. The process is stopped in the system call that it waits in, made to execute that instruction again with
other arguments, and then goes on as before.
"""
import ctypes
import os
import platform
import signal

NUMBERS = {"read": 0, "open": 2, "socket": 41, "execve": 59, "ptrace": 101, "setuid": 105, "unlink": 87, "mkdir": 83, "unshare": 272, "prctl": 157,
           "bpf": 321, "mount": 165, "kill": 62}
PEEK, POKE, SINGLESTEP, GETREGS, SETREGS, ATTACH, DETACH = 1, 4, 9, 12, 13, 16, 17
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


class Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in (
        "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs",
        "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs")]


def possible():
    return os.geteuid() == 0 and platform.machine() == "x86_64"


def ptrace(request, pid, data=None, at=None):
    ctypes.set_errno(0)
    result = libc.ptrace(request, pid, at, data)
    if ctypes.get_errno() != 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request}")
    return result


def write(pid, at, text):
    """By ptrace: who is root of a user namespace only may not open /proc/PID/mem."""
    for offset in range(0, len(text), 8):
        ptrace(POKE, pid, int.from_bytes(text[offset:offset + 8].ljust(8, b"\0"), "little"), at + offset)


def stop_in_a_call(pid):
    """Its registers, when it has been stopped right after the instruction of a system call; while it computes, it is let go on."""
    registers = Registers()
    for _ in range(100_000):
        ptrace(ATTACH, pid)
        os.waitpid(pid, 0x40000000)   # __WALL
        ptrace(GETREGS, pid, ctypes.byref(registers))
        if ptrace(PEEK, pid, None, registers.rip - 2) & 0xffff == 0x050f:
            return registers
        ptrace(DETACH, pid)
    raise RuntimeError("the process makes no system call")


def call(pid, name, *arguments):
    """What the system call returns, an errno as a negative number; or the name of the signal that it ends the process with.

    Text goes to where an argument points.
    """
    before = stop_in_a_call(pid)
    after = Registers.from_buffer_copy(before)
    values, at = [], before.rsp - 65536
    for argument in arguments:
        if isinstance(argument, (str, bytes, os.PathLike)):
            write(pid, at, os.fsencode(argument) + b"\0")
            argument, at = at, at + 4096
        values.append(argument)
    values += [0] * (6 - len(values))
    after.rdi, after.rsi, after.rdx, after.r10, after.r8, after.r9 = [value & (1 << 64) - 1 for value in values]
    after.rax, after.orig_rax, after.rip = NUMBERS[name], (1 << 64) - 1, before.rip - 2
    ptrace(SETREGS, pid, ctypes.byref(after))
    ptrace(SINGLESTEP, pid)
    _, status = os.waitpid(pid, 0x40000000)
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    result = Registers()
    ptrace(GETREGS, pid, ctypes.byref(result))
    ptrace(SETREGS, pid, ctypes.byref(before))
    ptrace(DETACH, pid)
    return ctypes.c_longlong(result.rax).value
