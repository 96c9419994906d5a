/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Listeners: which one a request is for, by port space, port and address; what keeps requests that
 * are too many, or do not say the truth about their addresses, from harm.
 */
#include "bench.h"

#define PEER 0x7700u

static struct gid ipv4(u8 last)
{
	return (struct gid){ { [10] = 0xff, 0xff, 10, 0, 0, last } };
}

static struct gid ipv6(u8 last)
{
	return (struct gid){ { 0xfd, [15] = last } };
}

static struct cm_path path_between(struct gid local, struct gid remote)
{
	return (struct cm_path){ .local = local, .remote = remote, .life = 14 };
}

/* A REQ with an IP header that matches its packet. */
static struct cm_mad ip_req(struct bench *b, const struct cm_path *path, u64 service_id, u32 id)
{
	const struct cm_ip_header ip = { 1000, path->remote, path->local };
	struct cm_mad req = bench_req(b, id);

	req.req.service_id = service_id;
	req.req.primary.local = path->remote;
	req.req.primary.remote = path->local;
	cm_ip_header_put(req.data, &ip);
	strcpy((char *)req.data + CM_IP_HEADER_BYTES, "hello");
	return req;
}

static struct cm_listener *listen_to(struct bench *b, u64 id, struct gid address, u8 families)
{
	const struct cm_service s = { .id = id, .address = address, .families = families };
	struct cm_listener *l;

	assert_int_equal(cm_listen(b->cm, &s, &l), 0);
	return l;
}

static const struct gid any;

/* Whose a request for this address and port is; NULL: it is refused. */
static struct cm_listener *asked(struct bench *b, struct gid address, u64 service_id)
{
	static u32 id = PEER;
	const bool v4 = gid_is_ipv4(&address);
	const struct cm_path path = path_between(address, v4 ? ipv4(200) : ipv6(200));
	const struct cm_mad req = ip_req(b, &path, service_id, ++id);
	struct cm_event e;

	if (bench_input_over(b, &path, &req) != CM_DROP_none)
		return NULL;
	e = bench_event(b, CM_EVENT_REQUEST);
	assert_int_equal(e.ip.source_port, 1000);
	assert_true(gid_equal(&e.ip.destination, &address));
	assert_string_equal((char *)e.mad.data, "hello");
	cm_close(b->cm, e.conn, b->now_ns);
	return e.listener;
}

static void cm_listen__by_address(void **state)
{
	const u64 port = cm_service_id(CM_PS_TCP, 5000);
	struct cm_listener *v4, *v6, *one;
	struct bench b;

	bench_make(&b, 64, 0);
	assert_null(asked(&b, ipv4(1), port));
	v4 = listen_to(&b, port, any, CM_IPV4);
	assert_ptr_equal(asked(&b, ipv4(1), port), v4);
	assert_null(asked(&b, ipv6(1), port));
	assert_null(asked(&b, ipv4(1), cm_service_id(CM_PS_TCP, 5001)));
	assert_null(asked(&b, ipv4(1), cm_service_id(CM_PS_UDP, 5000)));
	assert_null(asked(&b, ipv4(1), cm_service_id(CM_PS_IB, 5000)));
	v6 = listen_to(&b, port, any, CM_IPV4 | CM_IPV6);
	assert_ptr_equal(asked(&b, ipv6(1), port), v6);
	assert_ptr_equal(asked(&b, ipv4(1), port), v4); /* of its family alone */
	one = listen_to(&b, port, ipv4(2), CM_IPV4);
	assert_ptr_equal(asked(&b, ipv4(2), port), one);
	assert_ptr_equal(asked(&b, ipv4(1), port), v4);
	cm_unlisten(b.cm, v4, b.now_ns);
	assert_ptr_equal(asked(&b, ipv4(1), port), v6);
	cm_unlisten(b.cm, v6, b.now_ns);
	assert_null(asked(&b, ipv4(1), port));
	assert_ptr_equal(asked(&b, ipv4(2), port), one);
	/* whichever was there first */
	v6 = listen_to(&b, port, any, CM_IPV4 | CM_IPV6);
	v4 = listen_to(&b, port, any, CM_IPV4);
	assert_ptr_equal(asked(&b, ipv4(1), port), v4);
	assert_ptr_equal(asked(&b, ipv6(1), port), v6);
	bench_unmake(&b);
}

/* The reasons, of one REQ each. */
static u16 reject_in_turn(void *arg)
{
	const u16 **next = arg;

	return *(*next)++;
}

/* A request that the owner rejects leaves nothing behind, and costs the listener no room. */
static void cm_listen__owner_rejects(void **state)
{
	static const u16 reasons[] = { 28, 8, 0, 28 };
	const u16 *next = reasons;
	struct cm_mad req;
	struct cm_event e;
	struct bench b;

	bench_make_rejecting(&b, reject_in_turn, &next);
	bench_listen(&b, 1);
	for (u32 i = 0; i < 2; i++) {
		struct cm_mad rej;

		req = bench_req(&b, PEER + i);
		assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
		rej = bench_sent(&b, CM_REJ);
		assert_int_equal(rej.rej.reason, reasons[i]);
		assert_int_equal(rej.rej.about, CM_ABOUT_REQ);
		assert_int_equal(rej.remote_id, PEER + i);
		assert_int_equal(rej.tid, req.tid);
		bench_no_event(&b);
	}
	assert_int_equal(cm_stats(b.cm)->in_use, 0);
	req = bench_req(&b, PEER + 2);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	e = bench_event(&b, CM_EVENT_REQUEST);
	/* neither a repeated request nor one without room or a listener is asked about */
	bench_input(&b, &req);
	req = bench_req(&b, PEER + 3);
	assert_int_equal(bench_input(&b, &req), CM_DROP_backlog);
	req.req.service_id++;
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	cm_close(b.cm, e.conn, b.now_ns);
	/* nor a request of another kind */
	req = (struct cm_mad){ .kind = CM_SIDR_REQ, .tid = 9, .local_id = PEER + 4 };
	req.sidr_req.service_id = BENCH_SERVICE;
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	assert_ptr_equal(next, reasons + 3);
	bench_unmake(&b);
}

static void cm_listen__errors(void **state)
{
	struct cm_service s = { .id = 1, .families = CM_IPV4 };
	struct cm_listener *l;
	struct bench b;

	bench_make(&b, 4, 0); /* four listeners */
	assert_int_equal(cm_listen(b.cm, &s, &l), 0);
	assert_int_equal(cm_listen(b.cm, &s, &l), -EADDRINUSE);
	s.families = 0;
	assert_int_equal(cm_listen(b.cm, &s, &l), -EINVAL);
	s.families = 4;
	assert_int_equal(cm_listen(b.cm, &s, &l), -EINVAL);
	s.families = CM_IPV6;
	assert_int_equal(cm_listen(b.cm, &s, &l), 0);
	s.address = ipv6(1);
	assert_int_equal(cm_listen(b.cm, &s, &l), 0);
	s.id++;
	assert_int_equal(cm_listen(b.cm, &s, &l), 0);
	s.id++;
	assert_int_equal(cm_listen(b.cm, &s, &l), -ENOBUFS);
	cm_unlisten(b.cm, l, b.now_ns);
	assert_int_equal(cm_listen(b.cm, &s, &l), 0);
	bench_unmake(&b);
}

/* What the IP header says must be what the packet says. */
static void input_req__ip_header(void **state)
{
	const u64 port = cm_service_id(CM_PS_TCP, 5000);
	struct cm_path path = path_between(ipv4(1), ipv4(2));
	const struct cm_ip_header loopback = {
		1, { { [10] = 0xff, 0xff, 127, 0, 0, 1 } }, { { [10] = 0xff, 0xff, 127, 0, 0, 1 } }
	};
	struct cm_mad req;
	struct bench b;

	bench_make(&b, 64, 0);
	b.path = path;
	listen_to(&b, port, any, CM_IPV4 | CM_IPV6);
	req = ip_req(&b, &path, port, PEER);
	req.data[0] = 1;
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_CONSUMER_DEFINED);
	req = ip_req(&b, &path, port, PEER);
	req.data[19]++; /* another client */
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_INVALID_GID);
	req = ip_req(&b, &path, port, PEER);
	req.data[35]++; /* to what address */
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_INVALID_GID);
	req = ip_req(&b, &path, port, PEER);
	cm_ip_header_put(req.data, &loopback);
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_INVALID_GID);
	/* loopback from the host itself */
	path.remote = path.local;
	req = ip_req(&b, &path, port, PEER);
	cm_ip_header_put(req.data, &loopback);
	assert_int_equal(bench_input_over(&b, &path, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	bench_unmake(&b);
}

/* ---- too many ---- */

static void cm_take__makes_room_in_the_backlog(void **state)
{
	struct cm_conn *c[3];
	struct cm_mad req;
	struct bench b;

	bench_make(&b, 64, 0);
	bench_listen(&b, 2);
	c[0] = bench_requested(&b, PEER);
	c[1] = bench_requested(&b, PEER + 1);
	req = bench_req(&b, PEER + 2);
	assert_int_equal(bench_input(&b, &req), CM_DROP_backlog);
	bench_sent_nothing(&b); /* it will come again */
	cm_take(b.cm, c[0]);
	cm_take(b.cm, c[0]);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c[2] = bench_event(&b, CM_EVENT_REQUEST).conn;
	req = bench_req(&b, PEER + 3);
	assert_int_equal(bench_input(&b, &req), CM_DROP_backlog);
	cm_accept(b.cm, c[1], &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	req = bench_req(&b, PEER + 4);
	assert_int_equal(bench_input(&b, &req), CM_DROP_backlog);
	cm_close(b.cm, c[2], b.now_ns);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	c[2] = bench_event(&b, CM_EVENT_REQUEST).conn;
	/* of a peer that aborts, the request waits for the owner like others */
	req = bench_mad(CM_REJ, 1, PEER + 4, 0);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_REJECTED);
	req = bench_req(&b, PEER + 5);
	assert_int_equal(bench_input(&b, &req), CM_DROP_backlog);
	cm_take(b.cm, c[2]);
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	bench_unmake(&b);
}

static void input_req__half_open_of_one_peer(void **state)
{
	struct cm_mad req = { .kind = CM_SIDR_REQ, .tid = 9, .local_id = PEER }, dropped;
	struct cm_conn *c;
	struct bench b;
	struct gid other;

	bench_make(&b, 64, 3);
	bench_listen(&b, 0);
	req.sidr_req.service_id = BENCH_SERVICE;
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_SIDR_REQUEST);
	bench_accepted(&b, PEER + 1);
	c = bench_accepted(&b, PEER + 2);
	dropped = bench_req(&b, PEER + 3);
	assert_int_equal(bench_input(&b, &dropped), CM_DROP_half_open);
	bench_sent_nothing(&b);
	bench_dropped(&b, CM_DROP_half_open, 1);
	assert_int_equal(cm_stats(b.cm)->half_open, 3);
	/* others are not concerned */
	other = b.path.remote;
	b.path.remote.raw[15]++;
	bench_requested(&b, PEER);
	b.path.remote = other;
	/* completed requests do not count */
	req = bench_mad(CM_RTU, b.tid - 3, PEER + 2, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &req), CM_DROP_none);
	bench_event(&b, CM_EVENT_ESTABLISHED);
	assert_int_equal(cm_stats(b.cm)->half_open, 3);
	/* the peer repeats the request that was dropped */
	assert_int_equal(bench_input(&b, &dropped), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	assert_int_equal(cm_stats(b.cm)->half_open, 4);
	bench_unmake(&b);
}

/* Of an address whose peers ask and leave at once, the owner has no more to take than of others. */
static void input_req__peer_asks_and_leaves(void **state)
{
	struct cm_conn *c[3];
	struct cm_mad m;
	struct bench b;

	bench_make(&b, 64, 3);
	bench_listen(&b, 0);
	for (u32 i = 0; i < 3; i++) {
		c[i] = bench_requested(&b, PEER + i);
		m = bench_mad(CM_REJ, 1, PEER + i, 0);
		assert_int_equal(bench_input(&b, &m), CM_DROP_none);
		bench_event(&b, CM_EVENT_REJECTED);
	}
	m = bench_req(&b, PEER + 3);
	assert_int_equal(bench_input(&b, &m), CM_DROP_half_open);
	/* time does not take them */
	while (cm_deadline_ns(b.cm) != NSEC_NEVER)
		cm_expire(b.cm, cm_deadline_ns(b.cm));
	assert_int_equal(bench_input(&b, &m), CM_DROP_half_open);
	cm_take(b.cm, c[0]);
	assert_int_equal(bench_input(&b, &m), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	cm_close(b.cm, c[1], b.now_ns);
	m = bench_req(&b, PEER + 4);
	assert_int_equal(bench_input(&b, &m), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	assert_int_equal(cm_stats(b.cm)->half_open, 3);
	bench_unmake(&b);
}

/*
 * A flood of REQs from made-up addresses, all of which the program accepts: memory is bounded, and
 * what the program itself begins, and connections that are there, go on.
 */
static void input_req__flood(void **state)
{
	struct cm_conn *mine, *established;
	struct cm_event e;
	struct cm_mad m;
	struct cm_send send;
	struct bench b;
	u32 accepted = 0, refused = 0;
	struct gid peer;
	u64 tid;

	bench_make(&b, 64, 0);
	bench_listen(&b, 0);
	peer = b.path.remote;
	established = bench_established(&b, PEER);
	for (u32 i = 0; i < 10000; i++) {
		b.path.remote.raw[13] = (u8)(i >> 8);
		b.path.remote.raw[14] = (u8)i | 1;
		m = bench_req(&b, i);
		switch (bench_input(&b, &m)) {
		case CM_DROP_none:
			accepted++;
			break;
		case CM_DROP_resources:
			refused++;
			break;
		default:
			break;
		}
		while (cm_next_event(b.cm, &e))
			cm_accept(b.cm, e.conn, &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns);
		while (cm_output(b.cm, &send))
			;
		assert_true(cm_stats(b.cm)->in_use <= 48);
	}
	assert_int_equal(accepted, 47); /* three quarters, with the established one */
	assert_true(refused > 4000);
	b.path.remote = peer;
	mine = bench_replied(&b, PEER + 1, &tid);
	assert_int_equal(cm_ready(b.cm, mine, NULL, 0, b.now_ns), 0);
	bench_sent(&b, CM_RTU);
	m = bench_mad(CM_DREQ, 8, PEER, cm_conn_id(established));
	assert_int_equal(bench_input(&b, &m), CM_DROP_none);
	bench_event(&b, CM_EVENT_DISCONNECT);
	/* when the flood has timed out there is room again */
	cm_expire(b.cm, b.now_ns += 400 * NSEC_PER_SEC);
	for (u32 i = 0; i < 8; i++) {
		while (cm_next_event(b.cm, &e))
			if (e.kind == CM_EVENT_UNREACHABLE)
				cm_close(b.cm, e.conn, b.now_ns);
		while (cm_output(b.cm, &send))
			;
		cm_expire(b.cm, b.now_ns += 400 * NSEC_PER_SEC);
	}
	assert_int_equal(cm_stats(b.cm)->in_use, 2);
	bench_requested(&b, PEER + 9);
	bench_unmake(&b);
}

/* Refusals that are kept for repetition make room for new requests. */
static void input_req__refusals_make_room(void **state)
{
	const struct cm_rej rej = { .reason = CM_REJ_CONSUMER_DEFINED };
	struct cm_conn *c;
	struct cm_mad first, again;
	struct bench b;

	bench_make(&b, 8, 8);
	bench_listen(&b, 0);
	for (u32 i = 0; i < 100; i++) {
		const struct cm_mad req = bench_req(&b, PEER + i);

		if (!i)
			first = req;
		assert_int_equal(cm_stats(b.cm)->peers, 0);
		assert_int_equal(bench_input(&b, &req), CM_DROP_none);
		c = bench_event(&b, CM_EVENT_REQUEST).conn;
		assert_int_equal(cm_reject(b.cm, c, &rej, NULL, 0, b.now_ns), 0);
		bench_sent(&b, CM_REJ);
		cm_close(b.cm, c, b.now_ns);
		assert_true(cm_stats(b.cm)->in_use <= 6);
		again = req;
		assert_int_equal(bench_input(&b, &again), CM_DROP_duplicate);
		bench_sent(&b, CM_REJ);
	}
	assert_int_equal(cm_stats(b.cm)->made_room, 100 - 6);
	/* the oldest are forgotten first, and own connections take their place, too */
	assert_int_equal(bench_input(&b, &first), CM_DROP_none);
	bench_event(&b, CM_EVENT_REQUEST);
	for (u32 i = 0; i < 7; i++)
		bench_connect(&b, NULL);
	assert_int_equal(cm_stats(b.cm)->in_use, 8);
	assert_int_equal(cm_stats(b.cm)->closed, 0);
	bench_unmake(&b);
}

/* Nor does time-wait keep a program, or its peers, from connecting again and again. */
static void cm_connect__again_and_again(void **state)
{
	struct cm_conn *c;
	struct cm_mad m;
	struct bench b;

	bench_make(&b, 8, 8);
	bench_listen(&b, 0);
	for (u32 i = 0; i < 100; i++) {
		u64 tid;

		c = bench_established(&b, PEER + i);
		m = bench_mad(CM_DREQ, 5, PEER + i, cm_conn_id(c));
		assert_int_equal(bench_input(&b, &m), CM_DROP_none);
		bench_event(&b, CM_EVENT_DISCONNECT);
		cm_close(b.cm, c, b.now_ns);
		bench_sent(&b, CM_DREP);
		c = bench_connect(&b, &tid);
		m = bench_mad(CM_REJ, tid, 0, cm_conn_id(c));
		m.rej.reason = CM_REJ_STALE_CONN;
		assert_int_equal(bench_input(&b, &m), CM_DROP_none);
		bench_event(&b, CM_EVENT_REJECTED);
		cm_close(b.cm, c, b.now_ns);
	}
	assert_true(cm_stats(b.cm)->closed <= 8);
	/* a connection that its owner has not closed is not evicted */
	c = bench_established(&b, PEER);
	m = bench_mad(CM_DREQ, 5, PEER, cm_conn_id(c));
	assert_int_equal(bench_input(&b, &m), CM_DROP_none);
	bench_event(&b, CM_EVENT_DISCONNECT);
	assert_int_equal(cm_disconnect(b.cm, c, NULL, 0, b.now_ns), 0);
	bench_sent(&b, CM_DREP);
	for (u32 i = 0; i < 7; i++)
		bench_connect(&b, NULL);
	assert_int_equal(cm_conn_state(c), CM_TIMEWAIT);
	assert_int_equal(cm_stats(b.cm)->in_use, 8);
	bench_unmake(&b);
}

/* What makes room for a peer's request is what a peer had begun: its share does not grow. */
static void input_req__keeps_to_its_share(void **state)
{
	struct cm_conn *c;
	struct cm_mad m;
	struct bench b;
	u64 tid;

	bench_make(&b, 8, 8);
	bench_listen(&b, 0);
	for (u32 i = 0; i < 2; i++) {
		c = bench_connect(&b, &tid);
		m = bench_mad(CM_REJ, tid, 0, cm_conn_id(c));
		m.rej.reason = CM_REJ_STALE_CONN;
		assert_int_equal(bench_input(&b, &m), CM_DROP_none);
		bench_event(&b, CM_EVENT_REJECTED);
		cm_close(b.cm, c, b.now_ns);
	}
	for (u32 i = 0; i < 6; i++)
		bench_requested(&b, PEER + i);
	m = bench_req(&b, PEER + 6);
	assert_int_equal(bench_input(&b, &m), CM_DROP_resources);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_NO_RESOURCES);
	assert_int_equal(cm_stats(b.cm)->incoming, 6);
	/* the two of ours are still there, until we need them */
	assert_int_equal(cm_stats(b.cm)->closed, 2);
	bench_connect(&b, NULL);
	bench_connect(&b, NULL);
	assert_int_equal(cm_stats(b.cm)->closed, 0);
	bench_unmake(&b);
}

static void cm_unlisten__requests(void **state)
{
	struct cm_conn *taken, *seen;
	struct cm_mad req;
	struct bench b;

	bench_make(&b, 64, 0);
	bench_listen(&b, 0);
	taken = bench_requested(&b, PEER);
	cm_take(b.cm, taken);
	seen = bench_requested(&b, PEER + 1);
	req = bench_req(&b, PEER + 2);
	bench_input(&b, &req);
	cm_unlisten(b.cm, b.listener, b.now_ns);
	bench_no_event(&b);
	assert_int_equal(bench_sent(&b, CM_REJ).remote_id, PEER + 2);
	bench_sent_nothing(&b);
	/* connections known to the owner continue */
	assert_int_equal(cm_accept(b.cm, taken, &(struct cm_rep){ .qpn = 1 }, NULL, 0, b.now_ns),
			 0);
	assert_int_equal(cm_accept(b.cm, seen, &(struct cm_rep){ .qpn = 2 }, NULL, 0, b.now_ns), 0);
	bench_sent(&b, CM_REP);
	bench_sent(&b, CM_REP);
	req = bench_req(&b, PEER + 3);
	assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	assert_int_equal(bench_sent(&b, CM_REJ).rej.reason, CM_REJ_INVALID_SERVICE_ID);
	bench_unmake(&b);
}

/* Unsent refusals are bounded, and the excess is counted. */
static void cm_output__refusals_are_bounded(void **state)
{
	struct cm_mad req;
	struct bench b;

	bench_make(&b, 4, 0);
	for (u32 i = 0; i < 100; i++) {
		req = bench_req(&b, PEER + i);
		assert_int_equal(bench_input(&b, &req), CM_DROP_refused);
	}
	for (u32 i = 0; i < 64; i++)
		assert_int_equal(bench_sent(&b, CM_REJ).remote_id, PEER + i);
	bench_sent_nothing(&b);
	assert_int_equal(cm_stats(b.cm)->unsent, 36);
	assert_int_equal(cm_stats(b.cm)->sent[CM_REJ], 64);
	assert_int_equal(cm_stats(b.cm)->received[CM_REQ], 100);
	bench_unmake(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cm_listen__by_address),
		cmocka_unit_test(cm_listen__owner_rejects),
		cmocka_unit_test(cm_listen__errors),
		cmocka_unit_test(input_req__ip_header),
		cmocka_unit_test(cm_take__makes_room_in_the_backlog),
		cmocka_unit_test(input_req__half_open_of_one_peer),
		cmocka_unit_test(input_req__peer_asks_and_leaves),
		cmocka_unit_test(input_req__flood),
		cmocka_unit_test(input_req__refusals_make_room),
		cmocka_unit_test(cm_connect__again_and_again),
		cmocka_unit_test(input_req__keeps_to_its_share),
		cmocka_unit_test(cm_unlisten__requests),
		cmocka_unit_test(cm_output__refusals_are_bounded),
	};

	return cmocka_run_group_tests_name("listen", tests, NULL, NULL);
}
