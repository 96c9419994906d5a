/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The resources of one client: a program with its maps, rings and TAP devices. Instances are all
 * alike, and made before a client asks, except that of a client with AF_XDP sockets (sole.h).
 */
#ifndef BROKER_INSTANCE_H
#define BROKER_INSTANCE_H

#include <xroce/trace.h>

#include "../os/ask.h"
#include "readonly_maps.h"

#define INSTANCE_TAPS 2
/* Inserting a ring takes the kernel 15 ms, and several at once as long: these are made ahead. */
#define INSTANCE_RINGS 4
#define INSTANCE_KIB  10240u /* kernel memory, at most */

struct host_client;
struct xroce_bpf;

/* The rings of a client's completion channels. */
struct instance_rings {
	int channel_fd;		   /* xroce_channel; -1: none */
	int ahead[INSTANCE_RINGS]; /* made ahead: the first rings; -1: given */
};

#define INSTANCE_RINGS_NONE                                                                        \
	{                                                                                          \
		-1, { -1, -1, -1, -1 }                                                             \
	}
_Static_assert(INSTANCE_RINGS == 4, "INSTANCE_RINGS_NONE");

struct instance {
	struct xroce_bpf *bpf;	  /* NULL: not made, or with `host` in its place: */
	struct host_client *host; /* for a broker with UDP sockets */
	bool has_sockets;      /* for a client with AF_XDP sockets: it has no TAP devices, */
	int others_fd;	       /* but an eventfd (ASK_FD_OTHERS); -1: none */
	int wake_fd;	       /* the ring of its worker */
	struct instance_rings rings;
	int tap_fd, single_fd;
	u32 tap, single;       /* ifindexes of these devices */
	int single_link_fd;    /* of the XDP program on the second device */
	struct readonly_maps readonly_maps;
	u32 prog_id;
	u32 ring_bytes;
};

/* Common to all instances of a broker. */
struct instance_plan {
	u32 ifindex;
	u32 ring_bytes;
	bool by_udp; /* nothing below is used */
	bool without_others; /* a client with sockets gets no packets of other processes here */
	int tap_ingress_fd, tap_egress_fd, tap_single_fd; /* programs */
	/* the broker's maps, which clients' programs use as well */
	int clients_fd, turn_fd, gids_fd;
};

/*
 * Makes an instance. Returns 0, or -errno and the step that failed, with all steps undone. No
 * packet reaches its program yet, and frames from its devices are refused.
 */
int instance_make(struct instance *i, const struct instance_plan *plan, const char **step);
/*
 * For a client that receives by its own AF_XDP sockets: opens its program without loading it. plan:
 * struct instance_plan. Returns NULL with errno set.
 */
struct xroce_bpf *instance_open_with_sockets(void *plan);
void instance_free_program(struct xroce_bpf *bpf);
/* Makes the rest of the instance, which owns bpf from now on. Returns as instance_make(). */
int instance_make_with_sockets(struct instance *i, struct xroce_bpf *bpf,
			       const struct instance_plan *plan, const char **step);

/*
 * Makes only a device to send all frames by, for the first client or the broker's MADs. Returns its
 * descriptor or -errno.
 */
int instance_make_tap(const struct instance_plan *plan, u32 *tap);

/*
 * Lists its descriptors in the order of enum ask_fd. They stay the instance's. Returns how many:
 * ASK_FDS, or ASK_SOCKETS_FDS.
 */
u32 instance_fds(const struct instance *i, int fd[ASK_SOCKETS_FDS]);
int instance_prog_fd(const struct instance *i);

/*
 * Gets ring n of a client, whose key in xroce_channel is XROCE_MAX_QUEUE + n; rings are got in
 * turn. Makes and inserts the ring now, unless it was made ahead. Returns a descriptor, which then
 * belongs to the caller, or -errno.
 */
int instance_ring(struct instance_rings *r, u32 n);
/* Returns whether instance_ring() takes no time. */
bool instance_ring_is_ahead(const struct instance_rings *r, u32 n);
void instance_rings_close(struct instance_rings *r);

/* Closes the broker's descriptors. An instance that no client got disappears with them. */
void instance_close(struct instance *i);

#endif
