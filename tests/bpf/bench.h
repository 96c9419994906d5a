/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The test bench: the shipped BPF object, loaded but attached nowhere, fed with one frame at a time
 * by BPF_PROG_TEST_RUN. It owns maps, one AF_XDP socket (never bound: the map takes it all the
 * same) and a view of every counter.
 */
#ifndef TESTS_BPF_BENCH_H
#define TESTS_BPF_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>
#include <xroce/trace.h>

#include "frame.h"
#include "xroce.skel.h"

/* What the default QPs of bench_reset() look like. */
#define BENCH_RC_QPN	 0x11
#define BENCH_UD_QPN	 0x12
#define BENCH_UC_QPN	 0x13
#define BENCH_XRC_QPN	 0x14
#define BENCH_RECV_CQ	 5
#define BENCH_SEND_CQ	 9
#define BENCH_PSN	 0x1000 /* of bench_spec() */
#define BENCH_QKEY	 0x80010000u

extern const uint8_t bench_local4[16], bench_peer4[16], bench_local6[16], bench_peer6[16];

/* The longest that a record has room for, and a little more. */
#define BENCH_BYTES (65616 + 64)

struct bench {
	struct xroce_bpf *skel;
	int prog;
	int xsk;
	/* mmapped as user space does it */
	struct xroce_qp *qp;
	struct xroce_cq *cq;
	struct xroce_expect *expect;
	struct xroce_engine *engine;
	struct xroce_vector *vector;
	/* of the last bench_run() */
	int verdict;
	bool has_cqe;
	struct xroce_rx_cqe cqe;
	const uint8_t *frame;	/* the packet as the program left it */
	uint32_t frame_len;
	uint8_t out[BENCH_BYTES + 256];
};

/* What moved in one run. */
struct bench_counts {
	union {
		struct xroce_drops drops;
		uint64_t drop[XROCE_DROP_COUNT]; /* by XROCE_DROP_INDEX() */
	};
	struct xroce_rx_stats rx;
};

/* What the program finds when it starts, for bench_run_with(). 0 is the usual. */
struct bench_entry {
	uint32_t metadata;	/* bytes that an earlier program left */
	uint32_t linear;	/* bytes of the frame in the first buffer */
	uint32_t ifindex, queue;
};

/* cmocka group fixtures. They leave the state alone: it belongs to the tests' rows. */
int bench_setup(void **state);
int bench_teardown(void **state);
extern struct bench *bench; /* of this program */
/* Set before bench_setup(): the program as it is in a dispatcher. */
extern bool bench_in_dispatcher;
/* Set before bench_setup(): ring size of a process without sockets; 0: with sockets. */
extern uint32_t bench_ring_bytes;

/*
 * Starts with empty maps: both local addresses as GIDs, the socket in slot 0, an RC, a UC and an
 * XRC QP from bench_peer4 to bench_local4 and a UD QP, all receiving, P_Key 0xffff, with
 * BENCH_RECV_CQ and BENCH_SEND_CQ. An ACK of their packets up to BENCH_PSN - 1 completes something.
 */
void bench_reset(void);

struct xroce_qp bench_qp(enum xroce_transport transport, const uint8_t local[16],
			 const uint8_t peer[16]);
void bench_put_qp(uint32_t qpn, const struct xroce_qp *qp);
struct xroce_qp bench_get_qp(uint32_t qpn);
void bench_put_gid(const uint8_t gid[16], bool present);
void bench_put_xsk(uint32_t slot, bool present);

/* A well-formed RC SEND_ONLY from bench_peer4 to BENCH_RC_QPN, 64 bytes of payload. */
struct frame_spec bench_spec(void);
/*
 * The UDP checksum of a super-packet, as the sender's kernel leaves it for who will cut: the folded
 * sum of the pseudo-header.
 */
void bench_sum_super(struct frame *f);

/*
 * Run the program once. Results in *bench. Returns the verdict, or -errno where the kernel refuses
 * to run such input.
 */
int bench_run(const uint8_t *frame, uint32_t len);
int bench_run_with(const uint8_t *frame, uint32_t len, const struct bench_entry *entry);

/*
 * Receive queues above 0 exist on real interfaces only: makes an interface with 65 and returns its
 * number for struct bench_entry. It is in a namespace that ends with the process.
 */
uint32_t bench_make_queues(void);
void bench_unmake_queues(void);

/* Sums a per-CPU value of counters, the only one of the map. */
void bench_sum_percpu(int fd, uint64_t *sum, size_t bytes);
struct bench_counts bench_count(void);
/* Sums a counter of flows over all CPUs. */
struct xroce_flow_count bench_flow_count(uint32_t counter);
const char *bench_reason(int reason);

/*
 * Run and assert: these fail the cmocka test with `what` in the message. Each also asserts that no
 * other counter of the device moved. A frame that passes or is accepted must come out as it went
 * in.
 */
void bench_expect_pass(const char *what, const uint8_t *frame, uint32_t len, bool counted);
/* Whatever the QP: the frame goes to the AF_XDP socket, and is counted so. */
void bench_expect_taken(const char *what, const struct frame *f);
void bench_expect_drop(const char *what, const uint8_t *frame, uint32_t len, enum xroce_drop reason,
		       uint32_t qpn);
void bench_expect_redirect(const char *what, const uint8_t *frame, uint32_t len, uint32_t qpn);
void bench_expect_drop_with(const char *what, const uint8_t *frame, uint32_t len,
			    enum xroce_drop reason, uint32_t qpn, const struct bench_entry *entry);

/* fail_msg() unless ok. */
#define check(ok, ...)                    \
	do {                              \
		if (!(ok))                \
			fail_msg(__VA_ARGS__); \
	} while (0)

#endif
