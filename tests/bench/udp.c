/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's own datagrams as a baseline, between two namespaces.
 *
 *   udp rate SIZE SECONDS NETNS:ADDRESS:CPU NETNS:ADDRESS:CPU            datagrams/s received (sendto and recv, one each)
 *   udp rtt spin|poll SIZE SECONDS NETNS:ADDRESS:CPU NETNS:ADDRESS:CPU   half round trip in us: median, 99 %
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "ends.h"

#define PORT 5001

static struct end client, server;
static uint32_t size;
static double seconds;
static bool sleeps;
static pthread_barrier_t ready;
static _Atomic bool stop;
static uint32_t rtt_ns[SAMPLES_MAX];
static uint32_t samples;

static struct sockaddr_in address(const char *text)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (inet_pton(AF_INET, text, &a.sin_addr) != 1)
		die(text);
	return a;
}

/* A socket between the two ends, with a receive time-out of a tenth of a second. */
static int open_end(const struct end *self, const struct end *peer)
{
	const struct timeval timeout = { .tv_usec = 100000 };
	const struct sockaddr_in from = address(self->ifname), to = address(peer->ifname);
	int fd;

	end_enter(self);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&from, sizeof(from)) || connect(fd, (const struct sockaddr *)&to, sizeof(to)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)))
		die("UDP socket");
	pthread_barrier_wait(&ready);
	return fd;
}

/* One datagram; spinning or asleep. */
static bool await(int fd)
{
	uint64_t until = now_ns() + 100000000;
	uint8_t buffer[65536];

	do {
		if (recv(fd, buffer, sizeof(buffer), sleeps ? 0 : MSG_DONTWAIT) == (ssize_t)size)
			return true;
	} while (!sleeps && now_ns() < until);
	return false;
}

static void *rate_sender(void *arg)
{
	static uint8_t data[65536];
	int fd = open_end(&client, &server);

	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		(void)!send(fd, data, size, 0);
	return NULL;
}

static void *rate_receiver(void *arg)
{
	int fd = open_end(&server, &client);
	uint64_t n = 0, t0 = now_ns(), t;

	do {
		for (int i = 0; i < 64; i++)
			n += await(fd);
		t = now_ns();
	} while ((double)(t - t0) < seconds * 1e9);
	atomic_store(&stop, true);
	printf("%.0f\t%.3f\n", (double)n * 1e9 / (double)(t - t0), (double)n * size * 8 / (double)(t - t0));
	return NULL;
}

static void *rtt_echo(void *arg)
{
	static uint8_t data[65536];
	int fd = open_end(&server, &client);

	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		if (await(fd))
			(void)!send(fd, data, size, 0);
	return NULL;
}

static void *rtt_client(void *arg)
{
	static uint8_t data[65536];
	int fd = open_end(&client, &server);
	uint64_t begin = now_ns(), t0;

	while ((t0 = now_ns()) - begin < (uint64_t)(seconds * 1e9) && samples < SAMPLES_MAX) {
		(void)!send(fd, data, size, 0);
		if (await(fd) && t0 - begin > 100000000)
			rtt_ns[samples++] = (uint32_t)(now_ns() - t0);
	}
	atomic_store(&stop, true);
	print_half_rtt(rtt_ns, samples);
	return NULL;
}

int main(int argc, char **argv)
{
	bool rtt = argc == 7 && !strcmp(argv[1], "rtt");

	if (!rtt && (argc != 6 || strcmp(argv[1], "rate"))) {
		fprintf(stderr, "udp rate SIZE SECONDS END END | udp rtt spin|poll SIZE SECONDS END END\n");
		return 2;
	}
	sleeps = !rtt || !strcmp(argv[2], "poll");
	argv += rtt;
	size = (uint32_t)atoi(argv[2]);
	seconds = atof(argv[3]);
	if (size < 1 || size > 65507 || seconds <= 0)
		return 2;
	client = end_parse(argv[4]);
	server = end_parse(argv[5]);
	pthread_barrier_init(&ready, NULL, 2);
	pthread_create(&server.thread, NULL, rtt ? rtt_echo : rate_receiver, NULL);
	pthread_create(&client.thread, NULL, rtt ? rtt_client : rate_sender, NULL);
	pthread_join(client.thread, NULL);
	pthread_join(server.thread, NULL);
	return 0;
}
