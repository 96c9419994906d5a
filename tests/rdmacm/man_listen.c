/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* rdma_listen(3): many requests of one listener, its backlog, several listeners. */
#include "man.h"

#define N 24

static struct rdma_event_channel *ch[2];
static struct rdma_cm_id *active[N], *passive[N];

static bool open_ends(int n, int family, uint16_t port)
{
	for (int i = 0; i < n; i++) {
		MUST(active[i] = resolved(ch[0], RDMA_PS_TCP, own(family, port)));
		MUST_EQ(create_qp(active[i]), 0);
	}
	return true;
}

static bool close_ends(int n)
{
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < 2; k++) {
			struct rdma_cm_id *id = k ? passive[i] : active[i];

			if (!id)
				continue;
			if (id->qp)
				rdma_destroy_qp(id);
			MUST_EQ(rdma_destroy_id(id), 0);
		}
		active[i] = passive[i] = NULL;
	}
	for (int i = 0; i < 2; i++)
		rdma_destroy_event_channel(ch[i]);
	return true;
}

/* All ask before the first is answered; each request names its own peer. */
static bool many(int family)
{
	struct rdma_cm_id *listen;
	struct rdma_cm_event *e;
	int seen = 0;

	MUST((ch[0] = rdma_create_event_channel()) && (ch[1] = rdma_create_event_channel()));
	MUST(listen = listener(ch[1], RDMA_PS_TCP, own(family, 0), N));
	MUST(open_ends(N, family, ntohs(rdma_get_src_port(listen))));
	for (int i = 0; i < N; i++) {
		struct rdma_conn_param param = some_param(&i, sizeof(i));

		MUST_EQ(rdma_connect(active[i], &param), 0);
	}
	for (int n = 0; n < N; n++) {
		int i;

		MUST((e = next_event(ch[1])) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		MUST(e->listen_id == listen);
		memcpy(&i, e->param.conn.private_data, sizeof(i));
		MUST(i >= 0 && i < N && !passive[i]);
		passive[i] = e->id;
		MUST_EQ(e->param.conn.qp_num, active[i]->qp->qp_num);
		MUST_EQ(rdma_get_dst_port(passive[i]), rdma_get_src_port(active[i]));
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	/* Every third is rejected, the others accepted, the last first. */
	for (int i = N - 1; i >= 0; i--) {
		MUST_EQ(create_qp(passive[i]), 0);
		MUST_EQ(i % 3 ? rdma_accept(passive[i], NULL) :
				rdma_reject(passive[i], &i, sizeof(i)),
			0);
	}
	for (int n = 0; n < N; n++) {
		int i = 0;

		MUST(e = next_event(ch[0]));
		while (i < N && active[i] != e->id)
			i++;
		MUST(i < N);
		MUST_EQ(e->event, i % 3 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_REJECTED);
		MUST(i % 3 || !memcmp(e->param.conn.private_data, &i, sizeof(i)));
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	for (int n = 0; n < N - N / 3; n++) {
		MUST((e = next_event(ch[1])) && e->event == RDMA_CM_EVENT_ESTABLISHED);
		seen++;
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	MUST_EQ(seen, N - N / 3);
	MUST(no_event(ch[0]) && no_event(ch[1]));
	MUST_EQ(rdma_destroy_id(listen), 0);
	return close_ends(N);
}
BOTH(many)

/*
 * The kernel holds as many requests that were not got as the backlog says, and passes over others:
 * these are repeated, and come when there is room again.
 */
static bool backlog(int family)
{
	enum { WAITING = 2, ALL = 4 };
	struct rdma_cm_id *listen;
	struct rdma_cm_event *e;

	MUST((ch[0] = rdma_create_event_channel()) && (ch[1] = rdma_create_event_channel()));
	MUST(listen = listener(ch[1], RDMA_PS_TCP, own(family, 0), WAITING));
	MUST(open_ends(ALL, family, ntohs(rdma_get_src_port(listen))));
	for (int i = 0; i < ALL; i++)
		MUST_EQ(rdma_connect(active[i], NULL), 0);
	/* Requests beyond the backlog are rejected or come later; the first ones come. */
	for (int n = 0; n < WAITING; n++) {
		MUST((e = next_event(ch[1])) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		passive[n] = e->id;
		MUST_EQ(create_qp(passive[n]), 0);
		MUST_EQ(rdma_accept(passive[n], NULL), 0);
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	for (int n = 0; n < ALL; n++) {
		struct pollfd p[2] = { { .fd = ch[0]->fd, .events = POLLIN },
				       { .fd = ch[1]->fd, .events = POLLIN } };
		int answered = 0;

		MUST(poll(p, 2, 2 * WAIT_MS) > 0);
		if (p[1].revents) {
			MUST_EQ(rdma_get_cm_event(ch[1], &e), 0);
			if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
				for (answered = WAITING; passive[answered]; answered++)
					;
				passive[answered] = e->id;
				MUST_EQ(create_qp(e->id), 0);
				MUST_EQ(rdma_accept(e->id, NULL), 0);
			}
			MUST_EQ(rdma_ack_cm_event(e), 0);
			n--;
			continue;
		}
		MUST_EQ(rdma_get_cm_event(ch[0], &e), 0);
		MUST(e->event == RDMA_CM_EVENT_ESTABLISHED || e->event == RDMA_CM_EVENT_REJECTED);
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	MUST_EQ(rdma_destroy_id(listen), 0);
	return close_ends(ALL);
}
BOTH(backlog)

/*
 * A request beyond the backlog is not queued after the waiting ones. Another listener's request,
 * sent last, shows that all have arrived; no request is repeated before that one is taken.
 */
static bool backlog_is_kept(int family)
{
	struct rdma_event_channel *last = rdma_create_event_channel();
	struct rdma_cm_id *listen[2];
	struct rdma_cm_event *e;

	MUST((ch[0] = rdma_create_event_channel()) && (ch[1] = rdma_create_event_channel()));
	MUST(listen[0] = listener(ch[1], RDMA_PS_TCP, own(family, 0), 1));
	MUST(last && (listen[1] = listener(last, RDMA_PS_TCP, own(family, 0), 1)));
	for (int i = 0; i < 3; i++) {
		const uint16_t port = ntohs(rdma_get_src_port(listen[i / 2]));

		MUST(active[i] = resolved(ch[0], RDMA_PS_TCP, own(family, port)));
		MUST_EQ(create_qp(active[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		MUST_EQ(rdma_connect(active[i], NULL), 0);
	MUST((e = next_event(last)) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	passive[2] = e->id;
	MUST_EQ(rdma_ack_cm_event(e), 0);
	rdma_destroy_qp(active[1]);
	MUST_EQ(rdma_destroy_id(active[1]), 0);
	active[1] = NULL;
	MUST((e = next_event(ch[1])) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	passive[0] = e->id;
	MUST_EQ(rdma_get_dst_port(e->id), rdma_get_src_port(active[0]));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST(no_event(ch[1]));
	for (int i = 0; i < 2; i++)
		MUST_EQ(rdma_destroy_id(listen[i]), 0);
	MUST(close_ends(3));
	rdma_destroy_event_channel(last);
	return true;
}
BOTH(backlog_is_kept)

/* A specific listener and others on the same address: each gets its own port's requests. */
static bool listeners(int family)
{
	struct rdma_cm_id *listen[4];
	struct rdma_cm_event *e;

	MUST((ch[0] = rdma_create_event_channel()) && (ch[1] = rdma_create_event_channel()));
	for (int i = 0; i < 4; i++)
		MUST(listen[i] = listener(ch[1], RDMA_PS_TCP,
					  i & 1 ? wild(family, 0) : own(family, 0), 1));
	for (int i = 3; i >= 0; i--) {
		MUST(active[i] = resolved(ch[0], RDMA_PS_TCP,
					  own(family, ntohs(rdma_get_src_port(listen[i])))));
		MUST_EQ(create_qp(active[i]), 0);
		MUST_EQ(rdma_connect(active[i], NULL), 0);
		MUST((e = next_event(ch[1])) && e->event == RDMA_CM_EVENT_CONNECT_REQUEST);
		MUST(e->listen_id == listen[i]);
		passive[i] = e->id;
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	for (int i = 0; i < 4; i++)
		MUST_EQ(rdma_destroy_id(listen[i]), 0);
	return close_ends(4);
}
BOTH(listeners)

/*
 * RDMA_OPTION_ID_AFONLY: a listener on the IPv6 wildcard gets IPv4 requests too, or does not,
 * whenever the option was set.
 */
static bool families(bool only, bool before)
{
	union address at = wild(AF_INET6, 0);
	struct rdma_cm_id *listen, *id;
	struct rdma_cm_event *e;
	int value = only;

	MUST((ch[0] = rdma_create_event_channel()) && (ch[1] = rdma_create_event_channel()));
	MUST_EQ(rdma_create_id(ch[1], &listen, NULL, RDMA_PS_TCP), 0);
	for (int i = 0; i < 2; i++) {
		if (i == before)
			MUST_EQ(rdma_bind_addr(listen, &at.sa), 0);
		else
			MUST_EQ(rdma_set_option(listen, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
						&value, sizeof(value)),
				0);
	}
	MUST_EQ(rdma_listen(listen, 4), 0);
	for (int i = 0; i < 2; i++) {
		const int family = i ? AF_INET6 : AF_INET;
		const bool heard = i || !only;
		const uint16_t port = ntohs(rdma_get_src_port(listen));

		MUST(id = active[i] = resolved(ch[0], RDMA_PS_TCP, own(family, port)));
		MUST_EQ(create_qp(id), 0);
		MUST_EQ(rdma_connect(id, NULL), 0);
		MUST(e = next_event(ch[heard]));
		if (heard) {
			MUST_EQ(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
			passive[i] = e->id;
			MUST_EQ(rdma_get_peer_addr(e->id)->sa_family, family);
		} else {
			MUST_EQ(e->event, RDMA_CM_EVENT_REJECTED);
			/* the kernel rejects as a program would, or there is no such service */
			MUST(e->id == id && (e->status == 28 || e->status == 8));
		}
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	MUST(no_event(ch[1]));
	MUST_EQ(rdma_destroy_id(listen), 0);
	return close_ends(2);
}

static bool afonly_before_bind(void)
{
	return families(true, true);
}

static bool afonly_after_bind(void)
{
	return families(true, false);
}

static bool both_families(void)
{
	return families(false, true) && families(false, false);
}

const struct test_case man_cases[] = {
	CASE(many_v4),
	CASE(many_v6),
	CASE(backlog_v4),
	CASE(backlog_v6),
	CASE(backlog_is_kept_v4),
	CASE(backlog_is_kept_v6),
	CASE(listeners_v4),
	CASE(listeners_v6),
	CASE(afonly_before_bind),
	CASE(afonly_after_bind),
	CASE(both_families),
	{ 0 },
};
