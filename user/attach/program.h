/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs and maps of a port (bpf/xroce.bpf.c), as this kernel can load them. */
#ifndef ATTACH_PROGRAM_H
#define ATTACH_PROGRAM_H

struct xroce_bpf;

/*
 * Not loaded yet; NULL with errno set. Before Linux 6.1 xroce_tell is not among what will be
 * loaded: nobody is shown what is sent.
 */
struct xroce_bpf *program_open(void);

#endif
