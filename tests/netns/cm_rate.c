/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast connections come and go, and how many there can be at once.
 *
 *   cm_rate serve ADDRESS		accepts all, until it is ended
 *   cm_rate cycles ADDRESS COUNT WINDOW	COUNT times connect and disconnect, WINDOW at once
 *   cm_rate hold ADDRESS COUNT	COUNT connections at once, then the end of all
 *
 * Each connection has its own QP at both ends, on one CQ.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/cm.h"
#include "lib/ctl.h"

#define PORT 7471
#define WINDOW_OF_HOLD 256

static struct rdma_event_channel *ch;
static struct ibv_cq *cq;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = cq;
	must(cq && !rdma_create_qp(id, NULL, &attr), "rdma_create_qp: %s", strerror(errno));
}

static void end(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	must(!rdma_destroy_id(id), "rdma_destroy_id: %s", strerror(errno));
}

static long resident_kb(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	must(f && fscanf(f, "%*s %ld", &pages) == 1, "no /proc/self/statm");
	fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void serve(const char *address)
{
	struct rdma_conn_param param = { 0 };
	long accepted = 0, before = resident_kb();

	cm_listener(ch, address, PORT, RDMA_PS_TCP, 0);
	printf("listening\n");
	fflush(stdout);
	for (;;) {
		struct rdma_cm_event *ev;
		enum rdma_cm_event_type type;
		struct rdma_cm_id *id;

		must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
		type = ev->event;
		id = ev->id;
		rdma_ack_cm_event(ev);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			make_qp(id);
			must(!rdma_accept(id, &param), "rdma_accept: %s", strerror(errno));
			if (++accepted % 1000 == 0) {
				printf("accepted %ld, resident %ld kB more\n", accepted,
				       resident_kb() - before);
				fflush(stdout);
			}
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(id);
			end(id);
		} else if (type != RDMA_CM_EVENT_ESTABLISHED) {
			/* a peer that gave up: its request is answered again later */
			printf("%s\n", rdma_event_str(type));
			end(id);
		}
	}
}

static struct rdma_cm_id *begin(const char *address)
{
	struct rdma_cm_id *id;

	must(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), "rdma_create_id: %s", strerror(errno));
	must(!rdma_resolve_addr(id, NULL, cm_address(address, PORT), WAIT_MS),
	     "rdma_resolve_addr: %s", strerror(errno));
	return id;
}

/* The next step of an id with an event: the id that is connected, or disconnected, or NULL. */
static struct rdma_cm_id *step(enum rdma_cm_event_type *type)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	int status;

	must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
	*type = ev->event;
	status = ev->status;
	id = ev->id;
	rdma_ack_cm_event(ev);
	switch (*type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		must(!rdma_resolve_route(id, WAIT_MS), "rdma_resolve_route: %s", strerror(errno));
		return NULL;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(id);
		must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
		return NULL;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_DISCONNECTED:
		return id;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return NULL;
	default:
		die("%s with %d", rdma_event_str(*type), status);
	}
}

static void cycles(const char *address, long count, long window)
{
	long begun = 0, ended = 0;
	double start = now_s();

	while (ended < count) {
		enum rdma_cm_event_type type;
		struct rdma_cm_id *id;

		for (; begun < count && begun - ended < window; begun++)
			begin(address);
		id = step(&type);
		if (id && type == RDMA_CM_EVENT_ESTABLISHED) {
			must(!rdma_disconnect(id), "rdma_disconnect: %s", strerror(errno));
		} else if (id) {
			end(id);
			ended++;
		}
	}
	printf("%.0f cycles/s\n", (double)count / (now_s() - start));
}

static void hold(const char *address, long count)
{
	struct rdma_cm_id **ids = calloc((size_t)count, sizeof(struct rdma_cm_id *));
	long begun = 0, connected = 0, before = resident_kb();
	enum rdma_cm_event_type type;
	double start = now_s();

	must(ids, "no memory");
	while (connected < count) {
		struct rdma_cm_id *id;

		for (; begun < count && begun - connected < WINDOW_OF_HOLD; begun++)
			begin(address);
		id = step(&type);
		if (!id)
			continue;
		must(type == RDMA_CM_EVENT_ESTABLISHED, "%s", rdma_event_str(type));
		ids[connected++] = id;
	}
	printf("%ld connections in %.1f s, %.1f kB each\n", count, now_s() - start,
	       (double)(resident_kb() - before) / (double)count);
	for (long i = 0; i < count; i++)
		must(!rdma_disconnect(ids[i]), "rdma_disconnect: %s", strerror(errno));
	for (long gone = 0; gone < count;) {
		struct rdma_cm_id *id = step(&type);

		if (id) {
			end(id);
			gone++;
		}
	}
	printf("all ended after %.1f s\n", now_s() - start);
	free(ids);
}

int main(int argc, char **argv)
{
	must(argc >= 3, "usage: cm_rate serve|cycles|hold ADDRESS [COUNT [WINDOW]]");
	ch = cm_channel();
	if (!strcmp(argv[1], "serve"))
		serve(argv[2]);
	else if (!strcmp(argv[1], "cycles") && argc == 5)
		cycles(argv[2], atol(argv[3]), atol(argv[4]));
	else if (!strcmp(argv[1], "hold") && argc == 4)
		hold(argv[2], atol(argv[3]));
	else
		die("no such call");
	return 0;
}
