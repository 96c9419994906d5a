/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process asks of the broker of an interface, over a Unix socket (SOCK_SEQPACKET), and what
 * it is answered: one message each, of a fixed size. The connection is the client: when it ends,
 * however it ends, all that it has been given is taken back.
 *
 * Both sides take what they read as hostile: its length, its version, its numbers, and how many
 * descriptors came with it.
 */
#ifndef OS_ASK_H
#define OS_ASK_H

#include "../engine/pkey.h"
#include "../engine/types.h"

#define ASK_VERSION 12u
/* %llu: inode of the network namespace; %u: index of the interface in it */
#define ASK_PATH    "/run/xroce/%llu-%u.sock"
#define ASK_PARENT  "/run"
#define ASK_DIR	    ASK_PARENT "/xroce"

enum ask_what {
	ASK_HELLO = 1, /* a port: the answer has struct ask_port and ASK_FDS descriptors */
	/* a QPN that nobody has: it is this client's, in number */
	ASK_DRAW,
	/*
	 * number is a QPN, of the client's choice: -EPERM but for the privileged, whom -EEXIST
	 * tells that it is another's. QP 1 any client may have, each its own: MADs come to it
	 */
	ASK_CLAIM,
	ASK_RELEASE, /* number is a QPN of this client's: 0 or -ENOENT */
	/* a ring buffer for wake-up records: one descriptor, the client's until it ends */
	ASK_RING,
	/*
	 * The client of the lowest number from number on, of those that this user may see: struct
	 * ask_client; -ENOENT: there are no more, and number is 1 if clients of other users would
	 * not be listed (whether there are any is not said), 0 with CAP_NET_ADMIN.
	 */
	ASK_LIST,
	ASK_STOP, /* the broker ends; -EPERM but for CAP_NET_ADMIN and the broker's own user */
	/*
	 * Of the process that has started the broker and had the interface alone until now
	 * (attach/first.h): a place among the clients; number says whether XDP is native. The
	 * answer has struct ask_port and ASK_JOIN_FDS descriptors.
	 */
	ASK_JOIN,
	ASK_OPEN, /* and that the broker's program is on the interface: others may come in */
	/*
	 * service is this client's: requests for it come to its QP 1. -EADDRINUSE: one of another
	 * client's overlaps it (the same id, and the same address, or any address of its family on
	 * one of both sides); -EEXIST: this client has it; -EACCES: a port for the privileged
	 * alone; -EINVAL: it is none
	 */
	ASK_BIND,
	ASK_UNBIND, /* service is one of this client's: 0 or -ENOENT */
	/*
	 * service.address is a multicast group that this client has members of; the rest of it is
	 * 0. Packets to it come to this client as well. -EEXIST: they do already; -EINVAL: it is
	 * no such address; -ENOSPC also if XROCE_GROUP_CLIENTS clients have members
	 */
	ASK_ATTACH,
	ASK_DETACH, /* not any more: 0 or -ENOENT */
	/*
	 * Of the process that had the interface alone: it has it alone again, and the broker ends
	 * without an answer. A connection of it that ends without this is its own end.
	 */
	ASK_LEAVE,
	ASK_PKEYS, /* the P_Key table, which each port has: whoever has none may ask */
	/*
	 * Maps of one of the clients that ASK_LIST tells of, for whoever looks into them: number is
	 * ASK_MAPS_OF(the client's number; first map). The answer has its struct
	 * ask_client and descriptors of its further maps (base/shown_maps.h), ASK_FDS at most, by
	 * which they can be read, and not written; none: there are no more. -EPERM: the broker
	 * could not open them so (user/broker/readonly_maps.h).
	 */
	ASK_MAPS,
	/*
	 * Packets and events of the client of that number, from here on: trace says of which. The
	 * answer has struct ask_traced and ASK_TRACE_FDS descriptors. -EALREADY: this connection
	 * has them; -EBUSY: as many look at the client as can; -EINVAL: it asks for nothing that
	 * there is; -EPERM: as of ASK_MAPS.
	 */
	ASK_TRACE,
	/*
	 * No more of those of the client that has, or had, the program of that number: struct
	 * ask_traced; -ENOENT: there were none. What the ring has can be read yet. The end of the
	 * connection, or of the client, is the same.
	 */
	ASK_UNTRACE,
	/*
	 * A challenge: the answer has struct ask_challenge, by which the asker makes a socket that
	 * proves its network namespace and its capabilities (os/ask.h). number is 1 if a port
	 * is asked for next: a process that has the interface alone starts a broker for that.
	 */
	ASK_PROVE,
	/*
	 * The socket of the last challenge has this port, in number: 0, or -ENONET, it is not in
	 * the network namespace of the interface. -EINVAL: there is no challenge, which can be
	 * answered once; -EALREADY: the asker has a port. All questions but ASK_PROVE, ASK_PROOF,
	 * ASK_PKEYS and those of the first process are answered by -ENONET before.
	 */
	ASK_PROOF,
};
#define ASK_WHAT_MAX ASK_PROOF
/* ns; longer than the broker is ever busy: it renews it several times a second */
#define ASK_LEASE 20000000000ull

#define ASK_MAPS_OF(client, first) ((client) | (first) << 16)
#define ASK_MAPS_CLIENT(number)	   ((number)&0xffff)
#define ASK_MAPS_FIRST(number)	   ((number) >> 16)
/*
 * A process that has the interface alone, and cannot start a broker, answers ASK_HELLO by -EBUSY.
 *
 * A limit: -EDQUOT, the user has all that it may have; -ENOSPC, there is no more. Without a port,
 * ASK_DRAW, ASK_CLAIM, ASK_RING, ASK_BIND and ASK_ATTACH are answered by -ENOTCONN. Several asks
 * may be under way; answers come in their order. An answer with descriptors comes when no other
 * connection of the user has one unread; what is asked after it is heard once it is read. One that
 * is unread for five seconds ends its connection.
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
	ASK_FD_DROP,   /* xroce_drop: what its program has dropped, to be read */
	ASK_FD_QP_STAT,
	ASK_FD_CQ_STAT,
	ASK_FD_SRQ_STAT,
	ASK_FD_MR_STAT,
	ASK_FD_TELL, /* the program that shows what it sends to those who look */
	ASK_FDS
};

/* The descriptors of ASK_JOIN. */
enum ask_join_fd {
	ASK_JOIN_TAP,	  /* a device with IFF_VNET_HDR, for frames to other processes */
	ASK_JOIN_HAIRPIN, /* the device by which their frames come */
	ASK_JOIN_CLIENTS, /* xroce_client, which the kernel empties with the last descriptor */
	ASK_JOIN_MUX,	  /* the broker's program */
	ASK_JOIN_FDS
};

/* The descriptors of ASK_TRACE. */
enum ask_trace_fd {
	ASK_TRACE_RING, /* of struct xroce_record */
	ASK_TRACE_PAGE, /* struct xroce_trace, the element 0 of a map that can be looked up */
	ASK_TRACE_FDS
};

enum { ASK_IPV4 = 1, ASK_IPV6 = 2 };

/* A service of the connection manager. */
struct ask_service {
	u64 id;
	u8 address[16];	/* a GID, whose family is the one in families; 0: any of the families */
	u32 families;
	u32 pad;
};

/* What is wanted of a client's packets: as in struct xroce_tracer. */
struct ask_trace {
	u8 peer[16];
	u32 qpn, bytes;
	u32 ring_bytes; /* the ring is of so many at most, a user's of fewer */
	u8 what;
	u8 has_peer;
	u16 pad;
};

struct ask {
	u32 version;
	u32 what; /* enum ask_what */
	u32 number;
	u32 pad;
	union { /* else 0 */
		struct ask_service service; /* of ASK_BIND to ASK_DETACH */
		struct ask_trace trace;	    /* of ASK_TRACE */
	};
};

struct ask_port {
	u32 client;	/* its number with this broker */
	u32 ifindex;
	u32 prog_id;	/* of its own program */
	u32 ring_bytes; /* of ASK_FD_RX */
	u32 native;
	u32 privileged;	/* it may send from QP 1 and by privileged Q_Keys as it likes */
	struct pkey_table pkeys;
};

struct ask_client {
	u32 client;
	u32 pid, uid;
	u32 qps;
	u32 prog_id;
	u32 tap;	/* ifindex, of that for all frames */
	u32 sockets;	/* receives by AF_XDP sockets: the process that was there first */
	u32 services;	/* that it is bound to */
	char command[16];
	u64 frames, hairpin, bytes, refused; /* of struct xroce_tap, both devices' */
	u64 memory; /* bytes of the kernel's that count for its user: its port and rings */
};

struct ask_traced {
	struct ask_client client; /* of ASK_TRACE */
	u32 place;		  /* in struct xroce_trace */
	u32 pad;
	u64 lost; /* what this place's counter says, at the beginning and at the end */
};

struct ask_challenge {
	u32 nonce;
	u32 first_port; /* the lowest one that takes no capability */
};

struct ask_answer {
	u32 version;
	u32 what;     /* as asked */
	s32 err;      /* 0 or -errno; the rest then has no meaning but after ASK_LIST */
	u32 num_fds;
	union {
		struct ask_port port;
		struct ask_client client;
		struct ask_traced traced;
		struct pkey_table pkeys;
		struct ask_challenge challenge;
		u32 number;
		u8 room[112];
	};
};
_Static_assert(sizeof(struct ask) == 48 && sizeof(struct ask_answer) == 128, "fixed sizes");

/*
 * How a process proves to a broker its network namespace and its capabilities. A user ID proves
 * neither: root of a container may have no capability, and a process's capabilities as /proc shows
 * them are those of whatever it executes at that moment. So the kernel checks them: the broker
 * draws a nonce for the connection, and the process makes a UDP socket that only it could make for
 * that nonce. The broker has the kernel describe the socket (sock_diag(7)). No descriptor is sent.
 *
 *   bound to PROOF_ADDRESS, any port   the socket is in the broker's network namespace
 *   a port below the first free one    CAP_NET_BIND_SERVICE
 *   SO_MARK is the nonce               CAP_NET_RAW or CAP_NET_ADMIN
 *   SO_RCVBUFFORCE to PROOF_FORCED     CAP_NET_ADMIN, if net.core.rmem_max is less
 *
 * All of them are capabilities over the user namespace that owns the network namespace.
 */

/* An IPv4 address in host order, of 127.64.0.0/10; packets to it stay on the host. */
#define PROOF_ADDRESS(nonce) (127u << 24 | 1u << 22 | ((nonce) & 0x3fffff))
/* What is set as the size of the receive buffer with CAP_NET_ADMIN, and without; bytes. */
#define PROOF_FORCED_MIN     (1 << 29)
#define PROOF_FORCED(nonce)  (PROOF_FORCED_MIN + (int)((nonce) & 0xfffffff))
#define PROOF_RCVBUF(nonce)  (8192 + (int)((nonce) >> 17))

#endif
