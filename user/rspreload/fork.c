/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs that fork between accept() and the first byte. An RDMA connection belongs to the process
 * that created it. So the first process that sends or receives creates it; until then both sides
 * use a TCP connection.
 *
 * The accepting side listens with an rsocket on the port of the TCP connection, and announces that
 * by four bytes of 0 on it. The connecting side waits for the bytes and connects there. Only one
 * process can listen on a port at a time: others retry.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

enum { WAIT_MS = 30000, AGAIN_MS = 10, CLOSED_MS = 5000 };

void fork_copy_options(int kernel, int rsocket)
{
	int value, flags = real.fcntl(kernel, F_GETFL);
	socklen_t n = sizeof(value);

	if (flags > 0 && (flags & O_NONBLOCK))
		rfcntl(rsocket, F_SETFL, flags);
	if (!real.getsockopt(kernel, IPPROTO_TCP, TCP_NODELAY, &value, &n) && value)
		rsetsockopt(rsocket, IPPROTO_TCP, TCP_NODELAY, &value, n);
	n = sizeof(value);
	if (!real.getsockopt(kernel, SOL_SOCKET, SO_REUSEADDR, &value, &n) && value)
		rsetsockopt(rsocket, SOL_SOCKET, SO_REUSEADDR, &value, n);
}

static int fork_connect(int kernel)
{
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);
	struct pollfd ready = { .fd = kernel, .events = POLLIN };
	uint32_t said = 1;
	int fd;

	if (real.poll(&ready, 1, WAIT_MS) != 1 ||
	    real.recvfrom(kernel, &said, sizeof(said), MSG_PEEK | MSG_WAITALL, NULL, NULL) !=
		    sizeof(said) ||
	    said || real.getpeername(kernel, (struct sockaddr *)&peer, &n))
		return -1;
	fd = rsocket(peer.ss_family, SOCK_STREAM, 0);
	if (fd < 0)
		return -1;
	config_apply(fd);
	if (!rconnect(fd, (struct sockaddr *)&peer, n))
		return fd;
	rclose(fd);
	return -1;
}

/*
 * Listens on the TCP connection's local port; retries while another process of this program does.
 */
static int fork_listen(int kernel)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} own;
	socklen_t n = sizeof(own);
	bool is_used;
	int fd, tries;

	if (real.getsockname(kernel, &own.any, &n))
		return -1;
	if (own.any.sa_family == AF_INET6)
		own.v6.sin6_addr = in6addr_any;
	else
		own.v4.sin_addr.s_addr = INADDR_ANY;
	for (tries = 0; tries < WAIT_MS / AGAIN_MS; tries++) {
		fd = rsocket(own.any.sa_family, SOCK_STREAM, 0);
		if (fd < 0)
			return -1;
		config_apply(fd);
		if (!rbind(fd, &own.any, n) && !rlisten(fd, 1))
			return fd;
		is_used = errno == EADDRINUSE;
		rclose(fd);
		if (!is_used)
			return -1;
		real.poll(NULL, 0, AGAIN_MS);
	}
	return -1;
}

/*
 * The peer closes the TCP connection on failure, and after it connected. The close may be seen
 * before the new connection, whose third handshake message may also be lost: wait for it a little
 * longer.
 */
static bool fork_is_asked(int listener, int kernel)
{
	struct pollfd fds[2] = {
		{ .fd = listener, .events = POLLIN },
		{ .fd = kernel, .events = POLLRDHUP },
	};

	if (rpoll(fds, 2, WAIT_MS) <= 0)
		return false;
	return (fds[0].revents & POLLIN) || rpoll(fds, 1, CLOSED_MS) > 0;
}

static int fork_accept(int kernel)
{
	int listener = fork_listen(kernel), fd = -1;
	uint32_t said = 0;

	if (listener < 0)
		return -1;
	if (real.write(kernel, &said, sizeof(said)) == sizeof(said) &&
	    fork_is_asked(listener, kernel))
		fd = raccept(listener, NULL, NULL);
	rclose(listener);
	return fd;
}

void fork_settle(struct entry *entry)
{
	int kernel = entry->fd, kind = entry->kind, fd;

	if (kind != ENTRY_FORK_ACTIVE && kind != ENTRY_FORK_PASSIVE)
		return;
	fd = kind == ENTRY_FORK_ACTIVE ? fork_connect(kernel) : fork_accept(kernel);
	if (fd < 0) {
		entry->kind = ENTRY_KERNEL;
		return;
	}
	fork_copy_options(kernel, fd);
	entry_become(entry, fd, ENTRY_RSOCKET);
	real.shutdown(kernel, SHUT_RDWR);
	real.close(kernel);
}
