/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The broker's programs on an interface, and their maps, which identify the client of each packet:
 * xroce_mux on the interface and the hairpin, which calls the clients' programs, and the programs
 * on the clients' TAP devices.
 */
#ifndef BROKER_MUX_H
#define BROKER_MUX_H

#include <xroce/trace.h>

#include "hook.h"
#include "../host/receive.h"
#include "../os/netdev.h"
#include "bindings.h"
#include "instance.h"
#include "neighbours.h"

struct xroce_broker_bpf;

struct mux {
	/* the maps, and the programs that guard TAP devices; NULL: UDP sockets are used instead */
	struct xroce_broker_bpf *bpf;
	/* all others, which use these maps; NULL: not loaded, and there is no hairpin */
	struct xroce_broker_bpf *programs;
	struct netdev dev; /* as published */
	struct neighbours neighbours;
	struct hook hook;
	int hairpin_link_fd;
	int hairpin_fd;
	u32 hairpin;	/* its ifindex */
	u32 first_port; /* the first that needs no privilege */
	bool is_on;	/* the mux is on the hook, and not a client's program */
	/* with UDP sockets (mux_udp.c) these are used, and of the above only dev and first_port */
	struct host *host;
	struct host_receive receive;
	struct tx *udp; /* sends the broker's MADs */
	struct gid told_gid; /* a line on standard error has reported it; 0: none */
};

/*
 * Makes the maps, which take entries from now on. pkeys: for the frames of clients. Returns 0, or
 * -errno after a line on standard error and undoing all steps.
 */
int mux_make(struct mux *m, const struct netdev *dev, const struct pkey_table *pkeys);
/* The same with UDP sockets: packets reach it from now on, and it takes no privilege. */
int mux_make_udp(struct mux *m, const struct netdev *dev);
/*
 * Attaches the mux to the interface, in place of a program that is attached. At first loads the
 * programs, which takes the kernel 50 to 200 ms, and makes the hairpin. Publishes no address.
 * Returns 0; -EBUSY without a line: a program of the broker is in a dispatcher; or -errno after a
 * line on standard error.
 */
int mux_put_on(struct mux *m);
/*
 * Attaches a client's program, in place of an attached mux: a loaded program, or the program that
 * open() opens. Return 0, or -errno after a line on standard error.
 */
int mux_put_client_on(struct mux *m, int prog_fd);
int mux_put_new_client_on(struct mux *m, hook_open_fn *open, void *arg, struct xroce_bpf **bpf);
/* Detaches the program on the hook, if there is one. */
void mux_take_off(struct mux *m);
int mux_clients_fd(const struct mux *m); /* xroce_client */
void mux_unmake(struct mux *m);
/* Detaches the mux, so that it gets no more packets; all else stays. */
void mux_detach(struct mux *m);

/* Publishes the interface's present addresses. Returns 0, or -errno of the first failure. */
int mux_publish(struct mux *m, const struct netdev *now);

/* Updates the addresses of other interfaces (neighbours.h). Returns 0 or -errno. */
int mux_follow_neighbours(struct mux *m);

int mux_turn_fd(const struct mux *m); /* xroce_turn */
int mux_gids_fd(const struct mux *m); /* xroce_gid */
/* Return descriptors of the programs for TAP devices. */
int mux_tap_ingress_fd(const struct mux *m);
int mux_tap_egress_fd(const struct mux *m);
int mux_tap_single_fd(const struct mux *m); /* XDP */
/* Returns the highest number of QPs of all clients together. */
u32 mux_max_qps(const struct mux *m);

/* Change one of the maps that both kinds have. mux_map_put() returns 0 or -errno. */
int mux_map_put(struct mux *m, enum host_map_name which, const void *key, const void *value);
void mux_map_remove(struct mux *m, enum host_map_name which, const void *key);

/* The peer of a client that has ended (mux_conn.c). */
struct mux_dead_peer {
	struct xroce_conn conn;
	u64 tid;
	u32 own_id;	 /* 0 for a request */
	bool is_request; /* a peer's request without an answer; else a connection */
};
typedef void mux_dead_peer_fn(void *arg, const struct mux_dead_peer *o);

/* ---- mux_udp.c ---- */
void mux_udp_unmake(struct mux *m);
int mux_udp_publish(struct mux *m, const struct netdev *now);
void mux_udp_take_dead_peers(struct mux *m, u64 serial, mux_dead_peer_fn *fn, void *arg);
/* Sends a frame of the broker's own. */
void mux_udp_send(struct mux *m, const u8 *frame, u32 len);

struct mux_client {
	u32 number, place; /* place: of its communication ids */
	bool privileged;
	struct host_client *host; /* its memory, with UDP sockets; else NULL */
};

/*
 * Directs a client's packets to its program (-1: it is only called without the mux), and admits
 * frames from its TAPs, of which some may be 0. Returns 0 or -errno.
 */
int mux_enter(struct mux *m, const struct mux_client *c, int prog_fd,
	      const u32 tap[INSTANCE_TAPS]);
/* Reverts mux_enter(): no packet reaches the program, and no frame leaves by the TAPs. */
void mux_leave(struct mux *m, u32 client, const u32 tap[INSTANCE_TAPS]);

/* Admits frames from one more TAP of a client that has entered. Returns 0 or -errno. */
int mux_add_tap(struct mux *m, const struct mux_client *c, u32 tap);
void mux_remove_tap(struct mux *m, u32 tap);

/* Assigns a QPN to a client. Returns 0 or -errno. */
int mux_own(struct mux *m, u32 qpn, u32 client, u32 pid);
void mux_disown(struct mux *m, const u32 *qpn, u32 n);

/*
 * Sets the client with a QP 1 whose communication ids have this place; NULL: none. Returns 0 or
 * -errno, for NULL always 0.
 */
int mux_put_place(struct mux *m, u32 place, const struct xroce_cm_client *p);
/* Directs requests with these keys to a place: all, or none after -errno. Returns 0 or -errno. */
int mux_bind(struct mux *m, const struct binding_keys *keys, u32 place, u32 pid);
void mux_unbind(struct mux *m, const struct binding_keys *keys);
u32 mux_read_first_port(void);
/* Returns ip_unprivileged_port_start, as it was in mux_make(). */
u32 mux_first_port(const struct mux *m);

/*
 * Sets the clients that get packets to a multicast group; NULL: none. Returns 0 or -errno, for NULL
 * always 0.
 */
int mux_put_members(struct mux *m, const struct gid *group, const struct xroce_members *members);

/* ---- mux_conn.c: connections of clients that have ended ---- */

/* Calls fn for each dead peer of the QP 1 with this serial. */
void mux_take_dead_peers(struct mux *m, u64 serial, mux_dead_peer_fn *fn, void *arg);
/* Returns whether a client with a QP 1 has this place. */
bool mux_has_place(const struct mux *m, u32 place);
/*
 * Admits MADs from the broker's own TAP for a place; PLACE_NONE: refusals of MADs without an
 * owner. Returns 0 or -errno.
 */
int mux_speak_for(struct mux *m, u32 tap, u32 place);
/* Reverts mux_speak_for(). */
void mux_silence(struct mux *m, u32 tap);
/* Returns the ring of MADs without an owner (xroce_unowned). */
int mux_unowned_fd(const struct mux *m);

/* Adds up the counters of a client's devices. */
void mux_sent(const struct mux *m, const u32 tap[INSTANCE_TAPS], struct xroce_tap *sent);

#endif
