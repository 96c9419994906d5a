/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * An honest server and an honest client, while others are not:
 *
 *	cm_beside serve ADDRESS PORT		accepts all that it has QPs for and rejects others;
 *						prints on TERM how many
 *	cm_beside hold ADDRESS PORT		gets requests and never answers
 *	cm_beside connect ADDRESS PORT SECONDS MOST-MS [FIRST-MS]
 *						connects and disconnects again and again, each time
 *						with its own id. Fails if a connection does not
 *						come about or takes longer than MOST-MS. One of many
 *						may have lost a MAD, which is repeated after 4.3 s:
 *						it may take 10 s. The first one, which also opens
 *						the device, may take FIRST-MS
 *
 * The same as rsockets: rsocket-serve, which closes each connection, and rsocket-connect, which
 * reads to the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cm.h"
#include "lib/ctl.h"

#define REPEATED_MS 10000

static struct rdma_event_channel *ch;
static struct ibv_cq *cq;
static volatile sig_atomic_t stop;
static const char *address;
static uint16_t port;

static void on_term(int sig)
{
	stop = sig;
}

static bool make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!cq)
		must((cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0)), "ibv_create_cq");
	attr.send_cq = attr.recv_cq = cq;
	return !rdma_create_qp(id, NULL, &attr);
}

static void serve(void)
{
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	unsigned long accepted = 0, rejected = 0, established = 0, failed = 0;

	cm_listener(ch, address, port, RDMA_PS_TCP, 0);
	printf("ready\n");
	fflush(stdout);
	while (!stop) {
		enum rdma_cm_event_type type;
		struct rdma_cm_event *ev;
		struct rdma_cm_id *id;

		if (poll(&p, 1, 1000) != 1)
			continue;
		must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
		type = ev->event;
		id = ev->id;
		rdma_ack_cm_event(ev);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (make_qp(id) && !rdma_accept(id, &param)) {
				accepted++;
			} else {
				rejected++;
				rdma_reject(id, NULL, 0);
				cm_destroy_id(id);
			}
		} else if (type == RDMA_CM_EVENT_ESTABLISHED) {
			established++;
		} else if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT) {
			failed += type != RDMA_CM_EVENT_DISCONNECTED;
			cm_destroy_id(id);
		}
	}
	printf("accepted %lu rejected %lu established %lu failed %lu\n", accepted, rejected,
	       established, failed);
}

/*
 * A listening rsocket. Of one address it queues fewer requests than the connection manager admits:
 * 33 answered and 160 waiting ones.
 */
static int rsocket_listener(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	must(fd >= 0, "rsocket: %s", strerror(errno));
	must(inet_pton(AF_INET, address, &at.sin_addr) == 1, "no IPv4 address: %s", address);
	must(!rbind(fd, (struct sockaddr *)&at, sizeof(at)), "rbind: %s", strerror(errno));
	must(!rlisten(fd, 32), "rlisten: %s", strerror(errno));
	return fd;
}

static void rsocket_serve(void)
{
	const int listener = rsocket_listener();
	unsigned long accepted = 0;

	printf("ready\n");
	fflush(stdout);
	while (!stop) {
		const int fd = raccept(listener, NULL, NULL);

		if (fd < 0 && errno == EINTR)
			continue;
		must(fd >= 0, "raccept: %s", strerror(errno));
		must(!rclose(fd), "rclose: %s", strerror(errno));
		accepted++;
	}
	printf("accepted %lu\n", accepted);
	rclose(listener);
}

/* As connect_once(). */
static uint64_t rsocket_connect_once(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	const uint64_t begun_ms = now_ms();
	const int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	uint64_t took_ms;
	char byte;

	must(fd >= 0, "rsocket: %s", strerror(errno));
	must(inet_pton(AF_INET, address, &to.sin_addr) == 1, "no IPv4 address: %s", address);
	must(!rconnect(fd, (struct sockaddr *)&to, sizeof(to)), "rconnect: %s", strerror(errno));
	must(rrecv(fd, &byte, 1, 0) == 0, "rrecv: %s", strerror(errno));
	took_ms = now_ms() - begun_ms;
	must(!rclose(fd), "rclose: %s", strerror(errno));
	return took_ms;
}

static bool is_slow(uint64_t took_ms, uint64_t most_ms, unsigned long before, unsigned long slow)
{
	return took_ms > (before && !slow ? REPEATED_MS : most_ms);
}

/* Returns the milliseconds until it is established. */
static uint64_t connect_once(void)
{
	struct rdma_conn_param param = { .responder_resources = 1,
					 .initiator_depth = 1,
					 .retry_count = 7,
					 .rnr_retry_count = 7 };
	const uint64_t begun_ms = now_ms();
	struct rdma_cm_id *id = cm_resolved(ch, address, port, RDMA_PS_TCP);
	uint64_t took_ms;

	must(make_qp(id), "rdma_create_qp: %s", strerror(errno));
	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
	took_ms = now_ms() - begun_ms;
	must(!rdma_disconnect(id), "rdma_disconnect: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_DISCONNECTED);
	cm_destroy_id(id);
	return took_ms;
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_term };
	uint64_t slowest_ms = 0, ends_ms, most_ms, first_ms;
	unsigned long n = 0, slow = 0;

	must(argc == 4 || argc == 6 || argc == 7,
	     "usage: cm_beside serve|hold|connect|rsocket-serve|rsocket-connect ADDRESS PORT "
	     "[SECONDS MOST-MS [FIRST-MS]]");
	address = argv[2];
	port = (uint16_t)atoi(argv[3]);
	sigaction(SIGTERM, &sa, NULL);
	ch = cm_channel();
	if (!strcmp(argv[1], "hold")) {
		cm_listener(ch, address, port, RDMA_PS_TCP, 0);
		printf("ready\n");
		fflush(stdout);
		pause();
		return 0;
	}
	if (!strcmp(argv[1], "rsocket-serve")) {
		rsocket_serve();
		return 0;
	}
	if (argc == 4) {
		serve();
		return 0;
	}
	ends_ms = now_ms() + strtoull(argv[4], NULL, 0) * 1000;
	most_ms = strtoull(argv[5], NULL, 0);
	first_ms = argc == 7 ? strtoull(argv[6], NULL, 0) : most_ms;
	do {
		const uint64_t ms = strcmp(argv[1], "connect") ? rsocket_connect_once() :
								 connect_once();

		must(!is_slow(ms, n ? most_ms : first_ms, n, slow), "connection %lu took %llu ms",
		     n, (unsigned long long)ms);
		slow += n && ms > most_ms;
		slowest_ms = ms > slowest_ms ? ms : slowest_ms;
		if (!n++) {
			printf("connected\n");
			fflush(stdout);
		}
	} while (now_ms() < ends_ms && !stop);
	printf("connections %lu, slow %lu, the slowest took %llu ms\n", n, slow,
	       (unsigned long long)slowest_ms);
	return 0;
}
