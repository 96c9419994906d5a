/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker's own way to send a MAD: a TAP device like a client's, so that what it says is routed
 * and checked as theirs is. Made when there is something to say.
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
/* Says it for that place, as mux_speak_for() has it. A line on standard error if that cannot be. */
void mad_sender_say(struct mad_sender *s, u32 place, const struct speech *speech);
/*
 * Tells the peer of a connection of that place that it has ended, or that its request is refused. A
 * line on standard error if that cannot be.
 */
void mad_sender_tell(struct mad_sender *s, u32 place, const struct mux_orphan *o);
void mad_sender_close(struct mad_sender *s);

#endif
