/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process asks of the broker of an interface, over a Unix socket (SOCK_SEQPACKET), and what
 * it is answered: one message each, of a fixed size. The connection is the client: when it ends,
 * however it ends, all that it has been given is taken back.
 *
 * Both sides take what they read as hostile: its length, its version, its numbers, and how many
 * descriptors came with it.
 */
#ifndef BASE_ASK_H
#define BASE_ASK_H

#include "../transport/types.h"

#define ASK_VERSION 1u
/* %llu: inode of the network namespace; %u: index of the interface in it */
#define ASK_PATH    "/run/xroce/%llu-%u.sock"
#define ASK_DIR	    "/run/xroce"

enum ask_what {
	ASK_HELLO = 1, /* a port: the answer has struct ask_port and ASK_FDS descriptors */
	ASK_CLAIM,     /* number is a QPN: 0, -EEXIST: another's */
	ASK_RELEASE,   /* number is a QPN of this client's: 0 or -ENOENT */
	/* a ring buffer for wake-up records: one descriptor, the client's until it ends */
	ASK_RING,
	/*
	 * the number-th client, of those that this user may see: struct ask_client; -ENOENT: there
	 * are no more
	 */
	ASK_LIST,
	ASK_STOP, /* the broker ends; -EPERM but for root and the broker's own user */
};
/*
 * A limit: -EDQUOT, the user has all that it may have; -ENOSPC, there is no more. Without a port,
 * ASK_CLAIM and ASK_RING are answered by -ENOTCONN. Several asks may be under way; answers come in
 * their order.
 */

/* The descriptors of ASK_HELLO, in this order: the client's own maps, rings and TAP devices. */
enum ask_fd {
	ASK_FD_QP,
	ASK_FD_CQ,
	ASK_FD_EXPECT,
	ASK_FD_CHANNEL,
	ASK_FD_ENGINE,
	ASK_FD_VECTOR,
	ASK_FD_GID,
	ASK_FD_SOCK,
	ASK_FD_STATS,
	ASK_FD_DROPS,
	ASK_FD_RX,   /* xroce_ring: received packets */
	ASK_FD_WAKE, /* of the service thread: in slot 0 of xroce_channel already */
	ASK_FD_TAP,
	ASK_FD_SINGLE, /* the TAP device for single frames; the other's has IFF_VNET_HDR */
	ASK_FDS
};

struct ask {
	u32 version;
	u32 what; /* enum ask_what */
	u32 number;
	u32 pad;
};

struct ask_port {
	u32 client;	/* its number with this broker */
	u32 ifindex;
	u32 prog_id;	/* of its own program */
	u32 ring_bytes; /* of ASK_FD_RX */
	u32 native;
	u32 privileged;
};

struct ask_client {
	u32 client;
	u32 pid, uid;
	u32 qps;
	u32 prog_id;
	u32 tap;	/* ifindex, of that for all frames */
	char command[16];
	u64 frames, hairpin, bytes, refused; /* of struct xroce_tap, both devices' */
};

struct ask_answer {
	u32 version;
	u32 what;     /* as asked */
	s32 err;      /* 0 or -errno; without a meaning for the rest then */
	u32 num_fds;
	union {
		struct ask_port port;
		struct ask_client client;
		u8 room[112];
	};
};
_Static_assert(sizeof(struct ask) == 16 && sizeof(struct ask_answer) == 128, "fixed sizes");

#endif
