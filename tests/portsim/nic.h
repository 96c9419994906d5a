/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Network interfaces of the simulated machine, the cable between them, and the AF_XDP sockets on
 * their receive queues. Each queue is an actor that works as the kernel's poll does: takes packets,
 * runs XDP on each, puts redirected ones into the socket's ring, and publishes them only at the end
 * of the poll. So a wake-up record may be seen long before its packet.
 *
 * The kernel checks its input: a frame that is handed to it twice ends the run.
 */
#ifndef PORTSIM_NIC_H
#define PORTSIM_NIC_H

#include "machine.h"
#include "xdp.h"

#define NICS	   2
#define NIC_QUEUES 4

/* What the cable and the kernel do by chance: rates are in 65536. */
struct nic_options {
	u32 queues;
	u64 latency_ns, jitter_ns;
	u32 loss_rate;	  /* of packets */
	u32 reorder_rate; /* overtaken by later ones */
	u32 stray_rate;	  /* by another queue than the others of their QP */
	u32 move_rate;	  /* from here on all of that QP */
	u32 budget;	  /* packets of one poll */
	u32 hold_rate;	  /* polls that take their time before they publish */
	u64 hold_max_ns;
	u32 block_rate;	  /* calls to send that find no memory */
};

struct nic;
/* Creates interface 0 or 1: one end of the cable. `name` is the one the port uses. */
struct nic *nic_make(u32 number, const struct nic_options *o);
const char *nic_name(u32 number);
void nic_mac(u32 number, u8 mac[6]);
struct nic *nic_get(u32 number);
struct port_maps *nic_maps(struct nic *n);
/* XDP is attached: packets run through the program. Detached again: none of its queues runs. */
void nic_attach(struct nic *n);
void nic_detach(struct nic *n);
void nic_free(struct nic *n);

/* A frame leaves without a socket. False: not now. */
bool nic_send(struct nic *n, const u8 *frame, u32 len);

/*
 * Of a receive queue: packets in the receive ring that have been published and not taken; of a ring
 * buffer, whether there are any.
 */
u32 nic_unread(const struct nic *n, u32 queue);
/* Packets that are on their way to the interface, or in its polls. */
u32 nic_on_the_way(const struct nic *n);
/* Packets lost at full or empty rings, and on the cable. */
u64 nic_lost(const struct nic *n);
int nic_socket_fd(const struct nic *n, u32 queue);
/* Adds to has[] each chunk of the queue's UMEM that is the kernel's, to receive into or to send. */
void nic_count_frames(const struct nic *n, u32 queue, u8 *has);

#endif
