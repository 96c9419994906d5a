/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* QP 1 and the address handles of its peers, on verbs and a CM of the test's own. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../user/rdmacm/addr.h"
#include "../../user/rdmacm/cm_device.h"
#include "../../user/rdmacm/qp1.h"
#include "../../user/verbs/xroce_cm.h"

enum { QUEUE = 128, PEERS = 5 };

/* An address handle; the memory stays, so that a late use shows. */
struct handle {
	struct ibv_ah ah;
	bool destroyed;
};

static struct handle handles[QUEUE];
static u32 num_handles, num_destroyed, num_sent, num_stale;
static struct cm_send outgoing[QUEUE];
static u32 out_first, out_last;
static struct cm_work *works[QUEUE];
static u32 num_works;

/* ---- verbs ---- */

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return 0;
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		num_sent++;
		num_stale += container_of(wr->wr.ud.ah, struct handle, ah)->destroyed;
	}
	return 0;
}

static int fake_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	return 0;
}

static struct ibv_context context = { .ops = { .post_recv = fake_post_recv,
					       .post_send = fake_post_send,
					       .poll_cq = fake_poll_cq } };
static struct ibv_pd pd = { .context = &context };
static struct ibv_mr mr = { .context = &context };
static struct ibv_cq cq = { .context = &context };
static struct ibv_qp qp = { .context = &context };
static struct ibv_comp_channel channel;

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	return &pd;
}

int ibv_dealloc_pd(struct ibv_pd *of)
{
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *of, void *addr, size_t n, int access)
{
	return &mr;
}

int ibv_dereg_mr(struct ibv_mr *of)
{
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	channel.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return &channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *of)
{
	return close(of->fd);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int n, void *arg, struct ibv_comp_channel *ch,
			     int vector)
{
	return &cq;
}

int ibv_destroy_cq(struct ibv_cq *of)
{
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *of, struct ibv_cq **from, void **arg)
{
	return -1;
}

void ibv_ack_cq_events(struct ibv_cq *of, unsigned int n)
{
}

struct ibv_qp *xroce_create_qp1(struct ibv_pd *of, struct ibv_qp_init_attr *attr)
{
	return &qp;
}

int ibv_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *of)
{
	return 0;
}

struct ibv_ah *xroce_cm_create_ah(struct ibv_pd *of, const struct ibv_ah_attr *attr, bool ask,
				  u8 mac[6])
{
	return &handles[num_handles++].ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	container_of(ah, struct handle, ah)->destroyed = true;
	num_destroyed++;
	return 0;
}

void xroce_cm_count(struct ibv_context *ctx, enum xroce_cm_count what)
{
}

/* ---- the CM and its thread ---- */

pthread_mutex_t rdmacm_lock = PTHREAD_MUTEX_INITIALIZER;
struct loop cm_loop;

void cancel_hold(void)
{
}

void cancel_release(void)
{
}

int loop_add(struct loop *loop, struct source *s)
{
	return 0;
}

void loop_remove(struct loop *loop, struct source *s)
{
}

void cm_timer_set(struct cm_timer *timer, u64 at_ns)
{
}

void cm_timer_clear(struct cm_timer *timer)
{
}

void cm_work_add(struct cm_work *work)
{
	works[num_works++] = work;
}

bool cm_work_here(void)
{
	return false;
}

int neighbours_open(void)
{
	return 0;
}

int cm_device_gid_index(const struct rdmacm_device *dev, const struct gid *gid)
{
	return 0;
}

void cm_device_turn(struct rdmacm_device *dev)
{
}

enum cm_drop cm_input(struct cm *cm, const struct cm_path *path, const void *mad, u32 len,
		      u64 now_ns)
{
	return (enum cm_drop)0;
}

bool cm_output(struct cm *cm, struct cm_send *send)
{
	if (out_first == out_last)
		return false;
	*send = outgoing[out_first++ % QUEUE];
	return true;
}

/* ---- cases ---- */

static struct rdmacm_device dev = { .own = &context };

static void device_starts(void)
{
	num_handles = num_destroyed = num_sent = num_stale = 0;
	out_first = out_last = num_works = 0;
	memset(handles, 0, sizeof(handles));
	assert_int_equal(qp1_make(&dev, &dev.qp1), 0);
}

static void device_stops(void)
{
	qp1_stop(dev.qp1);
	qp1_free(dev.qp1);
}

static void queue_mad(u8 high, u8 low)
{
	struct cm_send *send = &outgoing[out_last++ % QUEUE];

	*send = (struct cm_send){ .path.hop_limit = 64 };
	send->path.remote.raw[14] = high;
	send->path.remote.raw[15] = low;
}

/* Queues a MAD to peer i. All these peers belong to the same set of the table. */
static void queue_peer(u32 i)
{
	queue_mad((u8)i, (u8)(200 - 31 * i));
}

static void lookups_end(void)
{
	for (u32 i = 0; i < num_works; i++) {
		works[i]->do_work(works[i]);
		works[i]->done(works[i]);
	}
	num_works = 0;
}

/* Fills one set of the table with known peers. */
static void set_is_full(void)
{
	for (u32 i = 0; i < PEER_WAYS; i++)
		queue_peer(i);
	qp1_send(dev.qp1);
	lookups_end();
	assert_int_equal(num_handles, PEER_WAYS);
	assert_int_equal(num_sent, PEER_WAYS);
}

static void qp1_send__posts_before_a_handle_ends(void **state)
{
	_Static_assert(PEERS == PEER_WAYS + 1, "one peer more than a set holds");
	device_starts();
	set_is_full();
	for (u32 i = 0; i < PEERS; i++)
		queue_peer(i);
	qp1_send(dev.qp1);
	assert_int_equal(num_sent, 2 * PEER_WAYS);
	assert_int_equal(num_destroyed, 1);
	assert_int_equal(num_stale, 0);
	lookups_end();
	assert_int_equal(num_sent, 2 * PEER_WAYS + 1);
	device_stops();
}

/* No handle makes room for a peer that cannot be looked up. */
static void peers_find__keeps_handles_without_a_lookup(void **state)
{
	device_starts();
	set_is_full();
	for (u32 i = 0; num_works < 64 && i < 250; i++) {
		queue_mad(100, (u8)i);
		qp1_send(dev.qp1);
	}
	assert_int_equal(num_works, 64);
	num_destroyed = 0;
	queue_peer(PEER_WAYS);
	qp1_send(dev.qp1);
	assert_int_equal(num_works, 64);
	assert_int_equal(num_destroyed, 0);
	lookups_end();
	device_stops();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp1_send__posts_before_a_handle_ends),
		cmocka_unit_test(peers_find__keeps_handles_without_a_lookup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
