/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a port on a shared interface has in place of AF_XDP sockets: a ring buffer that the XDP
 * program writes packets to, and a way out onto the cable. The ring's helpers for the program and
 * its functions of user/os/kernel.h are in shared.c.
 */
#ifndef PORTSIM_SHARED_H
#define PORTSIM_SHARED_H

#include "../../user/io/tx.h"
#include "nic.h"

/* A ring buffer for packets that the interface's program writes to: its descriptor. */
int shared_ring_make(struct nic *n, u32 bytes);
struct tx *shared_tx_open(struct nic *n);

#endif
