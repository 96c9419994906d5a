/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The test bench. Needs root (CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW). */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>

#include "bench.h"

const uint8_t bench_local4[16] = { [10] = 0xff, 0xff, 10, 9, 0, 2 };
const uint8_t bench_peer4[16] = { [10] = 0xff, 0xff, 10, 9, 0, 1 };
const uint8_t bench_local6[16] = { 0xfd, 0, 0, 9, [15] = 2 };
const uint8_t bench_peer6[16] = { 0xfd, 0, 0, 9, [15] = 1 };

static struct bench the_bench;
struct bench *bench = &the_bench;
bool bench_in_dispatcher;
uint32_t bench_ring_bytes;

static int map_fd(struct bpf_map *map)
{
	return bpf_map__fd(map);
}

static void *map_memory(struct bpf_map *map, size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd(map), 0);

	return p == MAP_FAILED ? NULL : p;
}

int bench_setup(void **state)
{
	struct bench *b = &the_bench;

	b->skel = xroce_bpf__open();
	if (b->skel) {
		b->skel->rodata->xroce_in_dispatcher = bench_in_dispatcher;
		b->skel->rodata->xroce_shared = bench_ring_bytes > 0;
	}
	if (b->skel && bench_ring_bytes)
		bpf_map__set_max_entries(b->skel->maps.xroce_ring, bench_ring_bytes);
	if (!b->skel || xroce_bpf__load(b->skel)) {
		print_error("cannot load the BPF object: %s (root needed)\n", strerror(errno));
		return -1;
	}
	b->prog = bpf_program__fd(b->skel->progs.xroce_xdp);
	b->qp = map_memory(b->skel->maps.xroce_qp, XROCE_MAX_QP * sizeof(*b->qp));
	b->cq = map_memory(b->skel->maps.xroce_cq, XROCE_MAX_CQ * sizeof(*b->cq));
	b->expect = map_memory(b->skel->maps.xroce_expect, XROCE_MAX_QP * sizeof(*b->expect));
	b->engine = map_memory(b->skel->maps.xroce_engine, sizeof(*b->engine));
	b->vector = map_memory(b->skel->maps.xroce_vector, XROCE_MAX_QUEUE * sizeof(*b->vector));
	b->xsk = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (!b->qp || !b->cq || !b->expect || !b->engine || !b->vector || b->xsk < 0) {
		print_error("cannot map the arm words or open an AF_XDP socket: %s\n",
			    strerror(errno));
		return -1;
	}
	return 0;
}

int bench_teardown(void **state)
{
	struct bench *b = &the_bench;

	close(b->xsk);
	munmap(b->qp, XROCE_MAX_QP * sizeof(*b->qp));
	munmap(b->cq, XROCE_MAX_CQ * sizeof(*b->cq));
	munmap(b->expect, XROCE_MAX_QP * sizeof(*b->expect));
	munmap(b->engine, sizeof(*b->engine));
	munmap(b->vector, XROCE_MAX_QUEUE * sizeof(*b->vector));
	xroce_bpf__destroy(b->skel);
	return 0;
}

static void map_clear(int fd, size_t key_size)
{
	uint8_t key[16];

	assert_true(key_size <= sizeof(key));
	while (bpf_map_get_next_key(fd, NULL, key) == 0)
		assert_int_equal(bpf_map_delete_elem(fd, key), 0);
}

void bench_put_xsk(uint32_t slot, bool present)
{
	int fd = map_fd(bench->skel->maps.xroce_xsk);

	if (present)
		assert_int_equal(bpf_map_update_elem(fd, &slot, &bench->xsk, BPF_ANY), 0);
	else
		bpf_map_delete_elem(fd, &slot); /* may be empty already */
}

void bench_put_gid(const uint8_t gid[16], bool present)
{
	int fd = map_fd(bench->skel->maps.xroce_gid);
	uint32_t index = 0;

	if (present)
		assert_int_equal(bpf_map_update_elem(fd, gid, &index, BPF_ANY), 0);
	else
		assert_int_equal(bpf_map_delete_elem(fd, gid), 0);
}

void bench_put_qp(uint32_t qpn, const struct xroce_qp *qp)
{
	bench->qp[XROCE_QP_SLOT(qpn)] = *qp;
	bench->qp[XROCE_QP_SLOT(qpn)].qpn = qpn;
}

struct xroce_qp bench_get_qp(uint32_t qpn)
{
	const struct xroce_qp *qp = &bench->qp[XROCE_QP_SLOT(qpn)];

	assert_int_equal(qp->qpn, qpn);
	return *qp;
}

struct xroce_qp bench_qp(enum xroce_transport transport, const uint8_t local[16],
			 const uint8_t peer[16])
{
	struct xroce_qp qp = {
		.transport = transport,
		.receiving = 1,
		.pkey = 0xffff,
		.with_time = 1,
		.with_flow_tag = 1,
		.send_cq = BENCH_SEND_CQ,
		.recv_cq = BENCH_RECV_CQ,
		.pid = getpid(),
	};

	if (transport == XROCE_UD) {
		qp.qkey = BENCH_QKEY;
	} else {
		memcpy(qp.local, local, 16);
		memcpy(qp.peer, peer, 16);
	}
	return qp;
}

void bench_reset(void)
{
	struct xroce_qp qp;

	for (uint32_t slot = 0; slot < XROCE_MAX_QP; slot++)
		bench->qp[slot].qpn = 0;
	map_clear(map_fd(bench->skel->maps.xroce_gid), 16);
	for (uint32_t slot = 0; slot < XROCE_MAX_OWNER * XROCE_MAX_QUEUE; slot++)
		bench_put_xsk(slot, slot == 0);
	bench_put_gid(bench_local4, true);
	bench_put_gid(bench_local6, true);
	memset(bench->cq, 0, XROCE_MAX_CQ * sizeof(*bench->cq));
	memset(bench->expect, 0, XROCE_MAX_QP * sizeof(*bench->expect));
	for (uint32_t qpn = BENCH_RC_QPN; qpn <= BENCH_XRC_QPN; qpn++)
		bench->expect[XROCE_QP_SLOT(qpn)].psn = XROCE_EXPECTED | (BENCH_PSN - 1);
	memset(bench->engine, 0, sizeof(*bench->engine));
	memset(bench->vector, 0, XROCE_MAX_QUEUE * sizeof(*bench->vector));
	qp = bench_qp(XROCE_RC, bench_local4, bench_peer4);
	bench_put_qp(BENCH_RC_QPN, &qp);
	qp = bench_qp(XROCE_UC, bench_local4, bench_peer4);
	bench_put_qp(BENCH_UC_QPN, &qp);
	qp = bench_qp(XROCE_XRC, bench_local4, bench_peer4);
	bench_put_qp(BENCH_XRC_QPN, &qp);
	qp = bench_qp(XROCE_UD, NULL, NULL);
	bench_put_qp(BENCH_UD_QPN, &qp);
}

struct frame_spec bench_spec(void)
{
	struct frame_spec s = {
		.sport = 0xc123,
		.opcode = OPCODE(XROCE_RC, OP5_SEND_ONLY),
		.bth_flags = BTH_MIGREQ,
		.pkey = 0xffff,
		.ecn_qpn = BENCH_RC_QPN,
		.ack_psn = BTH_ACKREQ | BENCH_PSN,
		.payload_len = 64,
	};

	memcpy(s.src, bench_peer4, 16);
	memcpy(s.dst, bench_local4, 16);
	return s;
}

void bench_sum_super(struct frame *f)
{
	uint32_t sum = 17 + (f->len - f->l4);

	for (uint32_t at = f->l3 + 12; at < f->l3 + 20; at += 2)
		sum += frame_get16(f->bytes + at);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	frame_put16(f->bytes + f->l4 + 6, (uint16_t)sum);
}

int bench_run(const uint8_t *frame, uint32_t len)
{
	return bench_run_with(frame, len, &(struct bench_entry){ 0 });
}

int bench_run_with(const uint8_t *frame, uint32_t len, const struct bench_entry *entry)
{
	static uint8_t in[sizeof(bench->out)];
	struct xdp_md ctx_in = {
		.data = entry->metadata,
		.data_end = entry->metadata + (entry->linear ? entry->linear : len),
		.ingress_ifindex = entry->ifindex,
		.rx_queue_index = entry->queue,
	};
	struct xdp_md ctx_out = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in, .data_size_in = entry->metadata + len,
		    .data_out = bench->out, .data_size_out = sizeof(bench->out), .ctx_in = &ctx_in,
		    .ctx_size_in = sizeof(ctx_in), .ctx_out = &ctx_out,
		    .ctx_size_out = sizeof(ctx_out), .repeat = 1);
	int rc;

	assert_true(entry->metadata + len <= sizeof(in));
	memset(in, 0xee, entry->metadata);
	memcpy(in + entry->metadata, frame, len);
	rc = bpf_prog_test_run_opts(bench->prog, &opts);
	if (rc)
		return rc;
	/* The output starts at data_meta; ctx_out.data is the length of the metadata. */
	bench->verdict = opts.retval;
	bench->has_cqe = ctx_out.data == entry->metadata + sizeof(bench->cqe);
	if (bench->has_cqe)
		memcpy(&bench->cqe, bench->out, sizeof(bench->cqe));
	bench->frame = bench->out + ctx_out.data;
	bench->frame_len = opts.data_size_out - ctx_out.data;
	return bench->verdict;
}

uint32_t bench_make_queues(void)
{
	uint32_t ifindex;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_int_equal(system("ip link add xrbpf0 numrxqueues 65 numtxqueues 65 type veth peer "
				"name xrbpf1 numrxqueues 65 numtxqueues 65"),
			 0);
	ifindex = if_nametoindex("xrbpf0");
	assert_true(ifindex > 0);
	return ifindex;
}

void bench_unmake_queues(void)
{
	assert_int_equal(system("ip link del xrbpf0"), 0);
}

void bench_sum_percpu(int fd, uint64_t *sum, size_t bytes)
{
	const size_t n = bytes / sizeof(*sum);
	int cpus = libbpf_num_possible_cpus();
	uint64_t *values = calloc(cpus, bytes);
	uint32_t zero = 0;

	assert_non_null(values);
	assert_int_equal(bpf_map_lookup_elem(fd, &zero, values), 0);
	memset(sum, 0, bytes);
	for (int c = 0; c < cpus; c++)
		for (size_t i = 0; i < n; i++)
			sum[i] += values[c * n + i];
	free(values);
}

struct bench_counts bench_count(void)
{
	struct bench_counts c;

	bench_sum_percpu(map_fd(bench->skel->maps.xroce_drop), c.drop, sizeof(c.drops));
	bench_sum_percpu(map_fd(bench->skel->maps.xroce_rx), (uint64_t *)&c.rx, sizeof(c.rx));
	return c;
}

struct xroce_flow_count bench_flow_count(uint32_t counter)
{
	struct xroce_flow_count values[512], sum = { 0 };
	const int fd = bpf_map__fd(bench->skel->maps.xroce_flow_cnt);
	const int cpus = libbpf_num_possible_cpus();

	assert_in_range(cpus, 1, 512);
	assert_int_equal(bpf_map_lookup_elem(fd, &counter, values), 0);
	for (int i = 0; i < cpus; i++) {
		sum.packets += values[i].packets;
		sum.bytes += values[i].bytes;
	}
	return sum;
}

const char *bench_reason(int reason)
{
	static const char *const name[] = {
#define X(reason_name, text) #reason_name,
		XROCE_DROP_REASONS(X)
#undef X
	};

	return reason > XROCE_DROP_none && reason < XROCE_DROP_END ?
		       name[XROCE_DROP_INDEX(reason)] :
		       "none";
}

static uint64_t bench_dropped(const struct bench_counts *counts, enum xroce_drop reason)
{
	return counts->drop[XROCE_DROP_INDEX(reason)];
}

/* Which drop counter moved, for messages. */
static const char *moved(const struct bench_counts *before, const struct bench_counts *after)
{
	for (int i = XROCE_DROP_none + 1; i < XROCE_DROP_END; i++)
		if (bench_dropped(after, i) != bench_dropped(before, i))
			return bench_reason(i);
	return "none";
}

static void check_counts(const char *what, const struct bench_counts *before, int reason,
			 int redirected, uint64_t bytes, int passed)
{
	struct bench_counts after = bench_count();

	for (int i = XROCE_DROP_none + 1; i < XROCE_DROP_END; i++) {
		const uint64_t n = bench_dropped(&after, i) - bench_dropped(before, i);

		check(n == (i == reason), "%s: drop counter %s moved by %llu, want %d (moved: %s)",
		      what, bench_reason(i), (unsigned long long)n, i == reason,
		      moved(before, &after));
	}
	check(after.rx.dropped - before->rx.dropped == (reason != XROCE_DROP_none),
	      "%s: rx.dropped", what);
	check(after.rx.redirected - before->rx.redirected == (uint64_t)redirected,
	      "%s: rx.redirected", what);
	check(after.rx.redirected_bytes - before->rx.redirected_bytes == bytes,
	      "%s: rx.redirected_bytes", what);
	check(after.rx.passed - before->rx.passed == (uint64_t)passed,
	      "%s: rx.passed moved by %llu, want %d", what,
	      (unsigned long long)(after.rx.passed - before->rx.passed), passed);
}

static void check_untouched(const char *what, const uint8_t *frame, uint32_t len)
{
	check(bench->frame_len == len && memcmp(bench->frame, frame, len) == 0,
	      "%s: the frame was changed", what);
}

void bench_expect_pass(const char *what, const uint8_t *frame, uint32_t len, bool counted)
{
	struct bench_counts before = bench_count();
	int verdict = bench_run(frame, len);

	check(verdict == XDP_PASS, "%s: verdict %d, want pass", what, verdict);
	check(!bench->has_cqe, "%s: passed with metadata", what);
	check_untouched(what, frame, len);
	check_counts(what, &before, XROCE_DROP_none, 0, 0, counted);
}

void bench_expect_drop_with(const char *what, const uint8_t *frame, uint32_t len,
			    enum xroce_drop reason, uint32_t qpn, const struct bench_entry *entry)
{
	struct bench_counts before = bench_count();
	struct xroce_qp qp_before = { 0 }, qp;
	int verdict;

	if (qpn)
		qp_before = bench_get_qp(qpn);
	verdict = bench_run_with(frame, len, entry);
	check(verdict == XDP_DROP, "%s: verdict %d, want drop for %s", what, verdict,
	      bench_reason(reason));
	check_counts(what, &before, reason, 0, 0, 0);
	if (!qpn)
		return;
	qp = bench_get_qp(qpn);
	check(qp.rx_dropped == qp_before.rx_dropped + 1,
	      "%s: the QP's rx_dropped did not move by one", what);
	check(qp.rx_packets == qp_before.rx_packets && qp.rx_bytes == qp_before.rx_bytes,
	      "%s: the QP counts it as received", what);
}

void bench_expect_taken(const char *what, const struct frame *f)
{
	struct bench_counts before = bench_count(), after;

	check(bench_run(f->bytes, f->len) == XDP_REDIRECT, "%s: verdict %d", what, bench->verdict);
	after = bench_count();
	check(after.rx.redirected == before.rx.redirected + 1 &&
		      after.rx.redirected_bytes == before.rx.redirected_bytes + f->len &&
		      after.rx.dropped == before.rx.dropped && after.rx.passed == before.rx.passed,
	      "%s: counters", what);
	check(bench->has_cqe && bench->frame_len == f->len &&
		      !memcmp(bench->frame, f->bytes, f->len),
	      "%s: the frame", what);
}

void bench_expect_drop(const char *what, const uint8_t *frame, uint32_t len, enum xroce_drop reason,
		       uint32_t qpn)
{
	bench_expect_drop_with(what, frame, len, reason, qpn, &(struct bench_entry){ 0 });
}

void bench_expect_redirect(const char *what, const uint8_t *frame, uint32_t len, uint32_t qpn)
{
	struct bench_counts before = bench_count(), after;
	struct xroce_qp qp_before = bench_get_qp(qpn), qp;
	int verdict = bench_run(frame, len);

	after = bench_count();
	check(verdict == XDP_REDIRECT, "%s: verdict %d, want redirect (dropped for %s)", what,
	      verdict, moved(&before, &after));
	check(bench->has_cqe, "%s: no CQE", what);
	check_untouched(what, frame, len);
	check_counts(what, &before, XROCE_DROP_none, 1, len, 0);
	qp = bench_get_qp(qpn);
	check(qp.rx_packets == qp_before.rx_packets + 1, "%s: the QP's rx_packets", what);
	check(qp.rx_bytes == qp_before.rx_bytes + bench->cqe.byte_len, "%s: the QP's rx_bytes",
	      what);
	check(qp.rx_dropped == qp_before.rx_dropped, "%s: the QP's rx_dropped", what);
}
