/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The peers of a datagram socket, and the local addresses that it sends from. */
#include "rsocket_dgram.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../verbs/xroce_cm.h"

bool dgram_address_equal(const union dgram_address *a, const union dgram_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_port == b->v4.sin_port &&
		       a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return a->v6.sin6_port == b->v6.sin6_port &&
	       !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, 16);
}

int dgram_address_set(union dgram_address *to, const struct sockaddr *from, socklen_t bytes)
{
	int err = sockaddr_check(from, bytes);

	memset(to, 0, sizeof(*to));
	if (!err)
		memcpy(to, from, sockaddr_bytes(from));
	return err;
}

void dgram_address_tell(const union dgram_address *from, struct wire_address *to)
{
	memset(to, 0, sizeof(*to));
	if (from->any.sa_family == AF_INET) {
		to->version = 4;
		to->port = be16toh(from->v4.sin_port);
		memcpy(to->bytes, &from->v4.sin_addr, 4);
	} else {
		to->version = 6;
		to->port = be16toh(from->v6.sin6_port);
		to->flowinfo = be32toh(from->v6.sin6_flowinfo);
		memcpy(to->bytes, &from->v6.sin6_addr, 16);
	}
}

void dgram_address_take(union dgram_address *to, const struct wire_address *from)
{
	memset(to, 0, sizeof(*to));
	if (from->version == 4) {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htobe16(from->port);
		memcpy(&to->v4.sin_addr, from->bytes, 4);
	} else {
		to->v6.sin6_family = AF_INET6;
		to->v6.sin6_port = htobe16(from->port);
		to->v6.sin6_flowinfo = htobe32(from->flowinfo);
		memcpy(&to->v6.sin6_addr, from->bytes, 16);
	}
}

/* ---- paths ---- */

static union ibv_gid path_gid(const union dgram_address *address)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (address->any.sa_family == AF_INET)
		memcpy(gid.raw + 12, &address->v4.sin_addr, 4);
	else
		memcpy(gid.raw, &address->v6.sin6_addr, 16);
	return gid;
}

/* Finds the RoCEv2 GID of the path's address. Returns 0 or -errno. */
static int path_find_gid(struct dgram_path *path)
{
	union ibv_gid own = path_gid(&path->address);
	struct ibv_port_attr attr;
	struct ibv_gid_entry entry;
	int i;

	if (ibv_query_port(path->id->verbs, path->id->port_num, &attr))
		return -EIO;
	path->most_bytes = min_u32(128u << attr.active_mtu, WIRE_DGRAM_BYTES);
	for (i = 0; i < attr.gid_tbl_len && i <= UINT8_MAX; i++) {
		if (ibv_query_gid_ex(path->id->verbs, path->id->port_num, (u32)i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    memcmp(&entry.gid, &own, sizeof(own)))
			continue;
		path->gid_index = (u8)i;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

int dgram_post_receive(struct dgram_path *path, u32 slot)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)path->receive + (size_t)slot * DGRAM_SLOT_BYTES,
		.length = sizeof(struct ibv_grh) + WIRE_DGRAM_BYTES,
		.lkey = path->receive_mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = 1ull << 32 | slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return -ibv_post_recv(path->id->qp, &wr, &bad);
}

static void path_free(struct dgram *d, struct dgram_path *path)
{
	if (path->id && path->id->qp)
		rdma_destroy_qp(path->id);
	if (path->receive_mr)
		ibv_dereg_mr(path->receive_mr);
	if (path->send_mr)
		ibv_dereg_mr(path->send_mr);
	if (path->cq)
		ibv_destroy_cq(path->cq);
	if (path->channel) {
		epoll_ctl(d->epoll, EPOLL_CTL_DEL, path->channel->fd, NULL);
		ibv_destroy_comp_channel(path->channel);
	}
	if (path->id)
		rdma_destroy_id(path->id);
	pages_put(path->receive, path->receive_bytes);
	free(path);
}

static int path_make_qp(struct dgram *d, struct dgram_path *path)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = path };
	struct ibv_qp_init_attr attr;
	struct ibv_context *verbs = path->id->verbs;

	path->channel = ibv_create_comp_channel(verbs);
	if (!path->channel)
		return -errno;
	if (fcntl(path->channel->fd, F_SETFL, fcntl(path->channel->fd, F_GETFL) | O_NONBLOCK) ||
	    epoll_ctl(d->epoll, EPOLL_CTL_ADD, path->channel->fd, &event))
		return -errno;
	path->cq = ibv_create_cq(verbs, (int)(d->rs.requests + d->rs.receives), path,
				 path->channel, 0);
	if (!path->cq)
		return -errno;
	attr = (struct ibv_qp_init_attr){
		.send_cq = path->cq,
		.recv_cq = path->cq,
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = d->rs.requests,
			.max_recv_wr = d->rs.receives,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = d->rs.inlined,
		},
	};
	if (rdma_create_qp(path->id, NULL, &attr)) {
		attr.cap.max_inline_data = 0;
		if (rdma_create_qp(path->id, NULL, &attr))
			return -errno;
	}
	path->inlined = attr.cap.max_inline_data;
	return 0;
}

static int path_make_buffers(struct dgram *d, struct dgram_path *path)
{
	u32 i;
	int err;

	path->receive_bytes = (size_t)d->rs.receives * DGRAM_SLOT_BYTES;
	path->receive = pages_get(path->receive_bytes);
	if (!path->receive)
		return -ENOMEM;
	path->receive_mr = ibv_reg_mr(path->id->pd, path->receive, path->receive_bytes,
				      IBV_ACCESS_LOCAL_WRITE);
	path->send_mr = ibv_reg_mr(path->id->pd, d->send, d->send_bytes, IBV_ACCESS_LOCAL_WRITE);
	if (!path->receive_mr || !path->send_mr)
		return -errno;
	for (i = 0; i < d->rs.receives; i++) {
		err = dgram_post_receive(path, i);
		if (err)
			return err;
	}
	return 0;
}

/* Binds to any port of rdma_cm: the protocol does not use it. */
static int path_bind(struct dgram_path *path)
{
	union dgram_address address = path->address;

	if (rdma_create_id(NULL, &path->id, path, RDMA_PS_UDP))
		return -errno;
	address.v4.sin_port = 0;
	_Static_assert(offsetof(struct sockaddr_in, sin_port) ==
			       offsetof(struct sockaddr_in6, sin6_port), "the same");
	if (rdma_bind_addr(path->id, &address.any))
		return -errno;
	return path->id->verbs ? 0 : -ENODEV;
}

static int path_make(struct dgram *d, const union dgram_address *address, struct dgram_path **made)
{
	struct dgram_path *path = calloc(1, sizeof(*path));
	int err;

	if (!path)
		return -ENOMEM;
	path->address = *address;
	err = path_bind(path);
	if (!err)
		err = path_find_gid(path);
	if (!err)
		err = path_make_qp(d, path);
	if (!err)
		err = path_make_buffers(d, path);
	if (err) {
		path_free(d, path);
		return err;
	}
	path->next = d->paths;
	d->paths = path;
	*made = path;
	/* Threads sleeping for the socket must arm this queue too. */
	waiters_wake(&d->rs);
	return 0;
}

static bool address_is_any(const union dgram_address *a)
{
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == htobe32(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

/* Finds the source address for a destination: the bound address, else the kernel's choice. */
static int path_source(struct dgram *d, const union dgram_address *to, union dgram_address *from)
{
	socklen_t bytes = sizeof(*from);
	in_port_t port;
	int fd, err = 0;

	memset(from, 0, sizeof(*from));
	if (getsockname(d->rs.fd, &from->any, &bytes))
		return -errno;
	if (!from->v4.sin_port) {
		/* The header of its datagrams contains the port: it must have one. */
		from->any.sa_family = (sa_family_t)d->rs.domain;
		if (bind(d->rs.fd, &from->any, sockaddr_bytes(&from->any)) ||
		    getsockname(d->rs.fd, &from->any, &bytes))
			return -errno;
	}
	if (from->any.sa_family == to->any.sa_family && !address_is_any(from))
		return 0;
	port = from->v4.sin_port;
	fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	memset(from, 0, sizeof(*from));
	bytes = sizeof(*from);
	if (connect(fd, &to->any, sockaddr_bytes(&to->any)) ||
	    getsockname(fd, &from->any, &bytes))
		err = -errno;
	close(fd);
	from->v4.sin_port = port;
	return err;
}

static int path_get(struct dgram *d, const union dgram_address *to, struct dgram_path **path)
{
	union dgram_address from;
	int err = path_source(d, to, &from);

	if (err)
		return err;
	for (*path = d->paths; *path; *path = (*path)->next)
		if (dgram_address_equal(&(*path)->address, &from))
			return 0;
	return path_make(d, &from, path);
}

/* ---- peers ---- */

static u32 peer_bucket(const union dgram_address *a)
{
	const u8 *bytes = a->any.sa_family == AF_INET ? (const u8 *)&a->v4.sin_addr :
							 (const u8 *)&a->v6.sin6_addr + 12;
	u32 hash = a->v4.sin_port, i;

	for (i = 0; i < 4; i++)
		hash = hash * 31 + bytes[i];
	return (hash ^ hash >> 8) % DGRAM_BUCKETS;
}

static struct dgram_peer *peer_find(struct dgram *d, const union dgram_address *a)
{
	struct dgram_peer *peer = d->peers[peer_bucket(a)];

	while (peer && !dgram_address_equal(&peer->address, a))
		peer = peer->next;
	return peer;
}

static void peer_free(struct dgram *d, struct dgram_peer **place)
{
	struct dgram_peer *peer = *place;

	*place = peer->next;
	if (peer->ah)
		ibv_destroy_ah(peer->ah);
	free(peer);
	d->peer_count--;
}

/* The number of peers is limited: anyone can send datagrams, from any port. */
static void peer_forget_oldest(struct dgram *d)
{
	struct dgram_peer **oldest = NULL, **place;
	u32 i;

	for (i = 0; i < DGRAM_BUCKETS; i++)
		for (place = &d->peers[i]; *place; place = &(*place)->next)
			if (!oldest || (*place)->used < (*oldest)->used)
				oldest = place;
	peer_free(d, oldest);
}

int dgram_peer_get(struct dgram *d, const union dgram_address *address, struct dgram_peer **found)
{
	struct dgram_peer *peer = peer_find(d, address), **bucket;
	struct dgram_path *path;
	int err;

	if (!peer) {
		err = path_get(d, address, &path);
		if (err)
			return err;
		if (d->peer_count >= DGRAM_MOST_PEERS)
			peer_forget_oldest(d);
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return -ENOMEM;
		peer->address = *address;
		peer->path = path;
		bucket = &d->peers[peer_bucket(address)];
		peer->next = *bucket;
		*bucket = peer;
		d->peer_count++;
	}
	peer->used = ++d->uses;
	*found = peer;
	return 0;
}

void dgram_peer_heard(struct dgram *d, const union dgram_address *address)
{
	struct dgram_peer *peer = peer_find(d, address);

	if (peer)
		peer->heard = true;
}

bool dgram_peer_is_silent(struct dgram_peer *peer)
{
	const s64 now = rsocket_now();
	const bool is_silent = !peer->heard && now - peer->told_at >= (s64)NSEC_PER_SEC;

	if (peer->heard || is_silent)
		peer->told_at = now;
	peer->heard = false;
	return is_silent;
}

void dgram_peer_learn(struct dgram *d, const union dgram_address *address, u32 qpn)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.grh = { .dgid = path_gid(address), .hop_limit = 64 },
	};
	struct ibv_ah *ah, *old = NULL;
	struct dgram_peer *peer;
	struct ibv_pd *pd;
	u8 mac[6];

	pthread_mutex_lock(&d->rs.lock);
	dgram_peer_heard(d, address);
	if (dgram_peer_get(d, address, &peer) || (peer->ah && peer->qpn == qpn)) {
		rsocket_unlock(&d->rs);
		return;
	}
	attr.grh.sgid_index = peer->path->gid_index;
	attr.port_num = peer->path->id->port_num;
	pd = peer->path->id->pd;
	rsocket_unlock(&d->rs);
	/*
	 * Does not wait for a neighbour, which would delay other peers' datagrams. Until the handle
	 * exists, datagrams go by UDP, and each received one tries again. Paths exist as long as
	 * the socket.
	 */
	ah = xroce_cm_create_ah(pd, &attr, true, mac);
	if (!ah)
		return;
	pthread_mutex_lock(&d->rs.lock);
	peer = peer_find(d, address);
	if (peer && peer->path->id->pd == pd) {
		old = peer->ah;
		peer->ah = ah;
		peer->qpn = qpn;
		peer->heard = true;
	} else {
		old = ah;
	}
	rsocket_unlock(&d->rs);
	if (old)
		ibv_destroy_ah(old);
}

void dgram_peers_free(struct dgram *d)
{
	struct dgram_path *path;
	u32 i;

	for (i = 0; i < DGRAM_BUCKETS; i++)
		while (d->peers[i])
			peer_free(d, &d->peers[i]);
	while ((path = d->paths)) {
		d->paths = path->next;
		path_free(d, path);
	}
}
