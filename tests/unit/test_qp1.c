/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * QP 1: its packets equal the kernel's (tests/golden, v4-cm-*), it receives like a UD QP, and only
 * MADs leave.
 */
#include "bare_engine.h"

#include "golden.h"
#include "packets.h"

#define MAD_BYTES 256
#define MADS	  14u /* in the captures */
#define CM_QKEY	  0x80010000u
#define IP_AT	  14
#define BTH_AT	  (IP_AT + 20 + 8)

static struct golden golden;
static u8 memory[4096];
static struct mr *mr;
static struct qp *qp;

static void make_ready(u32 qpn, u32 psn)
{
	struct qp_init init = plain_init(XROCE_UD);
	struct qp_attr attr = { .state = QPS_INIT, .port = 1, .qkey = CM_QKEY, .sq_psn = psn };

	init.qpn = qpn;
	init.max_inline = MAD_BYTES;
	assert_int_equal(qp_create(engine, &init, &qp), 0);
	assert_int_equal(qp_modify(engine, qp, &attr,
				   QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
					   QP_ATTR_QKEY, 0), 0);
	attr.state = QPS_RTR;
	assert_int_equal(qp_modify(engine, qp, &attr, QP_ATTR_STATE, 0), 0);
	attr.state = QPS_RTS;
	assert_int_equal(qp_modify(engine, qp, &attr, QP_ATTR_STATE | QP_ATTR_SQ_PSN, 0), 0);
}

/* As a program does it that names the Q_Key; its top bit has the QP's own sent. */
static void post_mad(const struct path *path, u32 dest_qpn, const u8 *mad)
{
	struct send_wqe *wqe;

	sq_begin(&qp->sq);
	wqe = sq_slot(&qp->sq, 0);
	assert_non_null(wqe);
	*wqe = (struct send_wqe){ .opcode = WR_SEND, .flags = WR_INLINE, .length = MAD_BYTES,
				  .ud = { *path, dest_qpn, CM_QKEY } };
	memcpy(wqe->data, mad, MAD_BYTES);
	assert_int_equal(send_wqe_check(qp, wqe), 0);
	sq_publish(&qp->sq, 1);
	engine_doorbell(qp);
}

static bool is_mad(const struct golden_packet *g, struct packet *p)
{
	const struct rx_frame f = { .data = g->frame, .len = g->len };

	return !strncmp(g->file, "v4-cm-", 6) && packet_parse(p, &f) == XROCE_DROP_none &&
	       p->dest_qpn == 1;
}

static struct path path_of(const struct golden_packet *g, const struct packet *p)
{
	struct path path = { .tos = p->tos, .hop_limit = p->hop_limit, .local = p->src,
			     .peer = p->dst,
			     .udp_sport = (u16)(g->frame[34] << 8 | g->frame[35]) };

	memcpy(path.dmac, g->frame, 6);
	memcpy(path.smac, g->frame + 6, 6);
	return path;
}

/*
 * The kernel numbers its IP packets, leaves MigReq 0, and asks for an ACK that UD does not have;
 * all else is the same.
 */
static void sends__what_the_kernel_sends(void **state)
{
	static u8 frame[PACKET_FRAME_MAX];
	u32 compared = 0;

	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *g = &golden.packets[i];
		u8 mad[MAD_BYTES];
		struct path path;
		struct packet p;
		u32 len;

		if (!is_mad(g, &p))
			continue;
		assert_int_equal(p.payload_len, MAD_BYTES);
		packet_copy_payload(&p, 0, mad, MAD_BYTES);
		path = path_of(g, &p);
		make_ready(1, p.psn);
		post_mad(&path, 1, mad);
		len = engine_output(engine, frame, sizeof(frame), 0);
		assert_int_equal(len, g->len);
		frame[18] = g->frame[18]; /* identification, header checksum */
		frame[19] = g->frame[19];
		frame[24] = g->frame[24];
		frame[25] = g->frame[25];
		assert_int_equal(frame[BTH_AT + 1], 0x40);
		assert_int_equal(g->frame[BTH_AT + 1], 0);
		frame[BTH_AT + 1] = 0;
		assert_int_equal(frame[BTH_AT + 8], 0);
		frame[BTH_AT + 8] = 0x80;
		assert_memory_equal(frame, g->frame, len - ROCE_ICRC_BYTES);
		qp_destroy(engine, qp);
		compared++;
	}
	assert_true(compared == MADS);
}

/* Into a receive of 296 bytes: the GRH, then the MAD; who sent it is QP 1. */
static void receives__what_the_kernel_sends(void **state)
{
	u32 received = 0;

	assert_int_equal(mr_add(engine_mr_table(engine), 1, memory, sizeof(memory), 0,
				MR_LOCAL_WRITE, &mr), 0);
	make_ready(1, 0);
	for (size_t i = 0; i < golden.count; i++) {
		const struct golden_packet *g = &golden.packets[i];
		const struct rx_frame f = { .data = g->frame, .len = g->len };
		struct recv_wqe *recv;
		const struct cqe *e;
		struct packet p;
		u8 mad[MAD_BYTES];

		if (!is_mad(g, &p))
			continue;
		recv = rq_slot(&qp->rq, 0);
		*recv = (struct recv_wqe){ .wr_id = i, .num_sge = 1 };
		recv->sge[0] = (struct sge){ 0, ROCE_GRH_BYTES + MAD_BYTES, mr->key };
		rq_publish(&qp->rq, 1);
		assert_int_equal(engine_input(engine, NULL, &f, 0), XROCE_DROP_none);
		e = cq_peek(&cq);
		assert_non_null(e);
		assert_int_equal(e->status, CQE_SUCCESS);
		assert_int_equal(e->byte_len, ROCE_GRH_BYTES + MAD_BYTES);
		assert_int_equal(e->src_qpn, 1);
		assert_int_equal(e->qpn, 1);
		assert_true(e->flags & CQE_GRH);
		cq_pop(&cq);
		packet_copy_payload(&p, 0, mad, MAD_BYTES);
		assert_memory_equal(memory + 20, g->frame + IP_AT, 20);
		assert_memory_equal(memory + ROCE_GRH_BYTES, mad, MAD_BYTES);
		received++;
	}
	assert_true(received == MADS);
	qp_destroy(engine, qp);
	mr_remove(engine_mr_table(engine), mr);
}

/* With another Q_Key than QP 1's it is no MAD for any QP. */
static void receives__with_its_q_key_alone(void **state)
{
	struct path path = random_path(&engine_seed, false, false);
	struct packet p = { .opcode = OPCODE(XROCE_UD, OP5_SEND_ONLY), .pkey = ROCE_DEFAULT_PKEY,
			    .dest_qpn = 1, .src_qpn = 1, .payload_len = MAD_BYTES };
	static const u32 qkeys[] = { 0, 0x11111111, 0x80010001, 0x00010000, 0x80000000 };
	static u8 frame[PACKET_FRAME_MAX];

	make_ready(1, 0);
	for (u32 i = 0; i < ARRAY_SIZE(qkeys); i++) {
		struct rx_frame f = { .data = frame };
		u8 *payload;

		p.qkey = qkeys[i];
		payload = packet_put_headers(frame, &path, &p);
		memset(payload, 0, MAD_BYTES);
		f.len = packet_seal(frame, payload, MAD_BYTES);
		assert_int_equal(engine_input(engine, NULL, &f, 0), XROCE_DROP_qkey);
	}
	qp_destroy(engine, qp);
}

/* A UD QP probes a peer after its first packets, but not for packets of QP 1 or to it. */
static void credit_output__leaves_qp1_alone(void **state)
{
	static const u32 ends[][2] = { { 1, 1 }, { 1, 77 }, { 77, 1 } };
	static const u8 mad[MAD_BYTES];
	static u8 frame[PACKET_FRAME_MAX];
	struct path path = random_path(&engine_seed, false, false);

	for (u32 k = 0; k < ARRAY_SIZE(ends); k++) {
		make_ready(ends[k][0], 0);
		for (u32 i = 0; i < 2 * CREDIT_START; i++) {
			post_mad(&path, ends[k][1], mad);
			assert_int_equal(engine_output(engine, frame, sizeof(frame), 0),
					 BTH_AT + 12 + 8 + MAD_BYTES + ROCE_ICRC_BYTES);
			assert_int_equal(frame[BTH_AT], OPCODE(XROCE_UD, OP5_SEND_ONLY));
			assert_int_equal(engine_output(engine, frame, sizeof(frame), 0), 0);
		}
		qp_destroy(engine, qp);
	}
	assert_int_equal(stats.flow_probes, 0);
}

/* Nor does it answer; another QP that a QP 1 asks does not either. */
static void credit_input__of_qp1_is_not_answered(void **state)
{
	static const u32 ends[][2] = { { 1, 77 }, { 77, 1 } };
	static u8 frame[PACKET_FRAME_MAX];
	struct path path = random_path(&engine_seed, false, false);
	struct packet p = { .opcode = OPCODE_CREDIT_PROBE,
			    .migreq = true,
			    .pkey = ROCE_DEFAULT_PKEY,
			    .qkey = CM_QKEY,
			    .credit_cookie = 5 };
	struct rx_frame f = { .data = frame };

	for (u32 k = 0; k < ARRAY_SIZE(ends); k++) {
		make_ready(ends[k][0], 0);
		p.dest_qpn = ends[k][0];
		p.src_qpn = ends[k][1];
		f.len = packet_seal(frame, packet_put_headers(frame, &path, &p), 0);
		assert_int_equal(engine_input(engine, NULL, &f, 0), XROCE_DROP_opcode);
		assert_int_equal(engine_output(engine, frame, sizeof(frame), 0), 0);
		qp_destroy(engine, qp);
	}
}

static int begin(void **state)
{
	return golden_load(&golden);
}

static int end(void **state)
{
	golden_free(&golden);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ENGINE(sends__what_the_kernel_sends),
		WITH_ENGINE(receives__what_the_kernel_sends),
		WITH_ENGINE(receives__with_its_q_key_alone),
		WITH_ENGINE(credit_output__leaves_qp1_alone),
		WITH_ENGINE(credit_input__of_qp1_is_not_answered),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
