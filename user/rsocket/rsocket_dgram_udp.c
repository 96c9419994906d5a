/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP packets to the datagram sockets of the process, read by one thread: QPNs of peers, and
 * datagrams sent before a QPN is known.
 */
#define _GNU_SOURCE
#include "rsocket_dgram.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../os/thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static int epoll = -1;	    /* per process; a forked child creates its own */
static struct dgram *busy; /* the socket that the thread is reading; under lock */

/* Fills in an answer: QPN and address of the path to the sender. */
static bool udp_path(struct dgram *d, const union dgram_address *to, struct wire_udp *answer)
{
	struct dgram_peer *peer;
	bool found;

	pthread_mutex_lock(&d->rs.lock);
	found = !d->rs.closed && !dgram_peer_get(d, to, &peer);
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
	if (udp.op == WIRE_DATA) {
		if (!udp_path(d, from, &answer))
			return;
		if (sendto(d->rs.fd, reply, wire_put_udp(reply, &answer),
			   MSG_DONTWAIT | MSG_NOSIGNAL, &from->any, sockaddr_bytes(&from->any)) < 0)
			errno = 0; /* the peer will ask again */
	}
	dgram_peer_learn(d, from, udp.qpn);
	if (udp.op != WIRE_DATA)
		return;
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

int udp_enter(struct dgram *d)
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

void udp_leave(struct dgram *d)
{
	pthread_mutex_lock(&lock);
	epoll_ctl(epoll, EPOLL_CTL_DEL, d->rs.fd, NULL);
	while (busy == d)
		pthread_cond_wait(&idle, &lock);
	pthread_mutex_unlock(&lock);
}
