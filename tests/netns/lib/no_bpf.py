# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a command under a seccomp filter that kills it for bpf(2).

no_bpf.py COMMAND...
"""
import ctypes
import os
import sys

ALLOW, KILL_PROCESS = 0x7FFF0000, 0x80000000

lib = ctypes.CDLL("libseccomp.so.2")
lib.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(lib.seccomp_init(ALLOW))
number = lib.seccomp_syscall_resolve_name(b"bpf")
if lib.seccomp_rule_add_array(context, ctypes.c_uint32(KILL_PROCESS), number, 0, None) or \
        lib.seccomp_load(context):
    sys.exit("no_bpf: no filter")
os.execvp(sys.argv[1], sys.argv[1:])
