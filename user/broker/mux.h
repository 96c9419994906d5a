/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker's programs on an interface: the one in front of the clients' (xroce_mux), on the
 * interface and on the hairpin, and those behind the clients' TAP devices; and the maps by which
 * the broker says whose a packet is.
 */
#ifndef BROKER_MUX_H
#define BROKER_MUX_H

#include <xroce/trace.h>

#include "../os/netdev.h"
#include "bindings.h"
#include "instance.h"
#include "neighbours.h"

struct xroce_broker_bpf;

struct mux {
	struct xroce_broker_bpf *bpf;
	struct netdev dev; /* as it was published */
	struct neighbours near;
	int link_fd, hairpin_link_fd;
	int hairpin_fd;
	u32 hairpin;
	u32 first_port; /* that takes no privilege */
	bool native;
};

/*
 * Loads, and attaches to the interface by a bpf_link. Returns 0, or -errno after a line on standard
 * error; nothing is left then. No address is published yet. Clients may send with those P_Keys.
 *
 * heirloom: NULL, or of a process that has the interface alone: its link, on which its own program
 * stays until it puts the mux there, and the hairpin of an earlier broker of it, or -1. Both are
 * the mux's after 0.
 */
struct mux_heirloom {
	int link_fd, hairpin_fd;
};
int mux_make(struct mux *m, const struct netdev *dev, const struct pkey_table *pkeys,
	     const struct mux_heirloom *heirloom);
/* Is it the mux that the link holds to the interface? */
bool mux_is_attached(const struct mux *m);
/* In place of the program of a process that has ended. Returns 0 or -errno. */
int mux_put_on(struct mux *m);
int mux_prog_fd(const struct mux *m);
int mux_clients_fd(const struct mux *m); /* xroce_client */
void mux_unmake(struct mux *m);
/* It sees no packet more; all else stays. */
void mux_detach(struct mux *m);

/* The addresses are those of now. Returns 0 or -errno of the first that failed. */
int mux_publish(struct mux *m, const struct netdev *now);

/* What is near is as now. Returns 0 or -errno. */
int mux_follow_near(struct mux *m);

int mux_turn_fd(const struct mux *m); /* xroce_turn */
/* Programs for TAP devices. */
int mux_tap_ingress_fd(const struct mux *m);
int mux_tap_egress_fd(const struct mux *m);
int mux_tap_single_fd(const struct mux *m); /* XDP */
/* QPs that clients can have in all. */
u32 mux_max_qps(const struct mux *m);

/*
 * A client's packets go to that program; it sends by those TAPs, of which some may be 0. Returns 0
 * or -errno.
 */
struct mux_client {
	u32 number, place; /* place: of its communication ids */
	bool privileged;
};
int mux_enter(struct mux *m, const struct mux_client *c, int prog_fd,
	      const u32 tap[INSTANCE_TAPS]);
/* None goes to it any more, and nothing leaves by them. */
void mux_leave(struct mux *m, u32 client, const u32 tap[INSTANCE_TAPS]);

/* Returns 0 or -errno. */
int mux_own(struct mux *m, u32 qpn, u32 client, u32 pid);
void mux_disown(struct mux *m, const u32 *qpn, u32 n);

/*
 * Who has a QP 1, by the place of its communication ids; NULL: nobody. Returns 0 or -errno, for
 * NULL always 0.
 */
int mux_put_place(struct mux *m, u32 place, const struct xroce_place *p);
/* Requests by these keys are for that place. Returns 0, or -errno: none is then. */
int mux_bind(struct mux *m, const struct binding_keys *keys, u32 place, u32 pid);
void mux_unbind(struct mux *m, const struct binding_keys *keys);
/* The first port that takes no privilege (ip_unprivileged_port_start, as it was at first). */
u32 mux_first_port(const struct mux *m);

/*
 * The clients that packets to a multicast group go to; NULL: none. Returns 0 or -errno, for NULL
 * always 0.
 */
int mux_put_members(struct mux *m, const struct gid *group, const struct xroce_members *members);

/* ---- mux_conn.c: connections whose process has gone ---- */

struct mux_orphan {
	struct xroce_conn conn;
	u64 tid;
	u32 own_id;	 /* 0 of a request */
	bool is_request; /* of the peer's, which was not answered; else a connection */
};
typedef void mux_orphan_fn(void *arg, const struct mux_orphan *o);
/* Calls fn for each that a QP 1 of this serial has left. */
void mux_take_orphans(struct mux *m, u64 serial, mux_orphan_fn *fn, void *arg);
/* Has a client with a QP 1 that place? */
bool mux_has_place(const struct mux *m, u32 place);
/*
 * What is sent by that TAP of the broker's own is of this place; PLACE_NOBODY: of none, and refuses
 * what is nobody's. Returns 0 or -errno.
 */
int mux_speak_for(struct mux *m, u32 tap, u32 place);
/* Nothing leaves by it. */
void mux_silence(struct mux *m, u32 tap);
/* The ring of MADs that are nobody's (xroce_nobody). */
int mux_nobody_fd(const struct mux *m);

/* What a client has sent. */
void mux_sent(const struct mux *m, const u32 tap[INSTANCE_TAPS], struct xroce_tap *sent);

#endif
