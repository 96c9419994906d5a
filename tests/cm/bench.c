/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "bench.h"

u64 bench_draw(void *arg)
{
	return rng_next(arg);
}

static void make(struct bench *b, u32 capacity, u32 half_open, u16 (*reject)(void *arg), void *arg)
{
	const struct cm_options options = { .random = bench_draw,
					    .random_arg = &b->rng,
					    .id_first = BENCH_ID_FIRST,
					    .id_count = BENCH_ID_COUNT,
					    .ca_guid = 0xabcd,
					    .capacity = capacity,
					    .half_open = half_open,
					    .reject = reject,
					    .reject_arg = arg,
					    .listeners = 4 };

	*b = (struct bench){ .rng = { 1 },
			     .now_ns = NSEC_PER_SEC,
			     .tid = 0x1000,
			     .path = { .local = { { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
				       .remote = { { [10] = 0xff, 0xff, 10, 0, 0, 2 } },
				       .interface = 4,
				       .life = 14 } };
	assert_int_equal(cm_create(&options, &b->cm), 0);
}

void bench_make(struct bench *b, u32 capacity, u32 half_open)
{
	make(b, capacity, half_open, NULL, NULL);
}

void bench_make_rejecting(struct bench *b, u16 (*reject)(void *arg), void *arg)
{
	make(b, 64, 0, reject, arg);
}

void bench_unmake(struct bench *b)
{
	cm_destroy(b->cm);
}

void bench_listen(struct bench *b, u32 backlog)
{
	const struct cm_service service = { .id = BENCH_SERVICE,
					    .families = CM_IPV4,
					    .backlog = backlog,
					    .context = b };

	assert_int_equal(cm_listen(b->cm, &service, &b->listener), 0);
}

struct cm_mad bench_req(struct bench *b, u32 id)
{
	return (struct cm_mad){
		.kind = CM_REQ,
		.tid = b->tid++,
		.local_id = id,
		.req = { .service_id = BENCH_SERVICE,
			 .qpn = id & 0xffffff,
			 .remote_response_timeout = BENCH_RESPONSE,
			 .local_response_timeout = BENCH_RESPONSE,
			 .pkey = 0xffff,
			 .mtu = 5,
			 .max_retries = BENCH_RETRIES,
			 .primary = { .local = b->path.remote,
				      .remote = b->path.local,
				      .ack_timeout = BENCH_ACK } },
	};
}

struct cm_mad bench_mad(enum cm_kind kind, u64 tid, u32 peer_id, u32 id)
{
	struct cm_mad m = { .kind = kind, .tid = tid, .local_id = peer_id, .remote_id = id };

	if (kind == CM_DREQ)
		m.dreq.qpn = BENCH_QPN;
	if (kind == CM_REP)
		m.rep.qpn = BENCH_PEER_QPN;
	return m;
}

enum cm_drop bench_input_over(struct bench *b, const struct cm_path *path,
			      const struct cm_mad *m)
{
	u8 mad[CM_MAD_BYTES];

	cm_mad_encode(mad, m);
	return cm_input(b->cm, path, mad, sizeof(mad), b->now_ns);
}

enum cm_drop bench_input(struct bench *b, const struct cm_mad *m)
{
	return bench_input_over(b, &b->path, m);
}

struct cm_mad bench_sent(struct bench *b, enum cm_kind kind)
{
	struct cm_send send;
	struct cm_mad m;

	if (!cm_output(b->cm, &send))
		fail_msg("nothing is sent instead of %#x", kind);
	assert_int_equal(cm_mad_decode(&m, send.mad, sizeof(send.mad)), CM_DROP_none);
	assert_int_equal(m.kind, kind);
	assert_memory_equal(&send.path.local, &b->path.local, sizeof(struct gid));
	assert_memory_equal(&send.path.remote, &b->path.remote, sizeof(struct gid));
	assert_int_equal(send.path.interface, b->path.interface);
	return m;
}

void bench_sent_nothing(struct bench *b)
{
	struct cm_send send;

	assert_false(cm_output(b->cm, &send));
}

struct cm_event bench_event(struct bench *b, enum cm_event_kind kind)
{
	struct cm_event e;

	if (!cm_next_event(b->cm, &e))
		fail_msg("no event instead of %d", kind);
	assert_int_equal(e.kind, kind);
	return e;
}

void bench_no_event(struct bench *b)
{
	struct cm_event e;

	assert_false(cm_next_event(b->cm, &e));
}

u64 bench_interval_ns(void)
{
	return 2 * cm_time_ns(14) + cm_time_ns(BENCH_RESPONSE);
}

void bench_wait(struct bench *b, u64 ns)
{
	assert_int_equal(cm_deadline_ns(b->cm), b->now_ns + ns);
	cm_expire(b->cm, b->now_ns + ns - 1);
	bench_sent_nothing(b);
	bench_no_event(b);
	b->now_ns += ns;
	cm_expire(b->cm, b->now_ns);
}

struct cm_conn *bench_connect(struct bench *b, u64 *tid)
{
	const struct cm_req req = { .service_id = BENCH_SERVICE,
				    .qpn = BENCH_QPN,
				    .remote_response_timeout = BENCH_RESPONSE,
				    .local_response_timeout = BENCH_RESPONSE,
				    .mtu = 5,
				    .pkey = 0xffff,
				    .max_retries = BENCH_RETRIES,
				    .primary.ack_timeout = BENCH_ACK };
	struct cm_conn *c;
	struct cm_mad m;

	assert_int_equal(cm_connect(b->cm, &b->path, &req, NULL, 0, b, b->now_ns, &c), 0);
	m = bench_sent(b, CM_REQ);
	assert_int_equal(m.local_id, cm_conn_id(c));
	if (tid)
		*tid = m.tid;
	return c;
}

struct cm_conn *bench_replied(struct bench *b, u32 peer_id, u64 *tid)
{
	u64 t;
	struct cm_conn *c = bench_connect(b, &t);
	const struct cm_mad rep = bench_mad(CM_REP, t, peer_id, cm_conn_id(c));

	assert_int_equal(bench_input(b, &rep), CM_DROP_none);
	bench_event(b, CM_EVENT_REPLY);
	if (tid)
		*tid = t;
	return c;
}

struct cm_conn *bench_requested(struct bench *b, u32 peer_id)
{
	const struct cm_mad req = bench_req(b, peer_id);
	struct cm_event e;

	assert_int_equal(bench_input(b, &req), CM_DROP_none);
	e = bench_event(b, CM_EVENT_REQUEST);
	assert_ptr_equal(e.context, b);
	assert_ptr_equal(e.listener, b->listener);
	return e.conn;
}

struct cm_conn *bench_accepted(struct bench *b, u32 peer_id)
{
	struct cm_conn *c = bench_requested(b, peer_id);

	assert_int_equal(cm_accept(b->cm, c, &(struct cm_rep){ .qpn = BENCH_QPN }, NULL, 0,
				   b->now_ns), 0);
	bench_sent(b, CM_REP);
	return c;
}

struct cm_conn *bench_established(struct bench *b, u32 peer_id)
{
	struct cm_conn *c = bench_accepted(b, peer_id);
	const struct cm_mad rtu = bench_mad(CM_RTU, b->tid - 1, peer_id, cm_conn_id(c));

	assert_int_equal(bench_input(b, &rtu), CM_DROP_none);
	bench_event(b, CM_EVENT_ESTABLISHED);
	assert_int_equal(cm_conn_state(c), CM_ESTABLISHED);
	return c;
}

void bench_dropped(const struct bench *b, enum cm_drop drop, u64 times)
{
	assert_int_equal(cm_stats(b->cm)->dropped[drop], times);
}

void bench_close(struct bench *b, struct cm_conn *c)
{
	cm_close(b->cm, c, b->now_ns);
	assert_int_equal(cm_stats(b->cm)->in_use, cm_stats(b->cm)->closed);
}
