/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker's programs on an interface: the one in front of the clients' (xroce_mux), on the
 * interface and on the hairpin, and those behind the clients' TAP devices; and the maps by which
 * the broker says whose a packet is.
 */
#ifndef BROKER_MUX_H
#define BROKER_MUX_H

#include <xroce/abi.h>

#include "../netdev/netdev.h"
#include "instance.h"
#include "near.h"

struct xroce_broker_bpf;

struct mux {
	struct xroce_broker_bpf *bpf;
	struct netdev dev; /* as it was published */
	struct near near;
	int link_fd, hairpin_link_fd;
	int hairpin_fd;
	u32 hairpin;
	bool native;
};

/*
 * Loads, and attaches to the interface by a bpf_link. Returns 0, or -errno after a line on standard
 * error; nothing is left then. No address is published yet.
 */
int mux_make(struct mux *m, const struct netdev *dev);
void mux_unmake(struct mux *m);
/* It sees no packet more; all else stays. */
void mux_detach(struct mux *m);

/* The addresses are those of now. Returns 0 or -errno of the first that failed. */
int mux_publish(struct mux *m, const struct netdev *now);

/* What is near is as now. Returns 0 or -errno. */
int mux_follow_near(struct mux *m);

/* Programs for TAP devices. */
int mux_tap_ingress_fd(const struct mux *m);
int mux_tap_egress_fd(const struct mux *m);
int mux_tap_single_fd(const struct mux *m); /* XDP */
/* QPs that clients can have in all. */
u32 mux_max_qps(const struct mux *m);

/* A client's packets go to that program; it sends by those TAPs. Returns 0 or -errno. */
int mux_enter(struct mux *m, u32 client, int prog_fd, const u32 tap[INSTANCE_TAPS],
	      bool privileged);
/* None goes to it any more, and nothing leaves by them. */
void mux_leave(struct mux *m, u32 client, const u32 tap[INSTANCE_TAPS]);

/* Returns 0 or -errno. */
int mux_own(struct mux *m, u32 qpn, u32 client, u32 pid);
void mux_disown(struct mux *m, const u32 *qpn, u32 n);

/* What a client has sent. */
void mux_sent(const struct mux *m, const u32 tap[INSTANCE_TAPS], struct xroce_tap *sent);

#endif
