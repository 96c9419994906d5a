/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections of short life, many at a time: each carries some messages there and back, and is
 * ended by the client.
 *
 *	cm_crowd serve ADDRESS [PORT]
 *	cm_crowd connect ADDRESS THREADS CONNECTIONS MESSAGES [PORT]
 *
 * The server has a thread for each connection, and a thread that takes the events of all and keeps
 * a connection's id in its own context: nothing is shared between two connections. It runs until it
 * is killed, and exits with 1 when any call or connection fails.
 */
#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cm.h"
#include "lib/ctl.h"

#define PORT	  7474
#define BYTES	  64
#define ALARM_S	  120 /* nothing takes this long */
#define BACKLOG	  256

static const char *address;
static uint16_t port = PORT;
static unsigned int connections, messages;

struct ends {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	sem_t disconnected;
	char receive[BYTES], send[BYTES];
};

static void ends_begin(struct ends *e)
{
	cm_make_qp(e->id);
	e->mr = rdma_reg_msgs(e->id, e, sizeof(*e));
	must(e->mr, "rdma_reg_msgs: %s", strerror(errno));
	must(!rdma_post_recv(e->id, NULL, e->receive, BYTES, e->mr), "rdma_post_recv: %s",
	     strerror(errno));
}

static void ends_end(struct ends *e)
{
	must(!rdma_dereg_mr(e->mr), "rdma_dereg_mr: %s", strerror(errno));
	cm_destroy_id(e->id);
}

static void ends_send(struct ends *e)
{
	struct ibv_wc wc;

	must(!rdma_post_send(e->id, NULL, e->send, BYTES, e->mr, 0), "rdma_post_send: %s",
	     strerror(errno));
	must(rdma_get_send_comp(e->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "sent: %s",
	     ibv_wc_status_str(wc.status));
}

/* False: the connection has ended. */
static bool ends_receive(struct ends *e)
{
	struct ibv_wc wc;

	must(rdma_get_recv_comp(e->id, &wc) == 1, "rdma_get_recv_comp: %s", strerror(errno));
	if (wc.status == IBV_WC_WR_FLUSH_ERR)
		return false;
	must(wc.status == IBV_WC_SUCCESS && wc.byte_len == BYTES, "received: %s, %u bytes",
	     ibv_wc_status_str(wc.status), wc.byte_len);
	return true;
}

/* ---- the server ---- */

static void *serve_one(void *arg)
{
	struct ends *e = arg;

	ends_begin(e);
	must(!rdma_accept(e->id, NULL), "rdma_accept: %s", strerror(errno));
	while (ends_receive(e)) {
		memcpy(e->send, e->receive, BYTES);
		must(!rdma_post_recv(e->id, NULL, e->receive, BYTES, e->mr), "rdma_post_recv: %s",
		     strerror(errno));
		ends_send(e);
	}
	/* the thread that took the event is done with the id */
	sem_wait(&e->disconnected);
	ends_end(e);
	free(e);
	return NULL;
}

static void serve_begin(struct rdma_cm_id *id)
{
	struct ends *e = calloc(1, sizeof(*e));
	pthread_t thread;

	must(e, "no memory");
	e->id = id;
	id->context = e;
	sem_init(&e->disconnected, 0, 0);
	must(!pthread_create(&thread, NULL, serve_one, e) && !pthread_detach(thread), "no thread");
}

static void serve(void)
{
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_event *ev;

	cm_listener(ch, address, port, RDMA_PS_TCP, BACKLOG);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct rdma_cm_id *id;
		enum rdma_cm_event_type type;
		int status;

		must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
		id = ev->id;
		type = ev->event;
		status = ev->status;
		must(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			serve_begin(id);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			struct ends *e = id->context;

			rdma_disconnect(id);
			sem_post(&e->disconnected);
		} else {
			must(type == RDMA_CM_EVENT_ESTABLISHED ||
				     type == RDMA_CM_EVENT_TIMEWAIT_EXIT,
			     "%s with %d", rdma_event_str(type), status);
		}
	}
}

/* ---- clients ---- */

static void connect_once(struct rdma_event_channel *ch, unsigned int n)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct ends *e = calloc(1, sizeof(*e));

	must(e, "no memory");
	e->id = cm_resolved(ch, address, port, RDMA_PS_TCP);
	ends_begin(e);
	must(!rdma_connect(e->id, &param), "rdma_connect: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
	for (unsigned int i = 0; i < messages; i++) {
		snprintf(e->send, BYTES, "%d: connection %u, message %u", (int)getpid(), n, i);
		ends_send(e);
		must(ends_receive(e), "message %u of connection %u: flushed", i, n);
		must(!memcmp(e->send, e->receive, BYTES), "'%s' instead of '%s'", e->receive,
		     e->send);
		must(!rdma_post_recv(e->id, NULL, e->receive, BYTES, e->mr), "rdma_post_recv: %s",
		     strerror(errno));
	}
	must(!rdma_disconnect(e->id), "rdma_disconnect: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_DISCONNECTED);
	ends_end(e);
	free(e);
}

static void *connect_all(void *arg)
{
	struct rdma_event_channel *ch = cm_channel();

	for (unsigned int n = 0; n < connections; n++)
		connect_once(ch, n);
	rdma_destroy_event_channel(ch);
	return NULL;
}

int main(int argc, char **argv)
{
	const bool serves = argc > 2 && !strcmp(argv[1], "serve");
	const int ports_at = serves ? 3 : 6;
	unsigned int threads;
	pthread_t *thread;

	must(serves || (argc > 5 && !strcmp(argv[1], "connect")),
	     "usage: cm_crowd serve|connect ADDRESS [THREADS CONNECTIONS MESSAGES] [PORT]");
	address = argv[2];
	if (argc > ports_at)
		port = (uint16_t)atoi(argv[ports_at]);
	if (serves)
		serve();
	alarm(ALARM_S);
	threads = (unsigned int)atoi(argv[3]);
	connections = (unsigned int)atoi(argv[4]);
	messages = (unsigned int)atoi(argv[5]);
	thread = calloc(threads, sizeof(*thread));
	must(thread, "no memory");
	for (unsigned int i = 0; i < threads; i++)
		must(!pthread_create(&thread[i], NULL, connect_all, NULL), "no thread");
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	printf("cm_crowd: %u connections\n", threads * connections);
	/* as most programs end: the device is not closed */
	return 0;
}
