/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sends the broker's own MADs, by a TAP device like a client's, so that the kernel routes and
 * xroce_egress checks them like a client's. The device is made for the first MAD.
 */
#ifndef BROKER_MAD_SENDER_H
#define BROKER_MAD_SENDER_H

#include "../cm/mad.h"
#include "mux.h"

struct mad_sender {
	struct mux *mux;
	const struct instance_plan *plan;
	int fd; /* -1: not made */
	u32 tap;
};

void mad_sender_init(struct mad_sender *s, struct mux *mux, const struct instance_plan *plan);
/* A MAD from QP 1 of an address of the interface to the peer's. */
struct speech {
	struct gid own, peer;
	struct cm_mad mad;
};
/* Sends a MAD for a place (mux_speak_for()). Without a device: a line on standard error. */
void mad_sender_say(struct mad_sender *s, u32 place, const struct speech *speech);
/*
 * Sends a dead peer of that place a DREQ, or a REJ if it is a request. Errors as in
 * mad_sender_say().
 */
void mad_sender_tell(struct mad_sender *s, u32 place, const struct mux_dead_peer *o);
void mad_sender_close(struct mad_sender *s);

#endif
