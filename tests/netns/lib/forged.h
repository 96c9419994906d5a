/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames that a client of a broker must not get out, and some that it may, each marked with its
 * kind: made by forger.c, and known again by it where they arrive.
 */
#ifndef NETNS_FORGED_H
#define NETNS_FORGED_H

#include <linux/virtio_net.h>

#include "../../../user/engine/types.h"

#define MARK                                                                                       \
	"\xf0\x09\xe4"                                                                             \
	"orged"
#define MARK_LEN  8u
#define ROOM	  66000u
#define UDP_PORT  4791
#define ETH	  14u
#define BTH_BYTES 12u

struct kind {
	const char *name;
	bool may; /* leave */
	bool v6, ud;
	u16 packets, each;    /* of a super-packet: how many, and bytes of UDP payload of each */
	void (*before)(void); /* makes its fault before it is marked */
	void (*after)(void);  /* and after */
};
extern const struct kind kinds[];
extern const u32 num_kinds;

struct frame {
	u8 b[ROOM];
	u32 len;
	struct virtio_net_hdr vnet;
	u32 ip; /* where the headers begin */
	u32 udp, bth;
	bool v6, ud;
	u32 packets; /* of a super-packet */
	u32 each;    /* bytes of UDP payload of each */
};

/* The frame under construction. */
extern struct frame f;
/* Set by the caller: addresses of the interface and of a host that answers nothing, QP numbers. */
extern u8 own4[4], sink4[4], own6[16], sink6[16];
extern u32 own_qpn, foreign[16], num_foreign;

/* A frame with nothing wrong. */
void forged_make(bool v6, bool ud, u32 packets, u32 each);
/* Adds marks and digests to all of its packets, for their present content. */
void forged_seal(u32 kind);
/* A frame of a kind, whole. */
void forged_kind(u32 kind);
/* Lengths and checksum as they should be. */
void forged_set_ip(void);
u32 forged_digest(const u8 *at, u32 n);
void put16(u8 *at, u32 v);
void put24(u8 *at, u32 v);

#endif
