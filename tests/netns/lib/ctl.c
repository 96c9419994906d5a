/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See ctl.h. */
#include "ctl.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

void die(const char *format, ...)
{
	va_list ap;

	fflush(stdout);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int ctl_open(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = host ? 0 : AI_PASSIVE };
	struct timeval bound = { .tv_sec = WAIT_MS / 1000 };
	struct addrinfo *ai;
	int one = 1, fd, rc;

	rc = getaddrinfo(host, port, &hints, &ai);
	must(rc == 0, "%s port %s: %s", host ? host : "*", port, gai_strerror(rc));
	fd = socket(ai->ai_family, ai->ai_socktype, ai->ai_protocol);
	must(fd >= 0, "socket: %s", strerror(errno));
	/* Bounds accept() and every read. */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	if (host) {
		must(connect(fd, ai->ai_addr, ai->ai_addrlen) == 0, "connect to %s port %s: %s",
		     host, port, strerror(errno));
	} else {
		int listener = fd;

		setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		must(bind(listener, ai->ai_addr, ai->ai_addrlen) == 0 && listen(listener, 1) == 0,
		     "listen on port %s: %s", port, strerror(errno));
		do {
			fd = accept(listener, NULL, NULL);
		} while (fd < 0 && errno == EINTR);
		must(fd >= 0, "accept on port %s: %s", port, strerror(errno));
		close(listener);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	freeaddrinfo(ai);
	return fd;
}

void ctl_swap(int fd, const void *mine, void *theirs, size_t len)
{
	size_t got = 0;

	must(send(fd, mine, len, MSG_NOSIGNAL) == (ssize_t)len, "control connection: %s",
	     strerror(errno));
	while (got < len) {
		ssize_t n = recv(fd, (char *)theirs + got, len - got, 0);

		if (n < 0 && errno == EINTR)
			continue;
		must(n != 0, "the other side has gone");
		must(n > 0, "control connection: %s", strerror(errno));
		got += n;
	}
}

void ctl_barrier(int fd, uint32_t tag)
{
	uint32_t theirs;

	ctl_swap(fd, &tag, &theirs, sizeof(tag));
	must(theirs == tag, "the other side is at step %#x, this one at %#x", theirs, tag);
}

void ctl_rest(const char *fifo)
{
	int fd;

	printf("rests\n");
	fflush(stdout);
	do {
		fd = open(fifo, O_RDONLY);
	} while (fd < 0 && errno == EINTR);
	must(fd >= 0, "%s: %s", fifo, strerror(errno));
	close(fd);
}
