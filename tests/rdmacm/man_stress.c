/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * No page's sentence but what all of them take for granted: thousands of ids and connections, many
 * threads, descriptors that run out, calls that make no sense. Nothing leaks, hangs or crashes.
 */
#include <sys/resource.h>

#include "man.h"

/* Resident memory in KiB. */
static long resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, pages = -1;

	if (!f || fscanf(f, "%ld %ld", &size, &pages) != 2)
		pages = -1;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* ---- connections that come and go ---- */

static int rounds(int normal)
{
	const char *s = getenv("XROCE_MAN_ROUNDS");

	return s ? atoi(s) : normal;
}

/* One connection of two ends on one channel: made, ended by the way that n says, and destroyed. */
static bool come_and_go(struct rdma_event_channel *ch, struct rdma_cm_id *listen, int family, int n)
{
	struct rdma_cm_id *id[2] = { NULL };
	struct rdma_cm_event *e;

	MUST(id[0] = resolved(ch, RDMA_PS_TCP, own(family, ntohs(rdma_get_src_port(listen)))));
	MUST_EQ(create_qp(id[0]), 0);
	MUST_EQ(rdma_connect(id[0], NULL), 0);
	MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	id[1] = e->id;
	MUST_EQ(rdma_ack_cm_event(e), 0);
	if (n % 4 != 1) /* 1: destroyed unanswered */
		MUST_EQ(create_qp(id[1]), 0);
	if (n % 4 == 2) {
		MUST_EQ(rdma_reject(id[1], NULL, 0), 0);
	} else if (n % 4 != 1) {
		MUST_EQ(rdma_accept(id[1], NULL), 0);
		for (int i = 0; i < 2; i++) {
			MUST(e = next_event(ch));
			MUST_EQ(e->event, RDMA_CM_EVENT_ESTABLISHED);
			MUST_EQ(rdma_ack_cm_event(e), 0);
		}
		if (n % 4 == 3) {
			MUST_EQ(rdma_disconnect(id[0]), 0);
			MUST(take(ch, id[1], RDMA_CM_EVENT_DISCONNECTED));
			MUST_EQ(rdma_disconnect(id[1]), 0);
			MUST(take(ch, id[0], RDMA_CM_EVENT_DISCONNECTED));
		}
	}
	for (int i = 1; i >= 0; i--) {
		if (id[i]->qp)
			rdma_destroy_qp(id[i]);
		MUST_EQ(rdma_destroy_id(id[i]), 0);
	}
	return true;
}

static bool no_leak(int family)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	int all = rounds(800), fds = 0;
	struct rdma_cm_id *listen;
	long kib = 0;

	MUST(ch && (listen = listener(ch, RDMA_PS_TCP, own(family, 0), 16)));
	for (int n = 0; n < all; n++) {
		MUST(come_and_go(ch, listen, family, n));
		if (n == all / 4) {
			fds = open_fds();
			kib = resident();
		}
	}
	MUST_EQ(open_fds(), fds);
	printf("# %d connections: %ld KiB more\n", all - all / 4, resident() - kib);
	/* Connections in time-wait are small; 4 KiB each would be a leak. */
	MUST(resident() - kib < 2048 + (all - all / 4) * 2);
	MUST_EQ(rdma_destroy_id(listen), 0);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(no_leak)

/* ---- thousands ---- */

static bool thousands_of_ids(void)
{
	enum { N = 5000 };
	static struct rdma_cm_id *id[N];
	struct rdma_event_channel *ch = rdma_create_event_channel();
	int fds = 0;

	MUST(ch);
	for (int i = 0; i < N; i++) {
		union address at = i & 1 ? own(AF_INET, 0) : wild(AF_INET6, 0);

		MUST_EQ(rdma_create_id(ch, &id[i], NULL, i % 3 ? RDMA_PS_TCP : RDMA_PS_UDP), 0);
		if (i % 4 == 1)
			MUST_EQ(rdma_bind_addr(id[i], &at.sa), 0);
		if (i == 100)
			fds = open_fds(); /* with the device's */
	}
	for (int i = N - 1; i >= 0; i--)
		MUST_EQ(rdma_destroy_id(id[i]), 0);
	MUST_EQ(open_fds(), fds);
	rdma_destroy_event_channel(ch);
	return true;
}

/* Each of a thousand listeners gets its request, and no other's. */
static bool thousand_listeners(void)
{
	enum { N = 1000 };
	static struct rdma_cm_id *listen[N];
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	MUST(ch);
	for (int i = 0; i < N; i++)
		MUST(listen[i] = listener(ch, RDMA_PS_TCP,
					  i & 1 ? own(AF_INET, 0) : wild(AF_INET6, 0), 1));
	for (int i = 0; i < N; i += 83) {
		uint16_t port = ntohs(rdma_get_src_port(listen[i]));

		MUST(id = resolved(ch, RDMA_PS_TCP, own(AF_INET, port)));
		MUST_EQ(create_qp(id), 0);
		MUST_EQ(rdma_connect(id, NULL), 0);
		MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		MUST(e->listen_id == listen[i]);
		MUST_EQ(rdma_reject(e->id, NULL, 0), 0);
		{
			struct rdma_cm_id *child = e->id;

			MUST_EQ(rdma_ack_cm_event(e), 0);
			MUST_EQ(rdma_destroy_id(child), 0);
		}
		MUST(take_status(ch, id, RDMA_CM_EVENT_REJECTED, 28));
		rdma_destroy_qp(id);
		MUST_EQ(rdma_destroy_id(id), 0);
	}
	for (int i = 0; i < N; i++)
		MUST_EQ(rdma_destroy_id(listen[i]), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

/* ---- descriptors that run out ---- */

static bool descriptors_exhausted(void)
{
	struct rlimit limit, small;
	struct rdma_event_channel *ch = rdma_create_event_channel(), *more[64];
	struct rdma_cm_id *listen, *id;
	int n = 0, fds;

	MUST(ch && (listen = listener(ch, RDMA_PS_TCP, own(AF_INET, 0), 16)));
	MUST(come_and_go(ch, listen, AF_INET, 3));
	fds = open_fds();
	MUST_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	small = (struct rlimit){ (rlim_t)fds + 3, limit.rlim_max };
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
	while (n < 64 && (more[n] = rdma_create_event_channel()))
		n++;
	MUST(n < 64);
	MUST_EQ(errno, EMFILE);
	/* None for a synchronous id's channel; ids of a channel that is there need none. */
	MUST_EQ(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), -1);
	MUST(errno == EMFILE || errno == ENOMEM); /* ENOMEM is rdma-core's */
	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	{
		union address to = own(AF_INET, 7471);
		struct ibv_qp_init_attr a = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

		/* Calls that need one fail, and leave nothing allocated. */
		if (!rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS)) {
			MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
			MUST_ERR(rdma_create_qp(id, NULL, &a), EMFILE);
			MUST(!id->qp && !id->send_cq && !id->recv_cq && !id->send_cq_channel);
		}
	}
	MUST_EQ(rdma_destroy_id(id), 0);
	while (n)
		rdma_destroy_event_channel(more[--n]);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	MUST_EQ(open_fds(), fds);
	MUST(come_and_go(ch, listen, AF_INET, 3));
	MUST_EQ(rdma_destroy_id(listen), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

/* ---- threads ---- */

#define THREADS 8

static bool storm_run(int k, int n)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *listen;
	int family = k & 1 ? AF_INET6 : AF_INET;

	MUST(ch && (listen = listener(ch, RDMA_PS_TCP, own(family, 0), 16)));
	for (int i = 0; i < n; i++)
		MUST(come_and_go(ch, listen, family, i + k));
	MUST_EQ(rdma_destroy_id(listen), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

static void *storm_thread(void *arg)
{
	return storm_run((int)(intptr_t)arg, rounds(30)) ? arg : (void *)-1;
}

/* Each thread has its channel, listener and connections. */
static bool storm(void)
{
	pthread_t thread[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, storm_thread, (void *)i), 0);
	for (intptr_t i = 0; i < THREADS; i++) {
		void *how;

		MUST_EQ(pthread_join(thread[i], &how), 0);
		MUST(how == (void *)i);
	}
	return true;
}

/* All threads get and acknowledge on one channel, and destroy the events' ids. */
static struct rdma_event_channel *shared;
static atomic_int left, wrong;

static void *server_thread(void *arg)
{
	struct rdma_cm_event *e;

	while (atomic_load(&left) > 0) {
		struct rdma_cm_id *id;
		int type;

		if (!readable(shared->fd, 50) || rdma_get_cm_event(shared, &e))
			continue;
		id = e->id;
		type = e->event;
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			if (create_qp(id) || rdma_accept(id, NULL))
				atomic_fetch_add(&wrong, 1);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			rdma_disconnect(id);
		}
		rdma_ack_cm_event(e);
		if (type == RDMA_CM_EVENT_DISCONNECTED) {
			/* in a thread that got its event, while others wait for events */
			rdma_destroy_qp(id);
			if (rdma_destroy_id(id))
				atomic_fetch_add(&wrong, 1);
			atomic_fetch_sub(&left, 1);
		}
	}
	return NULL;
}

static bool one_channel(void)
{
	enum { N = 100 };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	pthread_t thread[4];
	struct rdma_cm_id *listen, *id;

	MUST(ch && (shared = rdma_create_event_channel()) && set_nonblocking(shared->fd, true));
	MUST(listen = listener(shared, RDMA_PS_TCP, own(AF_INET, 0), 16));
	atomic_store(&left, N);
	for (int i = 0; i < 4; i++)
		MUST_EQ(pthread_create(&thread[i], NULL, server_thread, NULL), 0);
	for (int i = 0; i < N; i++) {
		MUST(id = resolved(ch, RDMA_PS_TCP,
				   own(AF_INET, ntohs(rdma_get_src_port(listen)))));
		MUST_EQ(create_qp(id), 0);
		MUST_EQ(rdma_connect(id, NULL), 0);
		MUST(take(ch, id, RDMA_CM_EVENT_ESTABLISHED));
		if (i & 1) {
			MUST_EQ(rdma_disconnect(id), 0);
			MUST(take(ch, id, RDMA_CM_EVENT_DISCONNECTED));
		}
		rdma_destroy_qp(id);
		MUST_EQ(rdma_destroy_id(id), 0);
	}
	for (int i = 0; i < 4; i++)
		MUST_EQ(pthread_join(thread[i], NULL), 0);
	MUST_EQ(atomic_load(&wrong), 0);
	MUST_EQ(rdma_destroy_id(listen), 0);
	rdma_destroy_event_channel(shared);
	rdma_destroy_event_channel(ch);
	return true;
}

/* Ids are destroyed by a thread while their events come. */
static void *destroyer(void *arg)
{
	return rdma_destroy_id(arg) ? arg : NULL;
}

static bool destroy_under_events(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	/* its own: a request may come to it when the next id has started */
	struct rdma_event_channel *asked = rdma_create_event_channel();
	struct rdma_cm_id *listen;

	MUST(ch && asked && (listen = listener(asked, RDMA_PS_TCP, own(AF_INET, 0), 16)));
	for (int n = 0; n < 60; n++) {
		union address to = own(AF_INET, ntohs(rdma_get_src_port(listen)));
		struct rdma_cm_event *e;
		struct rdma_cm_id *id;
		pthread_t thread;
		void *how;

		MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
		if (n % 3) {
			MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
			MUST(take(ch, id, RDMA_CM_EVENT_ADDR_RESOLVED));
			MUST_EQ(rdma_resolve_route(id, WAIT_MS), 0);
		} else {
			MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, WAIT_MS), 0);
		}
		if (n % 3 == 2) {
			struct rdma_conn_param param = some_param(NULL, 0);

			MUST(take(ch, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
			param.qp_num = 77;
			MUST_EQ(rdma_connect(id, &param), 0);
		}
		MUST_EQ(pthread_create(&thread, NULL, destroyer, id), 0);
		MUST_EQ(pthread_join(thread, &how), 0);
		MUST(!how);
		MUST(!readable(ch->fd, 0));
		while (readable(asked->fd, 0)) {
			MUST_EQ(rdma_get_cm_event(asked, &e), 0);
			MUST_EQ(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
			id = e->id;
			MUST_EQ(rdma_ack_cm_event(e), 0);
			MUST_EQ(rdma_destroy_id(id), 0);
		}
	}
	MUST_EQ(rdma_destroy_id(listen), 0);
	rdma_destroy_event_channel(asked);
	rdma_destroy_event_channel(ch);
	return true;
}

const struct test_case man_cases[] = {
	CASE(no_leak_v4),
	CASE(no_leak_v6),
	CASE(thousands_of_ids),
	CASE(thousand_listeners),
	CASE(descriptors_exhausted),
	CASE(storm),
	CASE(one_channel),
	CASE(destroy_under_events),
	{ 0 },
};
