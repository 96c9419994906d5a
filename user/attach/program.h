/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs and maps of a port (bpf/xroce.bpf.c), without programs that the kernel lacks. */
#ifndef ATTACH_PROGRAM_H
#define ATTACH_PROGRAM_H

struct xroce_bpf;

/*
 * Opens the programs without loading them. Returns NULL with errno set after an error. Before Linux
 * 6.1 xroce_tell will not be loaded: observers then see no sent packets.
 */
struct xroce_bpf *program_open(void);

#endif
