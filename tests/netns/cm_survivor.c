/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process whose broker ends while it is connected, connects, listens, and waits in each call
 * that waits:
 *
 *	cm_survivor OWN PEER PORT SILENT-PORT
 *
 * PEER accepts at PORT and never answers at SILENT-PORT. Prints "ready" when all calls wait; each
 * call must fail within WAIT_MS once the broker exits, and prints "NAME RESULT". A thread accepts
 * at any address, port ANY_PORT, to the end. Prints "ended" when all have returned, tries to
 * connect without a broker, and on SIGUSR1 connects again at once: "again MS".
 */
#define _GNU_SOURCE /* strerrorname_np() */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/cm.h"
#include "lib/ctl.h"

#define OWN_PORT    7490
#define STREAM_PORT 7491
#define SYNC_PORT   7492
#define ANY_PORT    7493
#define AGAIN_MS    3000

static const char *own, *peer;
static uint16_t port, silent_port;
static atomic_int waiting; /* calls that have not come back */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *name, const char *what, int err)
{
	pthread_mutex_lock(&lock);
	printf("%s %s%s%s\n", name, what, err ? " " : "", err ? strerrorname_np(err) : "");
	fflush(stdout);
	pthread_mutex_unlock(&lock);
}

static void came_back(const char *name, int result, int err)
{
	say(name, result < 0 ? "failed" : result ? "succeeded" : "ended", result < 0 ? err : 0);
	waiting--;
}

static void begin(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	waiting++;
	must(!pthread_create(&thread, NULL, run, arg) && !pthread_detach(thread), "no thread");
}

/* ---- calls that wait ---- */

static void *wait_for_async_event(void *arg)
{
	struct ibv_async_event ev;
	int err;

	do {
		err = ibv_get_async_event(arg, &ev) ? errno : 0;
		if (!err)
			ibv_ack_async_event(&ev);
	} while (!err && ev.event_type != IBV_EVENT_DEVICE_FATAL);
	say("async_event", err ? "failed" : ibv_event_type_str(ev.event_type), err);
	waiting--;
	return NULL;
}

static struct rdma_cm_id *endpoint(const char *address, uint16_t to, int flags)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = flags }, *info;
	struct rdma_cm_id *id;
	char service[8];

	snprintf(service, sizeof(service), "%u", to);
	must(!rdma_getaddrinfo(address, service, &hints, &info), "rdma_getaddrinfo");
	must(!rdma_create_ep(&id, info, NULL, &init), "rdma_create_ep: %s", strerror(errno));
	rdma_freeaddrinfo(info);
	return id;
}

static void *wait_for_request(void *arg)
{
	struct rdma_cm_id *id = endpoint(own, SYNC_PORT, RAI_PASSIVE), *request;
	int rc;

	must(!rdma_listen(id, 4), "rdma_listen");
	rc = rdma_get_request(id, &request);
	came_back("get_request", rc, errno);
	rdma_destroy_ep(id);
	return arg;
}

static void *wait_to_connect(void *arg)
{
	struct rdma_cm_id *id = endpoint(peer, silent_port, 0);
	int rc = rdma_connect(id, NULL);

	came_back("connect", rc, errno);
	rdma_destroy_ep(id);
	return arg;
}

static void *wait_for_message(void *arg)
{
	static char buf[64];
	struct rdma_cm_id *id = endpoint(peer, port, 0);
	struct ibv_mr *mr;
	struct ibv_wc wc = { 0 };
	int rc;

	must((mr = rdma_reg_msgs(id, buf, sizeof(buf))), "rdma_reg_msgs");
	must(!rdma_post_recv(id, NULL, buf, sizeof(buf), mr), "rdma_post_recv");
	must(!rdma_connect(id, NULL), "rdma_connect: %s", strerror(errno));
	rc = rdma_get_recv_comp(id, &wc);
	say("recv_comp", rc == 1 ? ibv_wc_status_str(wc.status) : "failed", rc == 1 ? 0 : errno);
	waiting--;
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
	return arg;
}

static int stream_listener;

static void *wait_for_stream(void *arg)
{
	int s = raccept(stream_listener, NULL, NULL), rc;
	char c;

	must(s >= 0, "raccept: %s", strerror(errno));
	rc = (int)rrecv(s, &c, 1, 0);
	came_back("rrecv_accepted", rc, errno);
	rclose(s);
	rc = raccept(stream_listener, NULL, NULL);
	came_back("raccept", rc < 0 ? -1 : 1, errno);
	return arg;
}

static void *wait_for_byte(void *arg)
{
	int s = rsocket(AF_INET, SOCK_STREAM, 0), rc;
	char c;

	must(s >= 0 && !rconnect(s, cm_address(own, STREAM_PORT), sizeof(struct sockaddr_in)),
	     "rconnect: %s", strerror(errno));
	rc = (int)rrecv(s, &c, 1, 0);
	came_back("rrecv", rc, errno);
	rclose(s);
	return arg;
}

/* ---- ids of a channel ---- */

static const char *names[] = { "listener", "connected", "connecting", "accepted" };
static struct rdma_cm_id *ids[4];

static struct rdma_cm_id *connect_by(struct rdma_event_channel *ch, const char *to, uint16_t at)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id = cm_resolved(ch, to, at, RDMA_PS_TCP);

	cm_make_qp(id);
	must(!rdma_connect(id, &param), "rdma_connect: %s", strerror(errno));
	return id;
}

static void *wait_for_events(void *arg)
{
	struct rdma_event_channel *ch = arg;
	int left = 4;

	while (left) {
		struct rdma_cm_event *ev;
		int i;

		must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
		for (i = 0; i < 4 && ids[i] != ev->id; i++)
			;
		must(i < 4, "an event of no id");
		say(names[i], rdma_event_str(ev->event), -ev->status);
		left -= ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
		rdma_ack_cm_event(ev);
	}
	for (int i = 0; i < 4; i++)
		cm_destroy_id(ids[i]);
	rdma_destroy_event_channel(ch);
	waiting--;
	return NULL;
}

static struct rdma_event_channel *make_ids(void)
{
	struct rdma_event_channel *ch = cm_channel(), *other = cm_channel();
	struct rdma_cm_event *ev;

	ids[0] = cm_listener(ch, own, OWN_PORT, RDMA_PS_TCP, 4);
	ids[1] = connect_by(other, own, OWN_PORT);
	ev = cm_expect(ch, CONNECT_REQUEST);
	ids[3] = ev->id;
	rdma_ack_cm_event(ev);
	cm_make_qp(ids[3]);
	must(!rdma_accept(ids[3], NULL), "rdma_accept: %s", strerror(errno));
	cm_pass(other, RDMA_CM_EVENT_ESTABLISHED);
	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
	ids[2] = connect_by(other, peer, silent_port);
	must(!rdma_migrate_id(ids[1], ch) && !rdma_migrate_id(ids[2], ch), "rdma_migrate_id: %s",
	     strerror(errno));
	rdma_destroy_event_channel(other);
	return ch;
}

/* ---- calls in progress ---- */

static void *accept_at_any(void *arg)
{
	struct rdma_event_channel *ch = arg;
	struct rdma_conn_param param = { 0 };

	for (;;) {
		enum rdma_cm_event_type type;
		struct rdma_cm_event *ev;
		struct rdma_cm_id *id;

		must(!rdma_get_cm_event(ch, &ev), "rdma_get_cm_event: %s", strerror(errno));
		type = ev->event;
		id = ev->id;
		say("any", rdma_event_str(type), 0);
		rdma_ack_cm_event(ev);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			cm_make_qp(id);
			must(!rdma_accept(id, &param), "rdma_accept: %s", strerror(errno));
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(id);
			cm_destroy_id(id);
		}
	}
	return NULL;
}

/* The call that fails, or the event; "connected" after all. */
static const char *try_to_connect(int *err)
{
	struct rdma_event_channel *ch = cm_channel();
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;
	const char *what;

	must(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), "rdma_create_id: %s", strerror(errno));
	if (rdma_resolve_addr(id, NULL, cm_address(peer, port), WAIT_MS)) {
		*err = errno;
		what = "rdma_resolve_addr";
	} else {
		must(poll(&p, 1, WAIT_MS) == 1 && !rdma_get_cm_event(ch, &ev), "no event");
		*err = -ev->status;
		what = rdma_event_str(ev->event);
		rdma_ack_cm_event(ev);
	}
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
	return what;
}

static void connect_again(void)
{
	const uint64_t begun_ms = now_ms();
	struct rdma_event_channel *ch = cm_channel();
	struct rdma_cm_id *id = connect_by(ch, peer, port);
	uint64_t took_ms;

	cm_pass(ch, RDMA_CM_EVENT_ESTABLISHED);
	took_ms = now_ms() - begun_ms;
	printf("again %llu\n", (unsigned long long)took_ms);
	must(took_ms < AGAIN_MS, "that took long");
	must(!rdma_disconnect(id), "rdma_disconnect: %s", strerror(errno));
	cm_pass(ch, RDMA_CM_EVENT_DISCONNECTED);
	cm_destroy_id(id);
	rdma_destroy_event_channel(ch);
}

int main(int argc, char **argv)
{
	struct rdma_event_channel *ch, *any = cm_channel();
	uint64_t begun_ms;
	const char *what;
	sigset_t usr1;
	pthread_t thread;
	int sig, err = 0;

	must(argc == 5, "usage: cm_survivor OWN PEER PORT SILENT-PORT");
	own = argv[1];
	peer = argv[2];
	port = (uint16_t)atoi(argv[3]);
	silent_port = (uint16_t)atoi(argv[4]);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigaddset(&usr1, SIGUSR2);
	must(!pthread_sigmask(SIG_BLOCK, &usr1, NULL), "pthread_sigmask");
	cm_listener(any, "0.0.0.0", ANY_PORT, RDMA_PS_TCP, 4);
	must(!pthread_create(&thread, NULL, accept_at_any, any), "no thread");
	ch = make_ids();
	stream_listener = rsocket(AF_INET, SOCK_STREAM, 0);
	must(stream_listener >= 0 &&
		     !rbind(stream_listener, cm_address(own, STREAM_PORT),
			    sizeof(struct sockaddr_in)) &&
		     !rlisten(stream_listener, 4),
	     "rlisten: %s", strerror(errno));
	begin(wait_for_events, ch);
	begin(wait_for_async_event, ids[1]->verbs);
	begin(wait_for_request, NULL);
	begin(wait_to_connect, NULL);
	begin(wait_for_message, NULL);
	waiting++; /* raccept() after rrecv() */
	begin(wait_for_stream, NULL);
	begin(wait_for_byte, NULL);
	sleep(1); /* until they wait; can only miss a fault */
	printf("ready %d\n", (int)waiting);
	fflush(stdout);
	must(!sigwait(&usr1, &sig), "sigwait"); /* the broker has ended */
	begun_ms = now_ms();
	while (waiting && now_ms() - begun_ms < WAIT_MS)
		usleep(1000);
	printf("%d wait after %llu ms\n", (int)waiting, (unsigned long long)(now_ms() - begun_ms));
	what = try_to_connect(&err);
	say("without", what, err);
	say("ended", "", 0);
	must(!waiting, "calls have not come back");
	must(!sigwait(&usr1, &sig), "sigwait"); /* there is another one */
	connect_again();
	say("asked", "", 0);
	must(!sigwait(&usr1, &sig), "sigwait"); /* others have connected to ANY_PORT */
	return 0;
}
