/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sending and receiving of datagram sockets, by UD and by UDP. */
#define _GNU_SOURCE
#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../os/thread.h"
#include "rsocket_dgram.h"

/* CLOSE_MS: the most that rclose() waits for datagrams that flow control holds back. */
enum { BATCH = 16, CLOSE_MS = 100 };

/* ---- arrivals ---- */

/* Returns a queue slot for a message from this address; NULL: full, or the socket rejects it. */
static struct dgram_message *dgram_place(struct dgram *d, const union dgram_address *from)
{
	struct dgram_message *m;

	if (d->count == d->rs.receives || d->shut_read)
		return NULL;
	if (d->connected && !dgram_address_equal(from, &d->peer))
		return NULL;
	m = &d->messages[(d->first + d->count++) % d->rs.receives];
	*m = (struct dgram_message){ .from = *from };
	d->rs.standin.arrived = true;
	return m;
}

/* Queues a datagram received by UDP. */
static void dgram_deliver(struct dgram *d, const union dgram_address *from, const u8 *data,
			  u32 bytes)
{
	u8 *copy = malloc(bytes + 1);
	struct dgram_message *m = copy ? dgram_place(d, from) : NULL;

	if (!m) {
		free(copy);
		return;
	}
	memcpy(copy, data, bytes);
	m->copy = copy;
	m->data = copy;
	m->bytes = bytes;
	waiters_wake(&d->rs);
}

/* ---- UDP ---- */

/*
 * Packets to the datagram sockets of the process, read by one thread: QPNs of peers, and
 * datagrams sent before a QPN is known.
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int epoll = -1;	    /* per process; a forked child creates its own */
static struct dgram *busy; /* the socket that the thread is reading; under lock */

/*
 * Returns whether the socket has room for an answer. Packets to addresses that do not answer ARP
 * stay in its send buffer for seconds, and anyone can cause these: a part of the buffer is for the
 * datagrams of the program, and a part for answers to peers whose MAC is known.
 */
static bool udp_has_room(const struct dgram *d, bool is_known)
{
	int used, all;
	socklen_t bytes = sizeof(all);

	return !ioctl(d->rs.fd, SIOCOUTQ, &used) &&
	       !getsockopt(d->rs.fd, SOL_SOCKET, SO_SNDBUF, &all, &bytes) &&
	       used < all / (is_known ? 2 : 4);
}

/* Fills in an answer: QPN and address of the path to the sender. false: no answer. */
static bool udp_path(struct dgram *d, const union dgram_address *to, struct wire_udp *answer)
{
	struct dgram_peer *peer;
	bool found;

	pthread_mutex_lock(&d->rs.lock);
	found = !d->rs.closed && !dgram_peer_get(d, to, &peer);
	if (found)
		found = udp_has_room(d, peer->ah);
	if (found) {
		answer->qpn = peer->path->id->qp->qp_num;
		dgram_address_tell(&peer->path->address, &answer->address);
	}
	rsocket_unlock(&d->rs);
	return found;
}

static void udp_one(struct dgram *d, const union dgram_address *from, const u8 *data, u32 bytes)
{
	struct wire_udp udp, answer = { .op = WIRE_CTRL };
	u32 header = wire_get_udp(&udp, data, bytes);
	u8 reply[WIRE_UDP_MAX_BYTES];

	if (!header || (udp.address.version == 4) != (from->any.sa_family == AF_INET))
		return;
	dgram_peer_learn(d, from, udp.qpn);
	if (udp.op != WIRE_DATA)
		return;
	/* Without an answer the peer will ask again. */
	if (udp_path(d, from, &answer) &&
	    sendto(d->rs.fd, reply, wire_put_udp(reply, &answer), MSG_DONTWAIT | MSG_NOSIGNAL,
		   &from->any, sockaddr_bytes(&from->any)) < 0)
		errno = 0;
	pthread_mutex_lock(&d->rs.lock);
	dgram_deliver(d, from, data + header, bytes - header);
	rsocket_unlock(&d->rs);
}

static void udp_read(struct dgram *d)
{
	static u8 data[WIRE_DGRAM_BYTES + WIRE_UDP_MAX_BYTES];
	union dgram_address from;
	int i;

	/* A limit per turn, so that other sockets get theirs. */
	for (i = 0; i < 64; i++) {
		socklen_t from_bytes = sizeof(from);
		ssize_t n = recvfrom(d->rs.fd, data, sizeof(data), MSG_DONTWAIT, &from.any,
				     &from_bytes);

		if (n < 0)
			return;
		udp_one(d, &from, data, (u32)n);
	}
}

static void *udp_run(void *of)
{
	int from = (int)(intptr_t)of;
	struct epoll_event event;

	for (;;) {
		if (epoll_wait(from, &event, 1, -1) < 0 && errno != EINTR)
			return NULL;
		/* The socket may have left since. */
		pthread_mutex_lock(&lock);
		if (epoll_wait(from, &event, 1, 0) == 1)
			busy = event.data.ptr;
		pthread_mutex_unlock(&lock);
		if (!busy)
			continue;
		udp_read(busy);
		pthread_mutex_lock(&lock);
		busy = NULL;
		pthread_cond_broadcast(&idle);
		pthread_mutex_unlock(&lock);
	}
}

static void udp_fork(void)
{
	epoll = -1;
	busy = NULL;
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&idle, NULL);
}

static void udp_once(void)
{
	pthread_atfork(NULL, NULL, udp_fork);
}

static int udp_start(void)
{
	pthread_t thread;
	int fd = epoll_create1(EPOLL_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = thread_start(&thread, udp_run, (void *)(intptr_t)fd);
	if (err) {
		close(fd);
		return err;
	}
	pthread_setname_np(thread, "rsocket-udp");
	pthread_detach(thread);
	epoll = fd;
	return 0;
}

static int udp_enter(struct dgram *d)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = d };
	int err = 0;

	pthread_once(&fork_once, udp_once);
	pthread_mutex_lock(&lock);
	if (epoll < 0)
		err = udp_start();
	if (!err && epoll_ctl(epoll, EPOLL_CTL_ADD, d->rs.fd, &event))
		err = -errno;
	pthread_mutex_unlock(&lock);
	return err;
}

/* On return the thread does not use d any more. */
static void udp_leave(struct dgram *d)
{
	pthread_mutex_lock(&lock);
	epoll_ctl(epoll, EPOLL_CTL_DEL, d->rs.fd, NULL);
	while (busy == d)
		pthread_cond_wait(&idle, &lock);
	pthread_mutex_unlock(&lock);
}

/* ---- creation ---- */

struct dgram *dgram_alloc(int domain)
{
	struct dgram *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	rsocket_init(&d->rs, domain, SOCK_DGRAM);
	d->epoll = -1;
	return d;
}

/* Undoes dgram_make(). */
static void dgram_unmake(struct dgram *d)
{
	if (d->epoll >= 0)
		close(d->epoll);
	pages_put(d->send, d->send_bytes);
	free(d->free);
	free(d->messages);
	d->epoll = -1;
	d->send = NULL;
	d->free = NULL;
	d->messages = NULL;
	d->free_count = 0;
}

static int dgram_make(struct dgram *d)
{
	struct rsocket *rs = &d->rs;
	u32 i;

	/* Limited by the buffer's size or by the number of requests. */
	rs->requests = min_u32(rs->requests, rs->send_bytes / WIRE_DGRAM_BYTES);
	rs->receives = min_u32(rs->receives, rs->receive_bytes / WIRE_DGRAM_BYTES);
	rs->requests = rs->requests ? rs->requests : 1;
	rs->receives = rs->receives ? rs->receives : 1;
	d->send_bytes = (size_t)rs->requests * WIRE_DGRAM_BYTES;
	d->send = pages_get(d->send_bytes);
	d->free = calloc(rs->requests, sizeof(*d->free));
	d->messages = calloc(rs->receives, sizeof(*d->messages));
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!d->send || !d->free || !d->messages)
		return -ENOMEM;
	if (d->epoll < 0)
		return -errno;
	for (i = 0; i < rs->requests; i++)
		d->free[d->free_count++] = i;
	return 0;
}

int dgram_start(struct dgram *d)
{
	int err;

	if (d->started)
		return 0;
	err = dgram_make(d);
	if (!err)
		err = udp_enter(d);
	if (err)
		dgram_unmake(d);
	d->started = !err;
	return err;
}

void dgram_destroy(struct dgram *d)
{
	if (d->started) {
		for (; d->count; d->count--) {
			free(d->messages[d->first].copy);
			d->first = (d->first + 1) % d->rs.receives;
		}
		dgram_peers_free(d);
	}
	dgram_unmake(d);
	pthread_mutex_destroy(&d->rs.lock);
	pthread_mutex_destroy(&d->rs.sending);
	pthread_mutex_destroy(&d->rs.receiving);
	free(d);
}

/* ---- completions ---- */

static void dgram_received(struct dgram *d, struct dgram_path *path, const struct ibv_wc *wc)
{
	u32 slot = (u32)wc->wr_id, grh = sizeof(struct ibv_grh), header;
	const u8 *data = path->receive + (size_t)slot * DGRAM_SLOT_BYTES + grh;
	struct dgram_message *m = NULL;
	union dgram_address address;
	struct wire_address from;

	if (wc->status == IBV_WC_SUCCESS && wc->byte_len >= grh) {
		header = wire_get_dgram(&from, data, wc->byte_len - grh);
		if (header) {
			dgram_address_take(&address, &from);
			dgram_peer_heard(d, &address);
			m = dgram_place(d, &address);
		}
	}
	if (!m) {
		if (wc->status != IBV_WC_WR_FLUSH_ERR)
			dgram_post_receive(path, slot);
		return;
	}
	m->path = path;
	m->slot = slot;
	m->data = data + header;
	m->bytes = wc->byte_len - grh - header;
}

bool dgram_progress(struct dgram *d)
{
	struct dgram_path *path;
	struct ibv_wc wcs[BATCH];
	bool any = false;
	int i, n;

	for (path = d->paths; path; path = path->next) {
		do {
			n = ibv_poll_cq(path->cq, BATCH, wcs);
			for (i = 0; i < n; i++) {
				any = true;
				if (wcs[i].wr_id >> 32)
					dgram_received(d, path, &wcs[i]);
				else
					d->free[d->free_count++] = (u32)wcs[i].wr_id;
			}
		} while (n == BATCH);
	}
	if (any)
		waiters_wake(&d->rs);
	return any;
}

int dgram_arm(struct dgram *d)
{
	struct dgram_path *path;

	for (path = d->paths; path; path = path->next)
		if (!path->armed && !ibv_req_notify_cq(path->cq, 0))
			path->armed = true;
	return d->epoll;
}

void dgram_disarm(struct dgram *d)
{
	struct epoll_event event;

	while (epoll_wait(d->epoll, &event, 1, 0) == 1) {
		struct dgram_path *path = event.data.ptr;
		struct ibv_cq *cq;
		void *context;

		if (ibv_get_cq_event(path->channel, &cq, &context))
			break;
		ibv_ack_cq_events(cq, 1);
		path->armed = false;
	}
	waiters_wake(&d->rs);
}

short dgram_events(struct dgram *d, short wanted)
{
	short events = 0;

	if (d->count || d->shut_read)
		events |= POLLIN | POLLRDNORM;
	if (!d->started || d->free_count || d->shut_write)
		events |= POLLOUT | POLLWRNORM;
	if (d->shut_read)
		events |= POLLRDHUP;
	events &= wanted;
	if (d->shut_read && d->shut_write)
		events |= POLLHUP;
	return d->rs.error ? events | POLLERR : events;
}

static bool dgram_all_sent(struct rsocket *rs)
{
	struct dgram *d = dgram_of(rs);

	return !d->started || d->free_count == d->rs.requests;
}

void dgram_close(struct dgram *d)
{
	const s64 until = rsocket_now() + CLOSE_MS * (s64)NSEC_PER_MSEC;
	bool started;

	pthread_mutex_lock(&d->rs.lock);
	rsocket_wait_on(&d->rs, dgram_all_sent, until);
	d->rs.closed = true;
	started = d->started;
	waiters_wake(&d->rs);
	rsocket_unlock(&d->rs);
	if (started)
		udp_leave(d);
}

/* ---- calls ---- */

int dgram_connect(struct dgram *d, const struct sockaddr *address, socklen_t bytes)
{
	struct dgram_peer *peer;
	int err = rsocket_lock(&d->rs);

	if (!err)
		err = dgram_start(d);
	if (!err && connect(d->rs.fd, address, bytes))
		err = -errno;
	if (!err) {
		d->connected = address->sa_family != AF_UNSPEC;
		if (d->connected)
			err = dgram_address_set(&d->peer, address, bytes);
		if (d->connected && !err)
			err = dgram_peer_get(d, &d->peer, &peer);
	}
	rsocket_unlock(&d->rs);
	return err;
}

static bool dgram_has_free(struct rsocket *rs)
{
	return dgram_of(rs)->free_count != 0;
}

/* Sends by UD. Caller holds the lock. */
static ssize_t dgram_post(struct dgram *d, struct dgram_peer *peer, const struct iovec *iov, int n,
			  u32 bytes)
{
	struct dgram_path *path = peer->path;
	u32 slot = d->free[d->free_count - 1], header;
	u8 *at = d->send + (size_t)slot * WIRE_DGRAM_BYTES;
	struct wire_address from;
	struct ibv_sge sge = { .addr = (uintptr_t)at, .lkey = path->send_mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = slot,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.wr.ud = {
			.ah = peer->ah,
			.remote_qpn = peer->qpn,
			.remote_qkey = RDMA_UDP_QKEY,
		},
	};
	int err;

	dgram_address_tell(&path->address, &from);
	header = wire_put_dgram(at, &from);
	if (bytes + header > path->most_bytes)
		return -EMSGSIZE;
	iov_gather(at + header, iov, (size_t)n);
	sge.length = header + bytes;
	if (sge.length <= path->inlined)
		wr.send_flags = IBV_SEND_INLINE;
	err = ibv_post_send(path->id->qp, &wr, &bad);
	if (err)
		return -err;
	d->free_count--;
	return bytes;
}

/* Sends by UDP, without the lock. The header has our QPN; the peer answers with its QPN. */
static ssize_t dgram_send_udp(struct dgram *d, const union dgram_address *to,
			      const struct wire_udp *udp, const struct iovec *iov, int n, u32 bytes,
			      int flags)
{
	u8 packet[WIRE_UDP_MAX_BYTES + WIRE_DGRAM_BYTES];
	u32 header = wire_put_udp(packet, udp);
	ssize_t sent;

	iov_gather(packet + header, iov, (size_t)n);
	sent = sendto(d->rs.fd, packet, header + bytes, flags | MSG_NOSIGNAL, &to->any,
		      sockaddr_bytes(&to->any));
	return sent < 0 ? -errno : (ssize_t)bytes;
}

static ssize_t dgram_bytes(const struct iovec *iov, int n)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > WIRE_DGRAM_BYTES - bytes)
			return -EMSGSIZE;
		bytes += iov[i].iov_len;
	}
	return (ssize_t)bytes;
}

/* Finds the destination peer. Caller holds the lock. Returns 0 or -errno. */
static int dgram_target(struct dgram *d, const struct sockaddr *to, socklen_t to_bytes,
			struct dgram_peer **peer)
{
	union dgram_address address;
	int err = dgram_start(d);

	if (err)
		return err;
	if (d->shut_write)
		return -EPIPE;
	if (!to && !d->connected)
		return -EDESTADDRREQ;
	address = d->peer;
	if (to)
		err = dgram_address_set(&address, to, to_bytes);
	return err ? err : dgram_peer_get(d, &address, peer);
}

/* Returns whether a datagram of this length fits after the header for UDP. */
static bool dgram_fits_udp(const struct dgram_peer *peer, ssize_t bytes)
{
	return (u32)bytes + WIRE_UDP_MAX_BYTES <= peer->path->most_bytes;
}

ssize_t dgram_send(struct dgram *d, const struct iovec *iov, int n, int flags,
		   const struct sockaddr *to, socklen_t to_bytes)
{
	struct wire_udp udp = { .op = WIRE_DATA };
	union dgram_address address;
	struct dgram_peer *peer;
	ssize_t bytes = dgram_bytes(iov, n), done;
	s64 deadline;

	if (bytes < 0)
		return bytes;
	/* A datagram in parts would need the peer's QP for each. */
	if (flags & (MSG_OOB | MSG_MORE))
		return -EOPNOTSUPP;
	done = rsocket_lock(&d->rs);
	deadline = rsocket_nonblocking(&d->rs, flags) ? 0 :
		   rsocket_deadline(&d->rs.send_timeout);
	/* The UDP socket does not know of O_NONBLOCK: it may be full of packets that await ARP. */
	if (!deadline)
		flags |= MSG_DONTWAIT;
	if (!done)
		done = dgram_target(d, to, to_bytes, &peer);
	if (!done && iov_has_null(iov, (size_t)n))
		done = -EFAULT;
	if (!done && peer->ah && !d->free_count) {
		done = rsocket_wait(&d->rs, dgram_has_free, deadline);
		d->rs.standin.refused |= done == -EAGAIN;
		/* The peer may have been replaced. */
		if (!done)
			done = dgram_target(d, to, to_bytes, &peer);
	}
	if (!done && peer->ah && !(dgram_fits_udp(peer, bytes) && dgram_peer_is_silent(peer))) {
		done = dgram_post(d, peer, iov, n, (u32)bytes);
	} else if (!done && !dgram_fits_udp(peer, bytes)) {
		done = -EMSGSIZE;
	} else if (!done) {
		udp.qpn = peer->path->id->qp->qp_num;
		dgram_address_tell(&peer->path->address, &udp.address);
		address = peer->address;
		rsocket_unlock(&d->rs);
		return dgram_send_udp(d, &address, &udp, iov, n, (u32)bytes, flags);
	}
	rsocket_unlock(&d->rs);
	return done;
}

static bool dgram_has_message(struct rsocket *rs)
{
	return dgram_of(rs)->count || dgram_of(rs)->shut_read;
}

/* An IPv6 socket sees an IPv4 peer under its mapped address. */
static void dgram_name(const struct dgram *d, const struct dgram_message *m, struct msghdr *msg)
{
	union dgram_address from = m->from;

	if (d->rs.domain == AF_INET6 && from.any.sa_family == AF_INET) {
		memset(&from, 0, sizeof(from));
		from.v6.sin6_family = AF_INET6;
		from.v6.sin6_port = m->from.v4.sin_port;
		from.v6.sin6_addr.s6_addr[10] = 0xff;
		from.v6.sin6_addr.s6_addr[11] = 0xff;
		memcpy(&from.v6.sin6_addr.s6_addr[12], &m->from.v4.sin_addr, 4);
	}
	if (msg->msg_name)
		sockaddr_tell(&from.any, msg->msg_name, &msg->msg_namelen);
}

ssize_t dgram_receive(struct dgram *d, struct msghdr *msg, int flags)
{
	struct dgram_message *m;
	size_t copied = 0, i;
	ssize_t done;
	s64 deadline;

	/* No errors are queued. */
	if (flags & MSG_ERRQUEUE)
		return -EAGAIN;
	done = rsocket_lock(&d->rs);
	deadline = rsocket_nonblocking(&d->rs, flags) ? 0 :
		   rsocket_deadline(&d->rs.receive_timeout);
	if (!done)
		done = dgram_start(d);
	if (!done)
		done = rsocket_wait(&d->rs, dgram_has_message, deadline);
	if (!done && d->count && iov_has_null(msg->msg_iov, msg->msg_iovlen))
		done = -EFAULT;
	if (done || !d->count) {
		rsocket_unlock(&d->rs);
		return done;
	}
	m = &d->messages[d->first];
	for (i = 0; i < msg->msg_iovlen && copied < m->bytes; i++) {
		size_t now = min_u64(msg->msg_iov[i].iov_len, m->bytes - copied);

		if (now)
			memcpy(msg->msg_iov[i].iov_base, m->data + copied, now);
		copied += now;
	}
	dgram_name(d, m, msg);
	msg->msg_flags = copied < m->bytes ? MSG_TRUNC : 0;
	msg->msg_controllen = 0;
	done = (ssize_t)(flags & MSG_TRUNC ? m->bytes : copied);
	if (!(flags & MSG_PEEK)) {
		if (m->path)
			dgram_post_receive(m->path, m->slot);
		free(m->copy);
		d->first = (d->first + 1) % d->rs.receives;
		d->count--;
	}
	rsocket_unlock(&d->rs);
	return done;
}
