/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own datagrams as a baseline, between two namespaces.
 *
 *   udp rate SIZE SECONDS NETNS:ADDRESS:CPU NETNS:ADDRESS:CPU
 *	datagrams/s received (sendto and recv, one each)
 *   udp rtt spin|poll SIZE SECONDS NETNS:ADDRESS:CPU NETNS:ADDRESS:CPU
 *	half round trip in us: median, 99 %
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "ends.h"

#define PORT 5001

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		die(text);
	return a;
}

/* A socket between the two ends, with a receive time-out. */
static int open_end(const struct end *self, const struct end *peer)
{
	const struct timeval timeout = { .tv_usec = WAIT_NS / 1000 };
	const struct sockaddr_in from = address(self->ifname), to = address(peer->ifname);
	int fd;

	end_enter(self);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&from, sizeof(from)) ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		die("UDP socket");
	pthread_barrier_wait(&ready);
	return fd;
}

static void send_one(void *fd)
{
	static uint8_t data[65536];

	(void)!send(*(int *)fd, data, size, 0);
}

/* One datagram; spinning or asleep. */
static bool await(void *fd)
{
	uint64_t until = now_ns() + WAIT_NS;
	uint8_t buffer[65536];

	do {
		if (recv(*(int *)fd, buffer, sizeof(buffer), sleeps ? 0 : MSG_DONTWAIT) ==
		    (ssize_t)size)
			return true;
	} while (!sleeps && now_ns() < until);
	return false;
}

static void *rate_sender(void *end)
{
	int fd = open_end(end, &server);

	while (!stopped())
		send_one(&fd);
	return NULL;
}

static void *rate_receiver(void *end)
{
	int fd = open_end(end, &client);
	uint64_t n = 0, t0 = now_ns(), t;

	do {
		for (int i = 0; i < 64; i++)
			n += await(&fd);
		t = now_ns();
	} while ((double)(t - t0) < seconds * 1e9);
	print_rate(n, t - t0);
	return NULL;
}

static void *rtt_echo(void *end)
{
	int fd = open_end(end, &client);

	while (!stopped())
		if (await(&fd))
			send_one(&fd);
	return NULL;
}

static void *rtt_client(void *end)
{
	int fd = open_end(end, &server);

	measure_rtt(send_one, await, &fd);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct roles roles = { "udp",	    1,		65507,	 rate_sender,
				     rate_receiver, rtt_client, rtt_echo };

	return run_ends(&roles, argc, argv);
}
