/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ordinary traffic next to RoCEv2: a TCP stream or UDP datagrams with known content, counted and
 * compared at the receiver.
 *
 *	traffic tcp PORT [HOST]	 16 MiB from the client to the server, every byte compared
 *	traffic udp PORT [HOST]	 1000 datagrams echoed one at a time; none may be missing
 *
 * Without HOST it is the server.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl.h"

#define STREAM_BYTES (16u << 20)
#define DATAGRAMS    1000
#define DATAGRAM_MAX 1400

static uint8_t content(uint32_t i)
{
	i *= 0x9e3779b1u;
	return i >> 24 ^ i >> 9;
}

static int open_socket(const char *host, const char *port, int type)
{
	struct addrinfo hints = { .ai_family = host ? AF_UNSPEC : AF_INET6,
				  .ai_socktype = type,
				  .ai_flags = host ? 0 : AI_PASSIVE };
	struct timeval bound = { .tv_sec = WAIT_MS / 1000 };
	struct addrinfo *ai;
	int fd, one = 1, zero = 0, rc;

	rc = getaddrinfo(host, port, &hints, &ai);
	must(rc == 0, "%s: %s", host ? host : "*", gai_strerror(rc));
	fd = socket(ai->ai_family, type, 0);
	must(fd >= 0, "socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof(bound));
	if (host) {
		must(connect(fd, ai->ai_addr, ai->ai_addrlen) == 0, "connect to %s: %s", host,
		     strerror(errno));
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		must(bind(fd, ai->ai_addr, ai->ai_addrlen) == 0, "bind: %s", strerror(errno));
	}
	freeaddrinfo(ai);
	return fd;
}

static void stream(const char *host, const char *port)
{
	static uint8_t chunk[65536];
	int fd = open_socket(host, port, SOCK_STREAM);
	uint32_t at = 0, i;
	ssize_t n;
	char done = 1;

	if (host) {
		while (at < STREAM_BYTES) {
			for (i = 0; i < sizeof(chunk); i++)
				chunk[i] = content(at + i);
			for (i = 0; i < sizeof(chunk); i += n) {
				n = send(fd, chunk + i, sizeof(chunk) - i, MSG_NOSIGNAL);
				must(n > 0, "send: %s", strerror(errno));
			}
			at += sizeof(chunk);
		}
		must(recv(fd, &done, 1, 0) == 1, "the server did not get all of it");
	} else {
		must(listen(fd, 1) == 0, "listen: %s", strerror(errno));
		fd = accept(fd, NULL, NULL);
		must(fd >= 0, "accept: %s", strerror(errno));
		while (at < STREAM_BYTES) {
			n = recv(fd, chunk, sizeof(chunk), 0);
			must(n > 0, "recv after %u bytes: %s", at, n ? strerror(errno) : "closed");
			for (i = 0; i < n; i++)
				must(chunk[i] == content(at + i), "byte %u of the stream is wrong",
				     at + i);
			at += n;
		}
		must(send(fd, &done, 1, MSG_NOSIGNAL) == 1, "send: %s", strerror(errno));
	}
	printf("traffic: %u bytes of TCP right\n", at);
}

static void datagrams(const char *host, const char *port)
{
	int fd = open_socket(host, port, SOCK_DGRAM);
	uint8_t out[DATAGRAM_MAX], in[DATAGRAM_MAX + 1];
	uint32_t k, i, len;
	ssize_t n;

	for (k = 0; k < DATAGRAMS; k++) {
		struct sockaddr_storage from;
		socklen_t from_len = sizeof(from);

		len = 4 + k * 37 % (DATAGRAM_MAX - 4);
		for (i = 0; i < len; i++)
			out[i] = content(k * 4096 + i);
		if (host)
			must(send(fd, out, len, 0) == (ssize_t)len, "send: %s", strerror(errno));
		n = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &from_len);
		must(n == (ssize_t)len, "datagram %u: %zd bytes where %u are due: %s", k, n, len,
		     n < 0 ? strerror(errno) : "");
		must(memcmp(in, out, len) == 0, "datagram %u: wrong content", k);
		if (!host)
			must(sendto(fd, in, n, 0, (struct sockaddr *)&from, from_len) == n,
			     "sendto: %s", strerror(errno));
	}
	printf("traffic: %u datagrams of UDP right\n", k);
}

int main(int argc, char **argv)
{
	must(argc == 3 || argc == 4, "traffic tcp|udp PORT [HOST]");
	if (strcmp(argv[1], "tcp") == 0)
		stream(argv[3], argv[2]);
	else if (strcmp(argv[1], "udp") == 0)
		datagrams(argv[3], argv[2]);
	else
		die("traffic tcp|udp PORT [HOST]");
	return 0;
}
