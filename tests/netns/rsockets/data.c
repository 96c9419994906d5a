/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data over streams and datagrams. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "rsockets.h"

/* ---- data ---- */

bool peek_and_vectors(void)
{
	char a[4], b[8];
	struct iovec in[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct iovec out[3] = { { "ab", 2 }, { "", 0 }, { "cdefgh", 6 } };

	CHECK(pair_open());
	CHECK(rwritev(pair.client, out, 3) == 8);
	CHECK(ready(pair.server, POLLIN, 10000) == POLLIN);
	CHECK(rrecv(pair.server, b, 8, MSG_PEEK) == 8 && !memcmp(b, "abcdefgh", 8));
	CHECK(rreadv(pair.server, in, 2) == 8);
	CHECK(!memcmp(a, "abcd", 4) && !memcmp(b, "efgh", 4));
	CHECK_ERRNO(rrecv(pair.server, b, 1, MSG_DONTWAIT), EAGAIN);
	CHECK_ERRNO(rrecv(pair.server, b, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	return true;
}

enum { BULK = 5000000 };

static void *bulk_send(void *of)
{
	uint8_t *bytes = malloc(BULK);

	for (int i = 0; i < BULK; i++)
		bytes[i] = (uint8_t)(i * 11 + (i >> 9));
	*(ssize_t *)of = rsend(pair.client, bytes, BULK, 0);
	free(bytes);
	return NULL;
}

bool wait_for_all(void)
{
	uint8_t *bytes = malloc(BULK);
	ssize_t sent, got;
	pthread_t sender;
	int wrong = 0;

	CHECK(pair_open());
	pthread_create(&sender, NULL, bulk_send, &sent);
	got = rrecv(pair.server, bytes, BULK, MSG_WAITALL);
	pthread_join(sender, NULL);
	for (int i = 0; i < BULK; i++)
		wrong += bytes[i] != (uint8_t)(i * 11 + (i >> 9));
	free(bytes);
	CHECK(got == BULK && sent == BULK && !wrong);
	return true;
}

bool full(void)
{
	static char bytes[1 << 20];
	ssize_t n, sent = 0, got = 0;

	CHECK(pair_open());
	CHECK(!rfcntl(pair.client, F_SETFL, O_NONBLOCK));
	while ((n = rsend(pair.client, bytes, sizeof(bytes), 0)) > 0)
		sent += n;
	CHECK(n == -1 && errno == EAGAIN && sent > 0);
	CHECK(!ready(pair.client, POLLOUT, 0));
	while (got < sent && (n = rrecv(pair.server, bytes, sizeof(bytes), 0)) > 0)
		got += n;
	CHECK(got == sent);
	CHECK(ready(pair.client, POLLOUT, 10000) == POLLOUT);
	return true;
}

bool half_closed(void)
{
	char bytes[8];

	CHECK(pair_open());
	CHECK(rsend(pair.client, "last", 4, 0) == 4);
	CHECK(!rshutdown(pair.client, SHUT_WR));
	CHECK_ERRNO(rsend(pair.client, "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK(rrecv(pair.server, bytes, 8, 0) == 4);
	CHECK(ready(pair.server, POLLIN | POLLRDHUP, 10000) == (POLLIN | POLLRDHUP));
	CHECK(rrecv(pair.server, bytes, 8, 0) == 0);
	CHECK(rsend(pair.server, "answer", 6, 0) == 6);
	CHECK(rrecv(pair.client, bytes, 8, 0) == 6);
	CHECK(!rclose(pair.server));
	pair.server = -1;
	CHECK(rrecv(pair.client, bytes, 8, 0) == 0);
	return true;
}

bool closed_by_peer(void)
{
	char bytes[8];

	CHECK(pair_open());
	CHECK(rsend(pair.client, "last", 4, 0) == 4);
	CHECK(!rclose(pair.client));
	pair.client = -1;
	CHECK(ready(pair.server, POLLIN, 10000) == POLLIN);
	CHECK(rrecv(pair.server, bytes, 2, 0) == 2);
	CHECK(rrecv(pair.server, bytes, 8, 0) == 2);
	CHECK(rrecv(pair.server, bytes, 8, 0) == 0);
	CHECK(ready(pair.server, POLLIN, 10000) == (POLLIN | POLLHUP));
	CHECK_ERRNO(rsend(pair.server, "x", 1, MSG_NOSIGNAL), ECONNRESET);
	return true;
}

bool timeouts(void)
{
	struct timeval t = { .tv_usec = 50000 };
	socklen_t n = sizeof(t);
	char byte;

	CHECK(pair_open());
	CHECK(!rsetsockopt(pair.server, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	t.tv_usec = 0;
	CHECK(!rgetsockopt(pair.server, SOL_SOCKET, SO_RCVTIMEO, &t, &n) && t.tv_usec == 50000);
	CHECK_ERRNO(rrecv(pair.server, &byte, 1, 0), EAGAIN);
	return true;
}

/* ---- datagrams ---- */

bool datagrams(void)
{
	struct sockaddr_storage from;
	socklen_t n = sizeof(at);
	char bytes[2048] = { 0 };

	at.v4.sin_port = 0;
	pair.server = rsocket(at.any.sa_family, SOCK_DGRAM, 0);
	pair.client = rsocket(at.any.sa_family, SOCK_DGRAM, 0);
	CHECK(pair.server >= 0 && !rbind(pair.server, &at.any, at_bytes));
	CHECK(!rgetsockname(pair.server, &at.any, &n));
	CHECK_ERRNO(rsend(pair.client, "x", 1, 0), EDESTADDRREQ);
	for (int i = 0; i < 50; i++) {
		bytes[0] = (char)i;
		CHECK(rsendto(pair.client, bytes, (size_t)(1 + i), 0, &at.any, at_bytes) == 1 + i);
		n = sizeof(from);
		CHECK(rrecvfrom(pair.server, bytes, sizeof(bytes), 0, (struct sockaddr *)&from,
				&n) == 1 + i && bytes[0] == (char)i && n == at_bytes);
		CHECK(rsendto(pair.server, "ok", 2, 0, (struct sockaddr *)&from, n) == 2);
		CHECK(rrecv(pair.client, bytes, sizeof(bytes), 0) == 2);
	}
	CHECK(!rconnect(pair.client, &at.any, at_bytes));
	CHECK(rsend(pair.client, "abcdef", 6, 0) == 6);
	CHECK(ready(pair.server, POLLIN, 10000) == POLLIN);
	CHECK(rrecv(pair.server, bytes, 3, MSG_PEEK) == 3);
	CHECK(rrecv(pair.server, bytes, 3, MSG_TRUNC) == 6);
	CHECK_ERRNO(rrecv(pair.server, bytes, 3, MSG_DONTWAIT), EAGAIN);
	CHECK_ERRNO(rsend(pair.client, bytes, sizeof(bytes), 0), EMSGSIZE);
	CHECK(rsend(pair.client, bytes, 0, 0) == 0);
	CHECK(rrecv(pair.server, bytes, 3, 0) == 0);
	return true;
}
