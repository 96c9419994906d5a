/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ports of clients and their rings: ASK_HELLO, ASK_RING. */
#ifndef BROKER_CLIENT_PORT_H
#define BROKER_CLIENT_PORT_H

#include "broker_object.h"

/* Kernel memory of a ring of ASK_RING: one page of data, two of positions. */
#define CLIENT_RING_KIB 12u

/* Queues the question, or answers with an error. */
void client_port_ask(struct client *c, const struct ask *ask);
/* Answer the queued questions: with a port, a ring, or an error. */
void client_port_serve(struct client *c);
void client_port_ring(struct client *c);

/* Gives c a number, the program for its packets, and the TAPs to send by. Returns 0 or -errno. */
int client_port_enter(struct client *c, int prog_fd, u32 prog_id, const u32 tap[INSTANCE_TAPS]);
/* Takes the number and the program's slot back. The TAPs stay. */
void client_port_leave(struct client *c);
/* Describes c, which has a number, as a sender of frames. */
struct mux_client client_port_sender(const struct client *c);
/* Refuses frames from its TAP devices, and deletes them. */
void client_port_drop_taps(struct client *c);

#endif
