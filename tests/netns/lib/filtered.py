# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a command under a seccomp filter.

filtered.py CALL... -- COMMAND...: the system calls of these names are allowed. Another is refused
with EPERM, and its name is printed on standard error. Exit status 99 if any was, else the command's;
77 if the machine has no libseccomp, or a kernel without notification (before Linux 5.0).
"""
import ctypes
import os
import select
import shutil
import signal
import sys

ALLOW, NOTIFY = 0x7FFF0000, 0x7FC00000
PIDFD_OPEN, PIDFD_GETFD = 434, 438
NOTIF_RECV, NOTIF_SEND = 0xC0502100, 0xC0182101


class Data(ctypes.Structure):
    _fields_ = [("nr", ctypes.c_int), ("arch", ctypes.c_uint32), ("ip", ctypes.c_uint64),
                ("args", ctypes.c_uint64 * 6)]


class Request(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("pid", ctypes.c_uint32), ("flags", ctypes.c_uint32),
                ("data", Data)]


class Response(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64), ("val", ctypes.c_int64), ("error", ctypes.c_int32),
                ("flags", ctypes.c_uint32)]


def load(lib, calls):
    """Returns the descriptor by which what is refused is told."""
    lib.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(lib.seccomp_init(NOTIFY))
    for call in calls:
        number = lib.seccomp_syscall_resolve_name(call.encode())
        if number == -1 or lib.seccomp_rule_add_array(context, ALLOW, number, 0, None):
            sys.exit(f"filtered: no system call {call}")
    if lib.seccomp_load(context):
        os._exit(77)
    return lib.seccomp_notify_fd(context)


def watch(lib, libc, fd):
    """Refuses until all processes under the filter have ended. Returns the names."""
    lib.seccomp_syscall_resolve_num_arch.restype = ctypes.c_char_p
    refused, poll = set(), select.poll()
    poll.register(fd, select.POLLIN)
    while True:
        if poll.poll()[0][1] & select.POLLIN == 0:
            return refused
        request, response = Request(), Response(error=-1)
        if libc.ioctl(fd, ctypes.c_ulong(NOTIF_RECV), ctypes.byref(request)):
            continue
        name = lib.seccomp_syscall_resolve_num_arch(request.data.arch, request.data.nr)
        refused.add((name or b"?").decode())
        response.id = request.id
        libc.ioctl(fd, ctypes.c_ulong(NOTIF_SEND), ctypes.byref(response))


def main():
    at = sys.argv.index("--")
    calls, command = sys.argv[1:at], sys.argv[at + 1 :]
    try:
        lib = ctypes.CDLL("libseccomp.so.2")
    except OSError:
        sys.exit(77)
    libc = ctypes.CDLL(None, use_errno=True)
    # its imports are done before the filter
    path = shutil.which(command[0]) or sys.exit(f"filtered: no {command[0]}")
    told, go = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        fd = load(lib, calls)
        os.write(told[1], b"%d" % fd)
        os.read(go[0], 1)
        os.execv(path, command)
    os.close(told[1])
    text = os.read(told[0], 16)
    if not text:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    pidfd = libc.syscall(PIDFD_OPEN, pid, 0)
    fd = libc.syscall(PIDFD_GETFD, pidfd, int(text), 0)
    if fd < 0:
        os.kill(pid, signal.SIGKILL)
        sys.exit(f"filtered: {os.strerror(ctypes.get_errno())}")
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda s, _: os.kill(pid, s))
    os.write(go[1], b"g")
    refused = watch(lib, libc, fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if refused:
        print("refused:", *sorted(refused), file=sys.stderr)
    sys.exit(99 if refused else status if status >= 0 else 128 - status)


main()
