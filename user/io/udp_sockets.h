/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sockets by which a port by UDP sends. Packets for a neighbour that does not answer ARP or
 * neighbour discovery wait in the kernel for seconds, and count against the socket that sent them:
 * in a shared socket they would stop the packets to all others. So each address begins with a
 * socket of its own, on trial. Once a packet of that socket has left the kernel, the address
 * shares a socket with all others that have passed, one for each family, and the trial's socket is
 * closed. An address on trial waits for room at most once, for TRIAL_WAIT_NS; later its packets are
 * lost while its socket is full.
 *
 * An address that has passed may fall silent. When a shared socket has had no room for some time,
 * it is replaced, and all addresses are on trial again. The kernel bounds the packets that wait for
 * each neighbour (unres_qlen_bytes), and frees a closed socket when it has given the neighbour up.
 *
 * Under the shard's lock.
 */
#ifndef IO_UDP_SOCKETS_H
#define IO_UDP_SOCKETS_H

#include "../engine/types.h"

#define UDP_TRIALS 16u

struct udp_peer; /* udp_sockets.c */

struct udp_socket {
	int fd;		/* -1: none; the kernel may have no sockets of the family */
	u16 port;	/* source port, host order */
	bool is_ipv6;
	/* of a trial */
	struct udp_peer *peer; /* NULL: none, or a shared socket */
	u64 since_ns;	/* its first packet; 0: none was sent */
	int held;	/* bytes that the kernel held after the last call */
};

struct udp_sockets {
	struct udp_socket shared[2]; /* IPv4, IPv6 */
	struct udp_socket trial[UDP_TRIALS];
	struct udp_peer *peers;
	u32 ifindex;
	u32 evicted;	/* peers that made room for others */
	u64 seed;
	bool has_last;
	struct gid last; /* the last peer that was found to have passed */
	u64 full_ns;	/* since when a shared socket has no room, and sent nothing; 0: it has */
	u64 stuck_ns;	/* how long that may last */
};

/* Returns 0 or -errno, with nothing open. */
int udp_sockets_open(struct udp_sockets *s, u32 ifindex);
void udp_sockets_close(struct udp_sockets *s);
/* Returns the socket for packets to this address, until the next call that is given s. */
struct udp_socket *udp_sockets_for(struct udp_sockets *s, const struct gid *to);
/* Notes that a call sent packets by the socket. */
void udp_sockets_sent(struct udp_sockets *s, struct udp_socket *socket);

/* What to do with packets for a socket that has no room. */
enum udp_full {
	UDP_FULL_WAIT,	/* keep them */
	UDP_FULL_AGAIN, /* call udp_sockets_for(): there is another socket */
	UDP_FULL_LOSE,
};
/* has_sent: the same flush sent packets before. */
enum udp_full udp_sockets_full(struct udp_sockets *s, struct udp_socket *socket, bool has_sent);
/* Notes that all packets were sent. */
static inline void udp_sockets_empty(struct udp_sockets *s)
{
	s->full_ns = s->stuck_ns = 0;
}

#endif
