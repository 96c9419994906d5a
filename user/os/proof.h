/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a process proves to a broker its network namespace and its capabilities. A user ID proves
 * neither: root of a container may have no capability, and a process's capabilities as /proc shows
 * them are those of whatever it executes at that moment. So the kernel checks them: the broker
 * draws a nonce for the connection, and the process makes a UDP socket that only it could make for
 * that nonce. The broker has the kernel describe the socket (sock_diag(7)). No descriptor is sent.
 *
 *   bound to PROOF_ADDRESS, any port   the socket is in the broker's network namespace
 *   a port below the first free one    CAP_NET_BIND_SERVICE
 *   SO_MARK is the nonce               CAP_NET_RAW or CAP_NET_ADMIN
 *   SO_RCVBUFFORCE to PROOF_FORCED     CAP_NET_ADMIN, if net.core.rmem_max is less
 *
 * All of them are capabilities over the user namespace that owns the network namespace.
 */
#ifndef BASE_PROOF_H
#define BASE_PROOF_H

#include "../engine/types.h"

/* An IPv4 address in host order, of 127.64.0.0/10; packets to it stay on the host. */
#define PROOF_ADDRESS(nonce) (127u << 24 | 1u << 22 | ((nonce) & 0x3fffff))
/* What is set as the size of the receive buffer with CAP_NET_ADMIN, and without; bytes. */
#define PROOF_FORCED_MIN     (1 << 29)
#define PROOF_FORCED(nonce)  (PROOF_FORCED_MIN + (int)((nonce) & 0xfffffff))
#define PROOF_RCVBUF(nonce)  (8192 + (int)((nonce) >> 17))

#endif
