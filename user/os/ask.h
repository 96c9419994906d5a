/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages between a process and the broker of an interface, over a Unix socket (SOCK_SEQPACKET):
 * one question and one answer, each of a fixed size. The connection is the client: when it ends,
 * for any reason, the broker takes back everything it gave to the client.
 *
 * Both sides treat received messages as hostile: length, version, numbers, and number of
 * descriptors.
 */
#ifndef OS_ASK_H
#define OS_ASK_H

#include <sys/socket.h>

#include "../engine/pkey.h"
#include "../engine/types.h"

#define ASK_VERSION 21u
/* %llu: inode of the network namespace; %u: index of the interface in it */
#define ASK_PATH    "/run/xroce/%llu-%u.sock"
/*
 * of a broker that may not write to ASK_DIR: an abstract address (unix(7)), which belongs to the
 * network namespace. %u: the index, the broker's user
 */
#define ASK_ABSTRACT "xroce/%u/user/%u"
#define ASK_PARENT  "/run"
#define ASK_DIR	    ASK_PARENT "/xroce"

enum ask_what {
	/*
	 * A port: the answer has struct ask_port and ASK_FDS descriptors. number has the bits of
	 * enum ask_hello. -EBUSY: a process has the interface that keeps others out, or the asker
	 * cannot be alone
	 */
	ASK_HELLO = 1,
	/* an unused QPN, returned in number, for this client */
	ASK_DRAW,
	/*
	 * A QPN of the client's choice, in number: -EPERM for unprivileged clients, -EEXIST if it
	 * is another client's. Any client may have its own QP 1, which gets its MADs
	 */
	ASK_CLAIM,
	ASK_RELEASE, /* number is a QPN of this client: 0 or -ENOENT */
	/*
	 * A ring buffer for wake-up records, the client's until it ends: one descriptor. number is
	 * its key in xroce_channel, where the broker has put it
	 */
	ASK_RING,
	/*
	 * The first client with at least this number that the user may see: struct ask_client.
	 * -ENOENT: there is none; then number is 0 with CAP_NET_ADMIN, and 1 if clients of other
	 * users would not be listed (the answer does not tell whether there are any).
	 */
	ASK_LIST,
	ASK_STOP, /* ends the broker; -EPERM except for CAP_NET_ADMIN and the broker's own user */
	/*
	 * Directs requests for service to this client's QP 1. -EADDRINUSE: it overlaps another
	 * client's (the same id, and the same address or, on either side, any address of its
	 * family); -EEXIST: this client has it; -EACCES: a privileged port; -EINVAL: not a service
	 */
	ASK_BIND,
	ASK_UNBIND, /* service is one of this client: 0 or -ENOENT */
	/*
	 * Directs packets to a multicast group to this client as well: service.address, with the
	 * other fields 0. -EEXIST: they are already; -EINVAL: not such an address; -ENOSPC also if
	 * XROCE_GROUP_CLIENTS clients have members
	 */
	ASK_ATTACH,
	ASK_DETACH, /* reverts ASK_ATTACH: 0 or -ENOENT */
	/*
	 * Ends the client. Without an answer: the connection hangs up once everything is taken
	 * back. A broker that served it alone ends before that.
	 */
	ASK_LEAVE,
	ASK_KIND, /* struct ask_kind, of every port; needs no port */
	/*
	 * Maps of a client that ASK_LIST returns, for observers: number is ASK_MAPS_OF(the client's
	 * number; first map). The answer has its struct ask_client and read-only descriptors of its
	 * further maps (os/xdp_maps.h), at most ASK_FDS; none at the end. -EPERM: the broker
	 * could not open them read-only (user/broker/readonly_maps.h).
	 */
	ASK_MAPS,
	/*
	 * Starts tracing packets and events of client `number`, as trace selects. The answer has
	 * struct ask_traced and ASK_TRACE_FDS descriptors. -EALREADY: this connection traces them;
	 * -EBUSY: the client has the most observers possible; -EINVAL: selects nothing that exists;
	 * -EPERM: as for ASK_MAPS.
	 */
	ASK_TRACE,
	/*
	 * Stops tracing the client that has, or had, the program of this number: struct ask_traced;
	 * -ENOENT: it was not traced by this connection. Either way the client's reports until now
	 * have been passed to all observers. The ring's content stays readable. The end of the
	 * connection or of the client has the same effect.
	 */
	ASK_UNTRACE,
	/*
	 * A challenge: the answer has struct ask_challenge, for a socket that proves the asker's
	 * network namespace and capabilities (see the end of this file).
	 */
	ASK_PROVE,
	/*
	 * number is the port of the socket for the last challenge: 0, or -ENONET if it is not in
	 * the interface's network namespace. -EINVAL: no challenge, which can be answered once;
	 * -EALREADY: the asker has a port. Before a proof, all questions except ASK_PROVE,
	 * ASK_PROOF and ASK_KIND return -ENONET.
	 */
	ASK_PROOF,
	/*
	 * For a port with sockets, after each addition to its ASK_FD_OTHERS: the descriptor of a
	 * TAP device (IFF_VNET_HDR) for frames to other processes on the interface, in place of an
	 * earlier one. -ENOENT: there are no others; -EPERM: no such port.
	 */
	ASK_OTHERS,
	/*
	 * 0: datagrams that a broker with UDP sockets received before this question are in their
	 * clients' rings now; of each address, at least the first ASK_ARRIVED_LEAST.
	 */
	ASK_ARRIVED,
};
#define ASK_WHAT_MAX	  ASK_ARRIVED
#define ASK_ARRIVED_LEAST 4096u

enum ask_hello {
	/* the port may have AF_XDP sockets (port.sockets); then with ASK_SOCKETS_FDS descriptors */
	ASK_CAN_USE_SOCKETS = 1,
	ASK_TO_BE_ALONE = 2, /* a port with sockets, and no other process may have one; or -EBUSY */
	/* ASK_FD_TRACE is a socket for reports (struct xroce_trace_record), without answers */
	ASK_REPORTS_BY_SOCKET = 4,
	ASK_HELLO_ALL = 7
};
/* ns, longer than the broker is ever busy: it renews it several times a second */
#define ASK_LEASE 20000000000ull

#define ASK_MAPS_OF(client, first) ((client) | (first) << 16)
#define ASK_MAPS_CLIENT(number)	   ((number)&0xffff)
#define ASK_MAPS_FIRST(number)	   ((number) >> 16)
/*
 * A limit is -EDQUOT, the user has all it may have, or -ENOSPC, there is no more. Without a port,
 * ASK_DRAW, ASK_CLAIM, ASK_RING, ASK_BIND, ASK_ATTACH and ASK_ARRIVED return -ENOTCONN. Several
 * questions may be in flight; answers keep their order. An answer with descriptors, except that of
 * ASK_OTHERS, is sent when no other connection of the user has one unread; later questions wait
 * until it is read. If it stays unread for five seconds, its connection is shut down. While an
 * answer is unread after the end of its connection, and the client's socket open, questions of the
 * user for descriptors return -EDQUOT; with many of these answers, questions of all users return
 * -ENOSPC.
 *
 * -EINPROGRESS is no answer: the question waits while the broker works for others, and this comes
 * every few seconds until the answer.
 */

/* Descriptors of ASK_HELLO, in this order: the client's maps, rings and TAP devices. */
enum ask_fd {
	ASK_FD_QP,
	ASK_FD_CQ,
	ASK_FD_EXPECT,
	ASK_FD_ENGINE,
	ASK_FD_VECTOR,
	ASK_FD_SOCK,
	ASK_FD_STATS,
	ASK_FD_DROPS,
	ASK_FD_RX,   /* xroce_ring: received packets */
	ASK_FD_WAKE, /* of the worker: already in slot 0 of xroce_channel */
	ASK_FD_TAP,
	ASK_FD_SINGLE, /* the TAP device for single frames; the other one has IFF_VNET_HDR */
	ASK_FD_QP_STAT,
	ASK_FD_CQ_STAT,
	ASK_FD_SRQ_STAT,
	ASK_FD_MR_STAT,
	ASK_FD_TRACE, /* the program that shows sent packets to observers, or a socket */
	ASK_FDS,
	/* of a port by UDP, in place of two others: sockets that wake the rings' readers */
	ASK_FD_RX_EVENT = ASK_FD_TAP,
	ASK_FD_WAKE_EVENT = ASK_FD_SINGLE,
	/* of a port with sockets, in place of two others: */
	ASK_FD_XSK = ASK_FD_TAP,       /* xroce_xsk, for the process's own AF_XDP sockets */
	ASK_FD_OTHERS = ASK_FD_SINGLE, /* eventfd(2): other processes come or go (ASK_OTHERS) */
	/* also: maps that the process changes by bpf(2) */
	ASK_FD_GROUP = ASK_FDS,
	ASK_FD_FLOW,
	ASK_FD_FLOWS,
	ASK_FD_FLOW_COUNT,
	ASK_FD_COPIES,
	ASK_FD_COPYING,
	ASK_SOCKETS_FDS
};

/* Descriptors of ASK_TRACE. */
enum ask_trace_fd {
	ASK_TRACE_RING, /* of struct xroce_record */
	ASK_TRACE_PAGE, /* struct xroce_trace, element 0 of a map that can be looked up */
	ASK_TRACE_FDS
};

enum { ASK_IPV4 = 1, ASK_IPV6 = 2 };

/* A service of the connection manager. */
struct ask_service {
	u64 id;
	u8 address[16];	/* a GID of the family in families; 0: any address of families */
	u32 families;
	u32 pad;
};

/* Selects a client's packets, as struct xroce_tracer does. */
struct ask_trace {
	u8 peer[16];
	u32 qpn, bytes;
	u32 ring_bytes; /* largest ring; an unprivileged user's is smaller */
	u8 what;
	u8 has_peer;
	u16 pad;
};

struct ask {
	u32 version;
	u32 what; /* enum ask_what */
	u32 number;
	u32 pad;
	union { /* 0 for all others */
		struct ask_service service; /* of ASK_BIND to ASK_DETACH */
		struct ask_trace trace;	    /* of ASK_TRACE */
	};
};

/* Set in the prog_id of a client at a broker with UDP sockets: there is no program of that ID. */
#define ASK_NO_PROGRAM (1u << 31)

struct ask_port {
	u32 client;	/* its number at this broker */
	u32 ifindex;
	u32 prog_id;	/* of its program */
	u32 ring_bytes; /* of ASK_FD_RX */
	u32 native;
	u32 privileged;	/* may send from QP 1 and use privileged Q_Keys without limits */
	u32 sockets;	/* receives by AF_XDP sockets, which the process makes */
	/*
	 * 0; or the broker receives by UDP sockets, which hold this many frames with the largest
	 * payload, and the process sends by its own
	 */
	u32 udp;
	struct pkey_table pkeys;
};

struct ask_kind {
	struct pkey_table pkeys;
	u32 udp; /* 1: the broker receives by UDP sockets */
	u32 sole; /* 1: a process that asked now with ASK_CAN_USE_SOCKETS would get port.sockets */
};

struct ask_client {
	u32 client;
	u32 pid, uid;
	u32 qps;
	u32 prog_id;
	u32 tap;	/* ifindex of the device for all frames */
	u32 sockets;	/* receives by AF_XDP sockets: the first process */
	u32 services;	/* number of services it is bound to */
	char command[16];
	u64 frames, hairpin, bytes, refused; /* of struct xroce_tap, sum of both devices */
	u64 memory; /* bytes of kernel memory charged to its user, for its port and rings */
};

struct ask_traced {
	struct ask_client client; /* of ASK_TRACE */
	u32 place;		  /* in struct xroce_trace */
	u32 pad;
	u64 lost; /* counter of this place, at the start or the end */
};

struct ask_challenge {
	u32 nonce;
	u32 first_port; /* the lowest port that needs no capability */
};

struct ask_answer {
	u32 version;
	u32 what;     /* as asked */
	s32 err;      /* 0 or -errno; the rest is then undefined, except for ASK_LIST */
	u32 num_fds;
	union {
		struct ask_port port;
		struct ask_client client;
		struct ask_traced traced;
		struct ask_kind kind;
		struct ask_challenge challenge;
		u32 number;
		u8 room[112];
	};
};
_Static_assert(sizeof(struct ask) == 48 && sizeof(struct ask_answer) == 128, "fixed sizes");

/*
 * Proof of a process's network namespace and capabilities to a broker. A user ID proves neither:
 * root of a container may have no capability, and /proc shows the capabilities of whatever program
 * the process executes at that moment. So the kernel checks them. The broker draws a nonce for the
 * connection, and the process makes a UDP socket that only it could make for that nonce. The kernel
 * describes the socket to the broker (sock_diag(7)). No descriptor is sent.
 *
 *   bound to PROOF_ADDRESS, any port   the socket is in the broker's network namespace
 *   a port below the first free one    CAP_NET_BIND_SERVICE
 *   SO_MARK is the nonce               CAP_NET_RAW or CAP_NET_ADMIN
 *   SO_RCVBUFFORCE to PROOF_FORCED     CAP_NET_ADMIN, if net.core.rmem_max is less
 *
 * All are capabilities over the user namespace that owns the network namespace.
 */

/* An IPv4 address in host order, of 127.64.0.0/10; packets to it stay on the host. */
#define PROOF_ADDRESS(nonce) (127u << 24 | 1u << 22 | ((nonce) & 0x3fffff))
/* Receive buffer sizes to set with CAP_NET_ADMIN, and without; bytes. */
#define PROOF_FORCED_MIN     (1 << 29)
#define PROOF_FORCED(nonce)  (PROOF_FORCED_MIN + (int)((nonce) & 0xfffffff))
#define PROOF_RCVBUF(nonce)  (8192 + (int)((nonce) >> 17))

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* from 6.16 on; missing in older headers */
#endif

/*
 * Refuses descriptors in messages to the socket, as closing one may block (a TCP socket that
 * lingers). Accepted connections inherit that. Without effect before Linux 6.16.
 */
static inline void ask_refuse_descriptors(int fd)
{
	const int off = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

#endif
