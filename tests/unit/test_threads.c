/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/* tier: long tsan */
/*
 * Two engines of a device, each driven by its own thread under its own lock, as user/run does it;
 * QPs of both share CQs, an SRQ, a PD and its regions. Other
 * threads post and ring without a lock, one takes all completions and sleeps between by arming, and
 * the main one moves QPs between engines at the same time, with both locks held. Invariants:
 *
 *   every request completes well, each flow's messages in order, each receive once:
 *	no bell and no wake-up is lost
 *   atomics on one word by QPs of both engines add up: a word is a word
 *   what a type 1 window opened is not written to once it is seen closed:
 *	no engine uses a closed window any more
 *   type 2 windows come and go: a region's count of windows ends at 0
 *
 * Built with TSAN=1 (its mode tsan) it shows races as well.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#include "../../user/engine/engine.h"
#include "reference.h"

#if defined(__SANITIZE_THREAD__)
#define REQUESTS 40000
#elif defined(__SANITIZE_ADDRESS__)
#define REQUESTS 40000
#else
#define REQUESTS 200000 /* of a flow */
#endif
#define ENGINES	  2
#define LIMIT_NS  (120 * NSEC_PER_SEC) /* of the processors' time: then something hangs */
#define MAIL	  1024		       /* frames that wait for an engine */
#define BATCH	  32
#define FRAME_MAX 1024
#define DEPTH	  16
#define RECEIVES  64
#define PD	  1
#define PMTU	  256
#define SLOT	  2048 /* bytes of memory of a flow, and of a receive */

enum { MIXED, WINDOWED, THROUGH, BINDER };
static const struct { u32 kind; enum xroce_transport transport; } kinds[] = {
	{ MIXED, XROCE_RC }, { MIXED, XROCE_RC }, { MIXED, XROCE_RC }, { WINDOWED, XROCE_RC },
	{ THROUGH, XROCE_UC }, { THROUGH, XROCE_UC }, { BINDER, XROCE_RC },
};
#define FLOWS ARRAY_SIZE(kinds)

struct mail {
	u32 len;
	u8 data[FRAME_MAX];
};

struct shard {
	pthread_mutex_t lock; /* of the engine */
	u64 seed;
	struct engine *engine;
	struct xroce_engine_stats stats;
	struct xroce_drops drops;
	pthread_mutex_t mail_lock; /* within the other */
	struct mail mail[MAIL];
	u32 num_mail;
	struct mail taken[MAIL]; /* the thread's */
	pthread_t thread;
};

/* Two QPs connected to each other. One thread posts to both. */
struct flow {
	struct qp *qp[2];
	u32 posted[2];
	_Atomic u32 done[2];
	u32 messages; /* arrived ones: the consumer's */
	struct mr *mw;
	u32 mw_key;
};

static struct shard shard[ENGINES];
static struct flow flow[FLOWS];
static struct cq sends, recvs;
static struct srq srq;
static struct mr *memory_mr;
static u8 memory[(FLOWS + 1 + RECEIVES) * SLOT] __attribute__((aligned(SLOT)));
static _Atomic u32 events, limits, finished;
static _Atomic bool stop_posting, stop;

static u8 *const area = memory + FLOWS * SLOT, *const receives = memory + (FLOWS + 1) * SLOT;
/* the binder has no other use for its slot */
static _Atomic u64 *const counter = (_Atomic u64 *)(memory + FLOWS * SLOT - 8);

static u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (u64)t.tv_sec * NSEC_PER_SEC + (u64)t.tv_nsec;
}

static u64 now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* From any thread. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "test_threads: %s\n", what);
	_exit(1);
}

/* Between two looks at a condition. A loaded machine makes this test slow and no failure. */
static void wait_a_little(void)
{
	must(clock_ns(CLOCK_PROCESS_CPUTIME_ID) < LIMIT_NS, "something hangs");
	sched_yield();
}

static u64 random_key(void *arg)
{
	return next_random(arg); /* the engine's own: asked for while it is held */
}

static void lock_all(void)
{
	for (u32 i = 0; i < ENGINES; i++)
		pthread_mutex_lock(&shard[i].lock);
}

static void unlock_all(void)
{
	for (u32 i = 0; i < ENGINES; i++)
		pthread_mutex_unlock(&shard[i].lock);
}

/* ---- the engines' threads ---- */

/* A frame goes to where its QP lives now; one for which there is no room is lost. */
static void send_mail(const struct shard *from, const u8 *data, u32 len)
{
	const struct rx_frame rx = { .data = data, .len = len };
	const struct qp *qp = engine_frame_qp(from->engine, &rx);
	struct shard *to;

	must(qp && len <= FRAME_MAX, "a frame for nobody");
	to = &shard[engine_number(qp_engine(qp))];
	pthread_mutex_lock(&to->mail_lock);
	if (to->num_mail < MAIL) {
		to->mail[to->num_mail].len = len;
		memcpy(to->mail[to->num_mail++].data, data, len);
	}
	pthread_mutex_unlock(&to->mail_lock);
}

static u32 read_mail(struct shard *s, u64 now_ns)
{
	u32 n;

	pthread_mutex_lock(&s->mail_lock);
	n = s->num_mail;
	memcpy(s->taken, s->mail, n * sizeof(s->mail[0]));
	s->num_mail = 0;
	pthread_mutex_unlock(&s->mail_lock);
	for (u32 i = 0; i < n; i += BATCH) {
		struct engine_frame batch[BATCH];
		u32 count = min_u32(n - i, BATCH);
		u64 away = 0;

		for (u32 k = 0; k < count; k++)
			batch[k] = (struct engine_frame){ .frame = { .data = s->taken[i + k].data,
								     .len = s->taken[i + k].len } };
		engine_input_batch(s->engine, batch, count, now_ns, &away);
		/* its QP has moved since it was sent */
		for (u32 k = 0; k < count; k++)
			if (away >> k & 1)
				send_mail(s, s->taken[i + k].data, s->taken[i + k].len);
	}
	return n;
}

static void take_events(struct shard *s)
{
	struct engine_event e;

	while (engine_next_event(s->engine, &e)) {
		must(!(e.type & (EVENT_QP_STATE | EVENT_QP_FATAL | EVENT_CQ_ERR | EVENT_SRQ_ERR)),
		     "a QP, CQ or SRQ failed");
		if (e.type == EVENT_SRQ_LIMIT)
			atomic_fetch_add(&limits, 1);
		if (e.type == EVENT_COMPLETION && e.cq == &recvs)
			atomic_fetch_add(&events, 1);
	}
}

static void *drive(void *arg)
{
	static _Thread_local u8 frame[PACKET_FRAME_MAX];
	struct shard *s = arg;

	while (!atomic_load(&stop)) {
		u64 now_ns = now();
		u32 len, did;

		pthread_mutex_lock(&s->lock);
		did = read_mail(s, now_ns);
		if (now_ns >= engine_deadline_ns(s->engine))
			engine_expire(s->engine, now_ns);
		for (u32 i = 0; i < 2 * BATCH &&
				(len = engine_output(s->engine, frame, sizeof(frame), now_ns));
		     i++, did++)
			send_mail(s, frame, len);
		take_events(s);
		/* the other is running anyway, and looks */
		engine_passed_doorbells(s->engine);
		pthread_mutex_unlock(&s->lock);
		if (!did)
			sched_yield();
	}
	return NULL;
}

/* ---- posting, without a lock ---- */

static struct sge sge_of(const void *p, u32 len)
{
	return (struct sge){ .addr = (u64)(uintptr_t)p, .length = len, .lkey = memory_mr->key };
}

/* One request on a side of a flow, signaled; waits for room. fill sets its fields. */
static void post(u32 index, u32 side, const struct send_wqe *head, struct sge sge)
{
	struct flow *f = &flow[index];
	struct sq *sq = &f->qp[side]->sq;
	struct send_wqe *wqe;

	while (f->posted[side] - atomic_load(&f->done[side]) >= DEPTH)
		wait_a_little();
	sq_begin(sq);
	wqe = sq_slot(sq, 0);
	must(wqe, "no room although requests are done");
	memcpy(wqe, head, sizeof(*wqe));
	wqe->wr_id = side << 8 | index;
	wqe->flags |= WR_SIGNALED;
	wqe->num_sge = sge.length != 0;
	wqe->sge[0] = sge;
	must(!send_wqe_check(f->qp[side], wqe), "a request is refused");
	sq_publish(sq, 1);
	f->posted[side]++;
	engine_doorbell(f->qp[side]);
}

static void wait_done(u32 index, u32 side)
{
	while (atomic_load(&flow[index].done[side]) != flow[index].posted[side])
		wait_a_little();
}

static void post_mixed(u32 index, u32 n)
{
	u8 *own = memory + index * SLOT;
	struct send_wqe head = { .rkey = memory_mr->key };

	switch (n % 4) {
	case 0:
		head.opcode = WR_SEND_WITH_IMM;
		head.imm = htobe32(n / 4);
		head.length = 64;
		break;
	case 1:
		head.opcode = WR_FETCH_ADD;
		head.compare_add = index + 1;
		head.remote_addr = (u64)(uintptr_t)counter;
		head.length = 8;
		own += 512;
		break;
	case 2:
		head.opcode = WR_WRITE;
		head.remote_addr = (u64)(uintptr_t)own + 256;
		head.length = 200;
		break;
	default: /* three packets, of memory that is never written */
		head.opcode = WR_READ;
		head.remote_addr = (u64)(uintptr_t)area - 2 * SLOT;
		head.length = 2 * PMTU + 1;
		own += 1024;
		break;
	}
	post(index, 0, &head, sge_of(own, head.length));
}

/* A window is bound by one side, used by the other, and closed from afar. */
static void post_windowed(u32 index)
{
	struct flow *f = &flow[index];
	struct send_wqe bind = { .opcode = WR_BIND_MW }, write = { .opcode = WR_WRITE },
			send = { .opcode = WR_SEND_WITH_INV };
	u8 *own = memory + index * SLOT;

	bind.bind.mw_key = f->mw_key;
	bind.bind.new_key = (f->mw_key & ~0xffu) | ((f->mw_key + 1) & 0xff);
	bind.bind.lkey = memory_mr->key;
	bind.bind.addr = (u64)(uintptr_t)own + 256;
	bind.bind.length = 256;
	bind.bind.access = MR_REMOTE_WRITE;
	f->mw_key = bind.bind.new_key;
	post(index, 1, &bind, (struct sge){ 0 });
	wait_done(index, 1);
	write.rkey = send.inv_rkey = f->mw_key;
	write.remote_addr = bind.bind.addr;
	write.length = 256;
	send.length = 16;
	post(index, 0, &write, sge_of(own, write.length));
	post(index, 0, &send, sge_of(own, send.length));
	wait_done(index, 0);
}

/* Flows 0 and 1; 2 and 3. */
static void *post_all(void *arg)
{
	const u32 first = (u32)(uintptr_t)arg;

	for (u32 n = 0; n < REQUESTS; n++) {
		for (u32 i = first; i < first + 2; i++)
			if (kinds[i].kind == MIXED)
				post_mixed(i, n);
			else if (n % 16 == 0)
				post_windowed(i);
	}
	atomic_fetch_add(&finished, 1);
	return NULL;
}

/* WRITEs of two packets through the type 1 window, open or closed: UC reports neither. */
static void *post_through(void *arg)
{
	const struct send_wqe head = { .opcode = WR_WRITE,
				       .length = 2 * PMTU,
				       .remote_addr = (u64)(uintptr_t)area,
				       .rkey = flow[FLOWS - 1].mw->key };

	while (!atomic_load(&stop_posting))
		for (u32 i = 0; i < FLOWS; i++)
			if (kinds[i].kind == THROUGH)
				post(i, 0, &head, sge_of(memory + i * SLOT, head.length));
	return NULL;
}

/* ---- the completion thread ---- */

static void post_receive(u32 i)
{
	struct recv_wqe *wqe = rq_slot(&srq.rq, 0);

	must(wqe, "no room for a receive");
	wqe->wr_id = i;
	wqe->num_sge = 1;
	wqe->sge[0] = sge_of(receives + i * SLOT, SLOT);
	rq_publish(&srq.rq, 1);
}

static bool take_receives(void)
{
	static bool taken[RECEIVES];
	const struct cqe *e;
	bool any = false;

	for (; (e = cq_peek(&recvs)); any = true) {
		u32 i = 0, slot = (u32)e->wr_id;

		must(e->status == CQE_SUCCESS, "a completion in error");
		if (!(e->opcode & CQE_RECV)) {
			must(e->opcode == CQE_BIND_MW && slot >> 8 == 1,
			     "an unexpected completion");
			atomic_fetch_add(&flow[slot & 0xff].done[1], 1);
			cq_pop(&recvs);
			continue;
		}
		while (i < FLOWS && flow[i].qp[1]->qpn != e->qpn)
			i++;
		must(i < FLOWS && slot < RECEIVES && !taken[slot], "a receive that nobody posted");
		if (kinds[i].kind == MIXED)
			must(e->flags == CQE_WITH_IMM && e->byte_len == 64 &&
				     be32toh(e->imm) == flow[i].messages++,
			     "messages out of order");
		else
			must(kinds[i].kind == WINDOWED && e->flags == CQE_WITH_INV &&
				     e->byte_len == 16,
			     "not the message that was sent");
		taken[slot] = true;
		cq_pop(&recvs);
		taken[slot] = false;
		post_receive(slot);
	}
	return any;
}

static bool take_sends(void)
{
	const struct cqe *e;
	bool any = false;

	for (; (e = cq_peek(&sends)); any = true) {
		u32 i = (u32)e->wr_id;

		must(e->status == CQE_SUCCESS && i < FLOWS && e->qpn == flow[i].qp[0]->qpn,
		     "a send failed");
		atomic_fetch_add(&flow[i].done[0], 1);
		cq_pop(&sends);
	}
	return any;
}

static void *consume(void *arg)
{
	while (!atomic_load(&stop)) {
		u32 before = atomic_load(&events);

		take_sends();
		if (take_receives())
			continue;
		atomic_store(&recvs.armed, CQ_ARMED_ANY);
		if (take_receives())
			continue;
		/* nothing was there after arming: each new completion makes an event */
		while (atomic_load(&events) == before && !atomic_load(&stop))
			if (!take_sends())
				wait_a_little();
	}
	return NULL;
}

/* ---- the main thread: windows opened and closed, QPs moved ---- */

static void bind_type_1(u32 length)
{
	struct send_wqe bind = { .opcode = WR_BIND_MW };

	bind.bind.mw_key = bind.bind.new_key = flow[FLOWS - 1].mw->key;
	bind.bind.lkey = memory_mr->key;
	bind.bind.addr = (u64)(uintptr_t)area;
	bind.bind.length = length;
	bind.bind.access = MR_REMOTE_WRITE;
	post(FLOWS - 1, 0, &bind, (struct sge){ 0 });
	wait_done(FLOWS - 1, 0);
}

/* Both writers have sent something since. */
static void let_them_write(void)
{
	for (u32 i = 0; i < FLOWS; i++) {
		u32 before = atomic_load(&flow[i].done[0]);

		while (kinds[i].kind == THROUGH && atomic_load(&flow[i].done[0]) - before < 4)
			wait_a_little();
	}
}

static void move_some(u64 *seed, u32 *moves)
{
	lock_all();
	for (u32 i = 0; i < 4; i++) {
		struct qp *qp = flow[next_random(seed) % FLOWS].qp[next_random(seed) % 2];
		struct engine *to = shard[next_random(seed) % ENGINES].engine;

		*moves += qp_engine(qp) != to;
		engine_move_qp(to, qp, now());
	}
	unlock_all();
}

static void make_flow(u32 index)
{
	static const struct gid gid = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } };
	struct flow *f = &flow[index];

	for (u32 i = 0; i < 2; i++) {
		const struct qp_init init = {
			.transport = kinds[index].transport,
			.max_send_wr = 2 * DEPTH,
			.max_send_sge = 1,
			.srq = i ? &srq : NULL,
			.send_cq = i ? &recvs : &sends,
			.recv_cq = i ? &recvs : &sends,
			.pd = PD,
		};

		assert_int_equal(qp_create(shard[(index + i) % ENGINES].engine, &init, &f->qp[i]),
				 0);
	}
	for (u32 i = 0; i < 2; i++) {
		struct qp_attr attr = {
			.port = 1,
			.access = MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC,
			.path_mtu = PMTU,
			.timeout = 18,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = 4,
			.max_dest_rd_atomic = 4,
			.min_rnr_timer = 1,
			.dest_qpn = f->qp[!i]->qpn,
			.path = { .hop_limit = 64,
				  .udp_sport = path_udp_sport(0, f->qp[i]->qpn, f->qp[!i]->qpn),
				  .local = gid,
				  .peer = gid },
		};
		u32 required, optional;

		for (attr.state = QPS_INIT; attr.state <= QPS_RTS; attr.state++) {
			assert_true(qp_transition(kinds[index].transport, false, attr.state - 1,
						  attr.state, &required, &optional));
			assert_int_equal(qp_modify(shard[0].engine, f->qp[i], &attr,
						   required | QP_ATTR_STATE, now()),
					 0);
		}
	}
	if (kinds[index].kind == MIXED || kinds[index].kind == THROUGH)
		return;
	assert_int_equal(mw_add(engine_mr_table(shard[0].engine), PD,
				kinds[index].kind == BINDER ? MR_WINDOW_1 : MR_WINDOW_2, &f->mw),
			 0);
	f->mw_key = f->mw->key;
}

static int make_device(void **state)
{
	for (u32 i = 0; i < ENGINES; i++) {
		struct shard *s = &shard[i];
		const struct engine_config config = { .random = random_key,
						      .random_arg = &s->seed,
						      .stats = &s->stats,
						      .drops = &s->drops,
						      .number = i,
						      .sibling = i ? shard[0].engine : NULL };

		s->seed = i + 1;
		pthread_mutex_init(&s->lock, NULL);
		pthread_mutex_init(&s->mail_lock, NULL);
		assert_int_equal(engine_create(&config, &s->engine), 0);
	}
	assert_int_equal(mr_add(engine_mr_table(shard[0].engine), PD, memory, sizeof(memory),
				(u64)(uintptr_t)memory,
				MR_LOCAL_WRITE | MR_REMOTE_WRITE | MR_REMOTE_READ |
					MR_REMOTE_ATOMIC | MR_MW_BIND,
				&memory_mr),
			 0);
	assert_int_equal(
		cq_init(&sends, 1024) || cq_init(&recvs, 1024) || rq_init(&srq.rq, RECEIVES, 1), 0);
	srq.pd = PD;
	for (u32 i = 0; i < FLOWS; i++)
		make_flow(i);
	for (u32 i = 0; i < RECEIVES; i++)
		post_receive(i);
	return 0;
}

static int drop_device(void **state)
{
	struct mr_table *t = engine_mr_table(shard[0].engine);

	for (u32 i = 0; i < FLOWS; i++) {
		qp_destroy(shard[1].engine, flow[i].qp[0]);
		qp_destroy(shard[0].engine, flow[i].qp[1]);
		if (flow[i].mw)
			mr_remove(t, flow[i].mw);
	}
	mr_remove(t, memory_mr);
	cq_free(&sends);
	cq_free(&recvs);
	rq_free(&srq.rq);
	for (u32 i = 0; i < ENGINES; i++)
		engine_destroy(shard[i].engine);
	return 0;
}

static void engines__share_a_device(void **state)
{
	pthread_t posters[3], consumer;
	u32 moves = 0, limits_set = 0;
	u64 seed = 5, sum = 0;

	for (u32 i = 0; i < ENGINES; i++)
		assert_int_equal(pthread_create(&shard[i].thread, NULL, drive, &shard[i]), 0);
	assert_int_equal(pthread_create(&consumer, NULL, consume, NULL), 0);
	assert_int_equal(pthread_create(&posters[0], NULL, post_all, (void *)0), 0);
	assert_int_equal(pthread_create(&posters[1], NULL, post_all, (void *)2), 0);
	assert_int_equal(pthread_create(&posters[2], NULL, post_through, NULL), 0);
	do {
		bind_type_1(2 * PMTU);
		let_them_write();
		move_some(&seed, &moves);
		bind_type_1(0);
		memset(area, 0x5a, SLOT);
		let_them_write();
		for (u32 i = 0; i < SLOT; i++)
			must(area[i] == 0x5a, "somebody wrote through a window that was closed");
		/* a limit above the posted receives: reported once */
		lock_all();
		engine_srq_set_limit(shard[limits_set % ENGINES].engine, &srq, RECEIVES + 1);
		limits_set++;
		unlock_all();
		while (atomic_load(&limits) != limits_set)
			wait_a_little();
	} while (atomic_load(&finished) < 2);
	for (u32 i = 0; i < 2; i++)
		pthread_join(posters[i], NULL);
	atomic_store(&stop_posting, true);
	pthread_join(posters[2], NULL);
	for (u32 i = 0; i < FLOWS; i++) {
		wait_done(i, 0);
		wait_done(i, 1);
	}
	atomic_store(&stop, true);
	pthread_join(consumer, NULL);
	for (u32 i = 0; i < ENGINES; i++)
		pthread_join(shard[i].thread, NULL);

	for (u32 i = 0; i < FLOWS; i++)
		if (kinds[i].kind == MIXED) {
			sum += (u64)(i + 1) * (REQUESTS / 4);
			assert_int_equal(flow[i].messages, REQUESTS / 4);
		}
	assert_int_equal(atomic_load(counter), sum);
	assert_int_equal(memory_mr->windows, 0);
	assert_int_equal(atomic_load(&limits), limits_set);
	assert_true(moves > 0);
	for (u32 i = 0; i < ENGINES; i++)
		assert_int_equal(shard[i].drops.qp_unknown, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(engines__share_a_device, make_device, drop_device),
	};

	return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
