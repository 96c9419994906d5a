/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Many connections between two processes, made by librdmacm over one event channel and one thread
 * an end. Each is made, ended and destroyed, a given number at a time (-w), or (-k) all are held at
 * once and each carries a message. Both ends print their results:
 *
 *	connections: 1000 made and ended, 2417 a second
 *	connections: 10000 held, made 3120 a second, ended 2840 a second, 5321 bytes each
 *	asked: 0 sockets, 0 dumps
 *
 * The last line is what the libraries opened and what lists they had the kernel make (of links, of
 * addresses) from the middle connection to the last: none, whatever their number.
 *
 *	connections [-k] [-n CONNECTIONS] [-w AT-ONCE] [-p PORT] [-c] ADDRESS
 *
 * ADDRESS is the server's; -c is the client.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl.h"

#define RESOLVE_MS 5000

static unsigned int num = 1000, at_once = 64;
static const char *port = "7555";
static bool is_client, is_held;

static struct rdma_event_channel *channel;
static struct sockaddr_storage address;
/* Of all connections; made with the first, on its device. */
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static uint32_t word = 0x12345678;

static struct rdma_cm_id **held;
static unsigned int started, established, ended;
static double first_s, held_s;
static long first_bytes, held_bytes;

/* ---- system calls: these replace the C library's ---- */

static _Atomic unsigned int sockets, dumps;
static unsigned int sockets_before, dumps_before;
int socket(int domain, int type, int protocol) __attribute__((visibility("default")));
ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
	       socklen_t len) __attribute__((visibility("default")));

int socket(int domain, int type, int protocol)
{
	sockets++;
	return (int)syscall(SYS_socket, domain, type, protocol);
}

ssize_t sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
	       socklen_t len)
{
	const struct nlmsghdr *nlh = buf;

	if (nlh && n >= sizeof(*nlh) && nlh->nlmsg_len == n &&
	    (nlh->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP)
		dumps++;
	return syscall(SYS_sendto, fd, buf, n, flags, to, len);
}

/* The number of connections, present or ended. */
static void asked_mark(unsigned int connection)
{
	if (connection != num / 2)
		return;
	sockets_before = sockets;
	dumps_before = dumps;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* Memory that the process has. */
static long resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages;

	must(f && fscanf(f, "%*s %ld", &pages) == 1, "/proc/self/statm");
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static void resolve(const char *host)
{
	struct addrinfo *ai;
	int rc = getaddrinfo(host, port, NULL, &ai);

	must(rc == 0, "%s: %s", host, gai_strerror(rc));
	memcpy(&address, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
}

static void shared_make(struct ibv_context *verbs)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = num, .max_sge = 1 } };
	struct ibv_recv_wr *bad;

	if (pd)
		return;
	must((pd = ibv_alloc_pd(verbs)), "ibv_alloc_pd: %s", strerror(errno));
	must((cq = ibv_create_cq(verbs, (int)num, NULL, NULL, 0)), "ibv_create_cq: %s",
	     strerror(errno));
	must((mr = ibv_reg_mr(pd, &word, sizeof(word), IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr: %s",
	     strerror(errno));
	must((srq = ibv_create_srq(pd, &init)), "ibv_create_srq: %s", strerror(errno));
	for (unsigned int i = 0; is_held && !is_client && i < num; i++) {
		struct ibv_sge sge = { (uintptr_t)&word, sizeof(word), mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };

		must(ibv_post_srq_recv(srq, &wr, &bad) == 0, "ibv_post_srq_recv: %s",
		     strerror(errno));
	}
}

static void connection_make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 },
					 .sq_sig_all = 1 };

	shared_make(id->verbs);
	init.send_cq = init.recv_cq = cq;
	init.srq = srq;
	must(rdma_create_qp(id, pd, &init) == 0, "rdma_create_qp %u: %s", started, strerror(errno));
}

static struct rdma_conn_param connection_param(void)
{
	return (struct rdma_conn_param){ .responder_resources = 1, .initiator_depth = 1,
					 .retry_count = 7, .rnr_retry_count = 7, .srq = 1 };
}

static void connection_start(void)
{
	struct rdma_cm_id *id;

	if (started == num)
		return;
	started++;
	must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id: %s",
	     strerror(errno));
	must(rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, RESOLVE_MS) == 0,
	     "rdma_resolve_addr %u: %s", started, strerror(errno));
}

static void connection_end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	must(rdma_destroy_id(id) == 0, "rdma_destroy_id: %s", strerror(errno));
	ended++;
}

static void completions_take(unsigned int n)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc[64];

	for (unsigned int seen = 0; seen < n;) {
		int got = ibv_poll_cq(cq, 64, wc);

		must(got >= 0 && now_ms() < end, "%u of %u completions", seen, n);
		for (int i = 0; i < got; i++)
			must(wc[i].status == IBV_WC_SUCCESS, "completion: %s",
			     ibv_wc_status_str(wc[i].status));
		seen += (unsigned int)got;
	}
}

/* All are there: each carries a message, then the client ends them all. */
static void held_use(void)
{
	struct ibv_sge sge = { (uintptr_t)&word, sizeof(word), mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;

	held_s = now_s();
	held_bytes = resident_bytes();
	for (unsigned int i = 0; i < num; i++) {
		must(ibv_post_send(held[i]->qp, &wr, &bad) == 0, "ibv_post_send: %s",
		     strerror(errno));
		completions_take(1);
	}
	for (unsigned int i = 0; i < num && i < at_once; i++)
		must(rdma_disconnect(held[i]) == 0, "rdma_disconnect: %s", strerror(errno));
}

static void client_event(const struct rdma_cm_event *event, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = connection_param();

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		must(rdma_resolve_route(id, RESOLVE_MS) == 0, "rdma_resolve_route: %s",
		     strerror(errno));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connection_make_qp(id);
		must(rdma_connect(id, &param) == 0, "rdma_connect: %s", strerror(errno));
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		held[established++] = id;
		asked_mark(established);
		if (!is_held)
			must(rdma_disconnect(id) == 0, "rdma_disconnect: %s", strerror(errno));
		else if (established < num)
			connection_start();
		else
			held_use();
		break;
	default:
		die("client, %u established: %s, status %d", established,
		    rdma_event_str(event->event), event->status);
	}
}

/* An id is destroyed when its event is acknowledged. */
static void client_disconnected(struct rdma_cm_id *id)
{
	connection_end(id);
	if (!is_held)
		connection_start();
	else if (ended - 1 + at_once < num)
		must(rdma_disconnect(held[ended - 1 + at_once]) == 0, "rdma_disconnect: %s",
		     strerror(errno));
}

static void server_event(const struct rdma_cm_event *event, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = connection_param();

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (!started++)
			first_s = now_s();
		connection_make_qp(id);
		must(rdma_accept(id, &param) == 0, "rdma_accept: %s", strerror(errno));
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		asked_mark(++established);
		if (established < num)
			break;
		held_s = now_s();
		held_bytes = resident_bytes();
		break;
	default:
		die("server, %u established: %s, status %d", established,
		    rdma_event_str(event->event), event->status);
	}
}

static void server_disconnected(struct rdma_cm_id *id)
{
	if (is_held && !ended)
		completions_take(num);
	must(rdma_disconnect(id) == 0, "rdma_disconnect: %s", strerror(errno));
	connection_end(id);
}

static void run(void)
{
	struct rdma_cm_event *event;

	while (ended < num) {
		struct rdma_cm_id *id;
		bool is_end;

		must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event: %s",
		     strerror(errno));
		id = event->id;
		is_end = event->event == RDMA_CM_EVENT_DISCONNECTED;
		if (!is_end && event->event != RDMA_CM_EVENT_TIMEWAIT_EXIT)
			(is_client ? client_event : server_event)(event, id);
		rdma_ack_cm_event(event);
		if (is_end)
			(is_client ? client_disconnected : server_disconnected)(id);
	}
}

static void report(void)
{
	double end_s = now_s();

	if (!is_held)
		printf("connections: %u made and ended, %.0f a second\n", num,
		       num / (end_s - first_s));
	else
		printf("connections: %u held, made %.0f a second, ended %.0f a second, %ld bytes "
		       "each\n",
		       num, num / (held_s - first_s), num / (end_s - held_s),
		       (held_bytes - first_bytes) / num);
	printf("asked: %u sockets, %u dumps\n", sockets - sockets_before, dumps - dumps_before);
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *listener = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "ckn:w:p:")) != -1) {
		switch (opt) {
		case 'c': is_client = true; break;
		case 'k': is_held = true; break;
		case 'n': num = (unsigned int)atoi(optarg); break;
		case 'w': at_once = (unsigned int)atoi(optarg); break;
		case 'p': port = optarg; break;
		default: return 2;
		}
	}
	must(optind == argc - 1 && num && at_once,
	     "usage: connections [-k] [-n N] [-w N] [-p PORT] [-c] ADDRESS");
	resolve(argv[optind]);
	must((held = calloc(num, sizeof(*held))), "no memory");
	must((channel = rdma_create_event_channel()), "rdma_create_event_channel: %s",
	     strerror(errno));
	first_s = now_s();
	if (!is_client) {
		must(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0,
		     "rdma_create_id: %s", strerror(errno));
		must(rdma_bind_addr(listener, (struct sockaddr *)&address) == 0,
		     "rdma_bind_addr: %s", strerror(errno));
		must(rdma_listen(listener, (int)at_once * 2) == 0, "rdma_listen: %s",
		     strerror(errno));
	}
	first_bytes = resident_bytes();
	for (unsigned int i = 0; is_client && i < at_once; i++)
		connection_start();
	run();
	report();
	if (listener)
		must(rdma_destroy_id(listener) == 0, "rdma_destroy_id: %s", strerror(errno));
	rdma_destroy_event_channel(channel);
	return 0;
}
