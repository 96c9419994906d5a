/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * The pump on a shard that this test builds: the receive and fill rings, or the ring buffer, are
 * plain memory, sent frames are discarded, the clock is a variable.
 */
#define _GNU_SOURCE /* memfd_create() */
#include "../unit/packets.h"
#include "rx_ring_memory.h"

#include "../../user/os/clock.h"
#include "../../user/run/shard.h"
#include "../../user/engine/engine.h"
#include "../../user/engine/gso.h"
#include "../../user/engine/internal.h"

#define FRAMES 1024u
#define ROOM   256u /* in front of a packet, as AF_XDP has it */
#define L3     14u

static u64 seed, now_ns;
static struct shards all;
static struct shard shard;
static struct shard_io io;
static struct xsk xsk;
static struct xroce_sock sock;
static struct xroce_engine_stats stats;
static struct xroce_drops drops;
static struct cq cq;
static struct {
	u32 producer, consumer, flags;
	struct xdp_desc desc[FRAMES];
} rx_ring;
static struct {
	u32 producer, consumer, flags;
	u64 addr[FRAMES];
} fill_ring;
static struct rx_ring_memory ring;
static u32 num_put; /* into the ring buffer */
static u8 sent[2][UMEM_TX_SLOT_BYTES];
static u32 num_sent;
static u32 num_taken, none_at; /* transmit frames; there is none at that time, from 1; 0: never */

/* In place of the library's. */
u64 clock_now_ns(void)
{
	return now_ns;
}

static u64 engine_random(void *arg)
{
	return next_random(arg);
}

/* ---- the way out ---- */

static u32 room(struct tx *tx, u64 at_ns)
{
	return 64;
}

static u8 *frame(struct tx *tx)
{
	return ++num_taken == none_at ? NULL : sent[num_taken % 2];
}

static void give_back(struct tx *tx, u8 *buf)
{
}

static void commit(struct tx *tx, u8 *buf, u32 len)
{
	num_sent++;
}

static bool flush(struct tx *tx)
{
	return true;
}

static const struct tx_ops tx_ops = { room, frame, give_back, commit, NULL, flush, NULL };
static struct tx tx = { &tx_ops };

/* ---- the way in ---- */

/* A buffer of zeros, as the kernel puts it into a ring. Returns it. */
static u8 *put_buffer(u32 len, bool goes_on)
{
	const u64 addr = fill_ring.addr[fill_ring.consumer++ & (FRAMES - 1)] + ROOM;

	rx_ring.desc[rx_ring.producer++ & (FRAMES - 1)] =
		(struct xdp_desc){ addr, len, goes_on ? 1 : 0 };
	memset(io.umem.area + addr - sizeof(struct xroce_rx_cqe), 0,
	       sizeof(struct xroce_rx_cqe) + len);
	return io.umem.area + addr;
}

static void put_record(const struct xroce_rx_cqe *cqe, const u8 *frame, u32 len)
{
	assert_true(rx_ring_memory_put(&ring, cqe, frame, len, len));
	num_put++;
}

/* A frame that is no packet. */
static void put(void)
{
	if (xsk_is_ring(&io.xsks))
		put_record(&(struct xroce_rx_cqe){ 0 }, (u8[64]){ 0 }, 64);
	else
		put_buffer(64, false);
}

static const struct xroce_rx_cqe super_hint = { .flags = XROCE_RX_GSO, .l3_offset = L3 };

static void put_super_hint(u8 *first)
{
	memcpy(first - sizeof(super_hint), &super_hint, sizeof(super_hint));
}

/*
 * A super-packet of `segments` segments in buffers of that size, with the CQE that reports it: for
 * that QP, or for none of ours. The ICRC of one of them, counted from 1, is wrong.
 */
static void put_super(const struct qp *qp, u32 segments, u32 payload_len, u32 buffer, u32 wrong)
{
	static u8 bytes[GSO_SEGMENTS_MAX][PACKET_FRAME_MAX], whole[1 << 17];
	struct path path = random_path(&seed, false, false);
	struct gso_frame frame[GSO_SEGMENTS_MAX];
	static struct gso_ids ids;
	u32 len = GSO_HEADER_BYTES;

	for (u32 i = 0; i < segments; i++) {
		struct packet p = random_packet(&seed, OPCODE(XROCE_RC, OP5_SEND_MIDDLE));
		u8 *payload;

		p.payload_len = payload_len;
		if (qp) {
			p.dest_qpn = qp->qpn;
			p.pkey = qp->pkey;
			path.local = qp->path.peer;
			path.peer = qp->path.local;
		}
		payload = packet_put_headers(bytes[i], &path, &p);
		fill_random(&seed, payload, payload_len);
		frame[i] =
			(struct gso_frame){ bytes[i], packet_seal(bytes[i], payload, payload_len) };
		bytes[i][frame[i].len - 1] ^= i + 1 == wrong;
	}
	gso_join(&ids, frame, segments, whole);
	for (u32 i = 0; i < segments; i++) {
		memcpy(whole + len, bytes[i] + GSO_HEADER_BYTES, frame[i].len - GSO_HEADER_BYTES);
		len += frame[i].len - GSO_HEADER_BYTES;
	}
	if (xsk_is_ring(&io.xsks)) {
		put_record(&super_hint, whole, len);
		return;
	}
	for (u32 at = 0; at < len; at += buffer) {
		const u32 n = min_u32(buffer, len - at);
		u8 *to = put_buffer(n, at + n < len);

		memcpy(to, whole + at, n);
		if (at == 0)
			put_super_hint(to);
	}
}

static u32 unread(void)
{
	return xsk_is_ring(&io.xsks) ? num_put - (u32)sock.rx_frames :
				       rx_ring.producer - rx_ring.consumer;
}

static void fill_up_to(u32 frames)
{
	while (unread() < frames)
		put();
}

static void make_rings(void)
{
	memset(&rx_ring, 0, sizeof(rx_ring));
	memset(&fill_ring, 0, sizeof(fill_ring));
	xsk = (struct xsk){
		.fd = -1,
		.stats = &sock,
		.owed = FRAMES,
		.rx = { .mask = FRAMES - 1,
			.size = FRAMES,
			.producer = &rx_ring.producer,
			.consumer = &rx_ring.consumer,
			.ring = rx_ring.desc,
			.flags = &rx_ring.flags },
		.fill = { .cached_cons = FRAMES,
			  .mask = FRAMES - 1,
			  .size = FRAMES,
			  .producer = &fill_ring.producer,
			  .consumer = &fill_ring.consumer,
			  .ring = fill_ring.addr,
			  .flags = &fill_ring.flags },
	};
	io.xsks = (struct xsk_set){ .umem = &io.umem, .count = 1, .xsk = &xsk };
	xsk_refill(&io.xsks);
}

/* ---- a QP that waits for an ACK ---- */

/* NULL: of a peer somewhere. */
static struct qp *make_qp_to(const struct path *path, u32 dest_qpn)
{
	const struct qp_init init = {
		.transport = XROCE_RC,
		.max_send_wr = 4,
		.max_recv_wr = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.send_cq = &cq,
		.recv_cq = &cq,
		.pd = 1,
	};
	struct qp_attr attr = {
		.state = QPS_INIT, .port = 1,
		.path = path ? *path : random_path(&seed, false, false),
		.path_mtu = 1024, .dest_qpn = dest_qpn, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7,	  .min_rnr_timer = 12,
	};
	struct qp *qp;

	assert_int_equal(qp_create(shard.engine, &init, &qp), 0);
	assert_int_equal(qp_modify(shard.engine, qp, &attr,
				   QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
					   QP_ATTR_ACCESS_FLAGS,
				   now_ns),
			 0);
	attr.state = QPS_RTR;
	assert_int_equal(qp_modify(shard.engine, qp, &attr,
				   QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU |
					   QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
					   QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
				   now_ns),
			 0);
	attr.state = QPS_RTS;
	assert_int_equal(qp_modify(shard.engine, qp, &attr,
				   QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT |
					   QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
					   QP_ATTR_MAX_QP_RD_ATOMIC,
				   now_ns),
			 0);
	return qp;
}

static struct qp *make_qp(void)
{
	return make_qp_to(NULL, 0x1234);
}

static void post_one(struct qp *qp)
{
	struct send_wqe *wqe = sq_slot(&qp->sq, 0);

	assert_non_null(wqe);
	*wqe = (struct send_wqe){ .opcode = WR_SEND };
	sq_publish(&qp->sq, 1);
	engine_posted(shard.engine, qp);
}

static void send_one(struct qp *qp)
{
	post_one(qp);
	num_sent = 0;
	pump_run(&shard, clock_now_ns());
	assert_int_equal(num_sent, 1);
}

/* Unused here. */
static struct xroce_engine device;
static struct xdp_maps maps = { .engine = &device, .trace_fd = -1 };

static int setup(void **state)
{
	struct engine_config config = {
		.random = engine_random, .random_arg = &seed, .stats = &stats, .drops = &drops
	};

	seed = 0x5eed;
	now_ns = NSEC_PER_SEC;
	memset(&stats, 0, sizeof(stats));
	memset(&sock, 0, sizeof(sock));
	memset(&drops, 0, sizeof(drops));
	all = (struct shards){ .num = 1, .shard = &shard, .maps = &maps };
	memset(all.mac, 0xee, sizeof(all.mac));
	io.tx = &tx;
	io.stats = &stats;
	io.drops = &drops;
	shard.all = &all;
	shard.io = &io;
	atomic_store(&shard.account_ns, NSEC_NEVER);
	assert_int_equal(umem_create(&io.umem, FRAMES, 1), 0);
	make_rings();
	assert_int_equal(engine_create(&config, &shard.engine), 0);
	assert_int_equal(cq_init(&cq, 16), 0);
	return 0;
}

static int teardown(void **state)
{
	engine_destroy(shard.engine);
	cq_free(&cq);
	umem_destroy(&io.umem);
	memset(&shard, 0, sizeof(shard));
	return 0;
}

/* The same with the ring buffer in place of the sockets. */
static int setup_ring(void **state)
{
	setup(state);
	num_put = 0;
	rx_ring_memory_make(&ring, 256 << 10, 0);
	rx_ring_memory_open(&ring, &io.xsks, &xsk, &sock);
	return 0;
}

static int teardown_ring(void **state)
{
	rx_ring_memory_free(&ring);
	return teardown(state);
}

/* ---- the tests ---- */

/* A copy of sent frames for sniffers: without a transmit frame it is lost, and counted. */
static void pump_run__copy_without_a_frame(void **state)
{
	struct qp *qp = make_qp();

	num_taken = 0;
	send_one(qp);
	/* a sent frame, and a frame that the engine had nothing for */
	assert_int_equal(num_taken, 2);
	shard.engine->tables->num_copies = 1;
	for (none_at = 0; none_at <= 2; none_at += 2) {
		num_taken = 0;
		send_one(qp);
		assert_int_equal(stats.tx_copies_lost, none_at == 2);
	}
	none_at = 0;
	shard.engine->tables->num_copies = 0;
}

/*
 * Frames come as fast as they are taken: a QP that has waited for too long is seen to when all has
 * been taken that lay in the ring when its time was over, and not before.
 */
static void pump_run__flood(void **state)
{
	struct qp *qp = make_qp();
	u32 runs = 0;

	send_one(qp);
	now_ns = engine_deadline_ns(shard.engine);
	while (!num_sent || num_sent == 1) {
		fill_up_to(FRAMES / 2);
		pump_run(&shard, clock_now_ns());
		assert_in_range(++runs, 1, FRAMES / 2 / XSK_RX_BATCH);
	}
	assert_int_equal(runs, FRAMES / 2 / XSK_RX_BATCH);
	assert_int_equal(stats.timeouts + stats.rto_probes, 1);
	qp_destroy(shard.engine, qp);
}

/* The ring is emptied first, and then a time-out waits no longer. */
static void pump_run__backlog(void **state)
{
	struct qp *qp = make_qp();

	send_one(qp);
	now_ns = engine_deadline_ns(shard.engine);
	fill_up_to(XSK_RX_BATCH + 1);
	pump_run(&shard, clock_now_ns());
	assert_int_equal(num_sent, 1);
	pump_run(&shard, clock_now_ns());
	assert_int_equal(num_sent, 2);
	qp_destroy(shard.engine, qp);
}

/* Packets taken before a deadline do not count for that one. */
static void pump_run__backlog_anew(void **state)
{
	struct qp *qp = make_qp();

	send_one(qp);
	now_ns = engine_deadline_ns(shard.engine);
	fill_up_to(FRAMES);
	for (u32 i = 2; i < FRAMES / XSK_RX_BATCH; i++)
		pump_run(&shard, clock_now_ns());
	assert_int_equal(num_sent, 1);
	/* no deadline has passed */
	now_ns -= 1;
	pump_run(&shard, clock_now_ns());
	now_ns += 1;
	fill_up_to(FRAMES);
	pump_run(&shard, clock_now_ns());
	assert_int_equal(num_sent, 1);
	qp_destroy(shard.engine, qp);
}

/* Checks that `packets` packets arrived in `frames` frames, and that each buffer is back. */
static void expect_received(u32 frames, u32 packets)
{
	assert_int_equal(sock.rx_frames, frames);
	assert_int_equal(stats.rx_packets, packets);
	if (xsk_is_ring(&io.xsks))
		assert_int_equal(ring.consumer, ring.producer);
	else
		assert_int_equal(io.umem.rx_free_count + fill_ring.producer -
					 fill_ring.consumer,
				 FRAMES);
}

/* Of no QP of ours, but whole. */
static void pump_run__super_packets(void **state)
{
	put();
	put_super(NULL, 30, 64, 3840, 0);
	put();
	put();
	put_super(NULL, 10, 1024, 3840, 0);
	pump_run(&shard, now_ns);
	expect_received(5, 43);
	assert_int_equal(sock.rx_super_packets, 2);
	assert_int_equal(sock.rx_super_segments, 40);
	assert_int_equal(drops.qp_unknown, 40);
}

/* The first packet's ICRC shows whether a RoCEv2 sender made it. */
static void pump_run__first_wrong(void **state)
{
	struct qp *qp = make_qp();

	put_super(qp, 30, 64, 3840, 1);
	pump_run(&shard, now_ns);
	expect_received(1, 30);
	assert_int_equal(drops.icrc, 30);
	/* of another that is none's fault but its own */
	put_super(qp, 30, 64, 3840, 6);
	pump_run(&shard, now_ns);
	expect_received(2, 60);
	assert_int_equal(drops.icrc, 31);
	qp_destroy(shard.engine, qp);
}

/* An invalid one is refused, and its neighbours are taken. */
static void pump_run__odd(void **state)
{
	put_super_hint(put_buffer(200, false)); /* cannot be cut */
	put();
	put_buffer(64, true);
	put_buffer(64, true);
	put_buffer(64, false);
	put();
	rx_ring.desc[rx_ring.producer++ & (FRAMES - 1)] = (struct xdp_desc){ UINT64_MAX, 64, 0 };
	put();
	put_super(NULL, 40, 1024, 2000, 0); /* more buffers than any has */
	pump_run(&shard, now_ns);
	expect_received(7, 7);
	assert_int_equal(sock.rx_super_packets, 0);
	assert_int_equal(drops.multibuffer, 3);
	assert_int_equal(drops.descriptor, 1);
	assert_int_equal(drops.not_roce, 3);
}

/* Records that are none of packets; a super-packet that cannot be cut. */
static void pump_run__no_record(void **state)
{
	put_record(&super_hint, (u8[200]){ 0 }, 200);
	put();
	put_record(&super_hint, (u8[4]){ 0 }, 4);
	put_record(&(struct xroce_rx_cqe){ 0 }, (u8[4]){ 0 }, 4);
	put();
	pump_run(&shard, now_ns);
	expect_received(5, 5);
	assert_int_equal(sock.rx_super_packets, 0);
	assert_int_equal(drops.multibuffer, 1);
	assert_int_equal(drops.descriptor, 2);
	assert_int_equal(drops.not_roce, 2);
}

/* A QP's first packet, to that one of this interface: how many frames have left, how many not. */
static void expect_way_to(u32 qpn, bool shared, u32 left, u32 looped)
{
	struct path path = random_path(&seed, false, false);
	struct qp *qp;

	memcpy(path.dmac, all.mac, sizeof(all.mac));
	all.shared = shared;
	qp = make_qp_to(&path, qpn);
	post_one(qp);
	num_sent = 0;
	stats.loopback_packets = 0;
	pump_run(&shard, now_ns);
	assert_int_equal(num_sent, left);
	assert_int_equal(stats.loopback_packets, looped);
	qp_destroy(shard.engine, qp);
}

/*
 * Packets to our own address are for this process alone, or on a shared interface for the QP's
 * process.
 */
static void pump_run__own_address(void **state)
{
	struct qp *ours = make_qp();

	expect_way_to(ours->qpn, false, 0, 1);
	expect_way_to(ours->qpn ^ 0x100000, false, 0, 1);
	expect_way_to(ours->qpn, true, 0, 1);
	/* the slot of one of ours, with another generation of it */
	expect_way_to(ours->qpn ^ 0x100000, true, 1, 0);
	qp_destroy(shard.engine, ours);
}

/* Every process has a QP 1: whose a packet to it is, is the broker's to say. */
static void pump_run__own_qp1(void **state)
{
	const struct qp_init init = { .transport = XROCE_UD, .max_send_wr = 1, .max_recv_wr = 1,
				      .max_send_sge = 1, .max_recv_sge = 1, .send_cq = &cq,
				      .recv_cq = &cq, .pd = 1, .qpn = XROCE_CM_QPN };
	struct qp *ours;

	assert_int_equal(qp_create(shard.engine, &init, &ours), 0);
	expect_way_to(XROCE_CM_QPN, false, 0, 1);
	expect_way_to(XROCE_CM_QPN, true, 1, 0);
	qp_destroy(shard.engine, ours);
}

/* What sockets have lost is read a while after packets came; a ring buffer has nothing to read. */
static void pump_run__account(void **state)
{
	pump_run(&shard, now_ns);
	assert_int_equal(shard_deadline_ns(&shard), NSEC_NEVER);
	put();
	pump_run(&shard, now_ns);
	assert_int_equal(shard_deadline_ns(&shard),
			 xsk_is_ring(&io.xsks) ? NSEC_NEVER : now_ns + 100 * NSEC_PER_MSEC);
}

#define BY_SOCKET(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define BY_RING(test)                                                       \
	{                                                                   \
		#test " (ring)", test, setup_ring, teardown_ring, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BY_SOCKET(pump_run__flood),
		BY_SOCKET(pump_run__backlog),
		BY_SOCKET(pump_run__backlog_anew),
		BY_SOCKET(pump_run__super_packets),
		BY_SOCKET(pump_run__first_wrong),
		BY_SOCKET(pump_run__odd),
		BY_SOCKET(pump_run__account),
		BY_SOCKET(pump_run__own_address),
		BY_SOCKET(pump_run__own_qp1),
		BY_SOCKET(pump_run__copy_without_a_frame),
		BY_RING(pump_run__flood),
		BY_RING(pump_run__backlog),
		BY_RING(pump_run__backlog_anew),
		BY_RING(pump_run__super_packets),
		BY_RING(pump_run__first_wrong),
		BY_RING(pump_run__no_record),
		BY_RING(pump_run__account),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
