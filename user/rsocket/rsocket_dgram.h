/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A datagram rsocket: a UDP socket, and a UD queue pair for each local address in use.
 *
 * The UDP socket owns the port, and carries datagrams to peers with unknown QPN; one thread of the
 * process reads all these sockets (rsocket_dgram.c). A side that has learned the other's QPN
 * sends by UD from then on. While nothing comes from the other side, one datagram a second goes by
 * UDP again: a process that restarted at the same port has another QPN.
 */
#ifndef RSOCKET_DGRAM_H
#define RSOCKET_DGRAM_H

#include <netinet/in.h>

#include "rsocket_object.h"
#include "rsocket_protocol.h"

enum { DGRAM_BUCKETS = 64, DGRAM_MOST_PEERS = 1024 };

union dgram_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* A local address with its queue pair. */
struct dgram_path {
	struct dgram_path *next;
	union dgram_address address;
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *send_mr, *receive_mr;
	u8 *receive;
	size_t receive_bytes;
	u32 inlined;
	u32 most_bytes; /* limit of a datagram with its header */
	u8 gid_index;
	bool armed;
};

struct dgram_peer {
	struct dgram_peer *next; /* in its bucket */
	union dgram_address address;
	struct dgram_path *path;
	struct ibv_ah *ah; /* NULL: reachable only by UDP */
	u32 qpn;
	bool heard;  /* a datagram came since the last one was sent */
	s64 told_at; /* ns: the last send after an arrival, or by UDP */
	u64 used; /* uses of the socket at the last use */
};

/* A received datagram. */
struct dgram_message {
	/* its buffer is `slot` of this path; NULL: received by UDP, in `copy` */
	struct dgram_path *path;
	u32 slot;
	u8 *copy;
	const u8 *data;
	u32 bytes;
	union dgram_address from;
};

struct dgram {
	struct rsocket rs;

	/* under rs.lock */
	bool started, connected, shut_read, shut_write;
	union dgram_address peer; /* connected */
	struct dgram_path *paths;
	struct dgram_peer *peers[DGRAM_BUCKETS];
	u32 peer_count;
	u64 uses;
	int epoll; /* set of the completion channels */

	u8 *send; /* one buffer per send request */
	size_t send_bytes;
	u32 *free; /* indices of the free buffers */
	u32 free_count;

	struct dgram_message *messages; /* ring of `receives` entries */
	u32 first, count;
};

static inline struct dgram *dgram_of(struct rsocket *rs)
{
	return container_of(rs, struct dgram, rs);
}

/* ---- rsocket_dgram.c; under the lock unless noted ---- */

struct dgram *dgram_alloc(int domain);
/* Creates all but queue pairs, and starts reading the UDP socket. Returns 0 or -errno. */
int dgram_start(struct dgram *d);
bool dgram_progress(struct dgram *d);
int dgram_arm(struct dgram *d);
void dgram_disarm(struct dgram *d);
short dgram_events(struct dgram *d, short wanted);
/* Not under the lock. */
void dgram_close(struct dgram *d);
void dgram_destroy(struct dgram *d);
int dgram_connect(struct dgram *d, const struct sockaddr *address, socklen_t bytes);
ssize_t dgram_send(struct dgram *d, const struct iovec *iov, int n, int flags,
		   const struct sockaddr *to, socklen_t to_bytes);
ssize_t dgram_receive(struct dgram *d, struct msghdr *msg, int flags);

/* ---- rsocket_dgram_peer.c; under the lock unless noted ---- */

bool dgram_address_equal(const union dgram_address *a, const union dgram_address *b);
int dgram_address_set(union dgram_address *to, const struct sockaddr *from, socklen_t bytes);
void dgram_address_tell(const union dgram_address *from, struct wire_address *to);
void dgram_address_take(union dgram_address *to, const struct wire_address *from);
/* Finds or creates the peer of an address, with a path to it. Returns 0 or -errno. */
int dgram_peer_get(struct dgram *d, const union dgram_address *address, struct dgram_peer **peer);
/* Records that a datagram came from this address. */
void dgram_peer_heard(struct dgram *d, const union dgram_address *address);
/* Returns whether the next datagram goes by UDP: the peer may have another QP by now. */
bool dgram_peer_is_silent(struct dgram_peer *peer);
/* Records the QPN: datagrams go by UD from now on. Not under the lock. */
void dgram_peer_learn(struct dgram *d, const union dgram_address *address, u32 qpn);
void dgram_peers_free(struct dgram *d);
int dgram_post_receive(struct dgram_path *path, u32 slot);
#define DGRAM_SLOT_BYTES 2112u /* a buffer: GRH and datagram, in whole cache lines */

#endif
