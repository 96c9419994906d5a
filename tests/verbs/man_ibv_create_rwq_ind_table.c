/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/* tier: long tsan */
/*
 * ibv_create_rwq_ind_table(3), which is ibv_destroy_rwq_ind_table(3); of ibv_create_qp_ex(3)
 * a QP with a table and a hash; of ibv_get_async_event(3) a work queue's event
 */
#include <arpa/inet.h>

#include "man.h"

#define WQS   4
#define SLOTS 8
#define BYTES 64

static const uint8_t key_bytes[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static struct ibv_pd *pd;
static struct ibv_comp_channel *channel[2];
static struct ibv_cq *cq[2];	/* of the even and of the odd work queues */
static struct ibv_wq *wq[WQS];
static struct ibv_mr *mr;
static uint8_t memory[WQS][SLOTS][256];

static bool begin(void)
{
	struct ibv_wq_attr rdy = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };

	MUST(pd = ibv_alloc_pd(ctx));
	MUST(mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	for (int i = 0; i < 2; i++) {
		MUST(channel[i] = ibv_create_comp_channel(ctx));
		MUST(cq[i] = ibv_create_cq(ctx, 64, NULL, channel[i], 0));
	}
	for (int i = 0; i < WQS; i++) {
		struct ibv_wq_init_attr a = { .wq_type = IBV_WQT_RQ, .max_wr = SLOTS,
					      .max_sge = 1, .pd = pd, .cq = cq[i % 2] };

		MUST(wq[i] = ibv_create_wq(ctx, &a));
		MUST_EQ(ibv_modify_wq(wq[i], &rdy), 0);
	}
	return true;
}

static bool end(void)
{
	for (int i = 0; i < WQS; i++)
		if (wq[i])
			MUST_EQ(ibv_destroy_wq(wq[i]), 0);
	for (int i = 0; i < 2; i++) {
		MUST_EQ(ibv_destroy_cq(cq[i]), 0);
		MUST_EQ(ibv_destroy_comp_channel(channel[i]), 0);
	}
	MUST_EQ(ibv_dereg_mr(mr), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

static struct ibv_rwq_ind_table *table_of(uint32_t log_size)
{
	struct ibv_rwq_ind_table_init_attr a = { .log_ind_tbl_size = log_size, .ind_tbl = wq };

	return ibv_create_rwq_ind_table(ctx, &a);
}

/* Objects in use give EBUSY: work queues of a table, a table of a QP. */
static bool makes_and_destroys(void)
{
	struct ibv_wq *twice[4];
	struct ibv_rwq_ind_table_init_attr a = { .log_ind_tbl_size = 2, .ind_tbl = twice };
	struct ibv_rwq_ind_table *table, *other;

	MUST(begin());
	twice[0] = twice[1] = twice[2] = twice[3] = wq[1];
	MUST(table = table_of(0));
	MUST(table->context == ctx);
	MUST(other = ibv_create_rwq_ind_table(ctx, &a));
	MUST(other->ind_tbl_num != table->ind_tbl_num);
	MUST_EQ(ibv_destroy_wq(wq[0]), EBUSY);
	MUST_EQ(ibv_destroy_wq(wq[1]), EBUSY);
	MUST_EQ(ibv_destroy_rwq_ind_table(table), 0);
	MUST_EQ(ibv_destroy_wq(wq[1]), EBUSY);
	MUST_EQ(ibv_destroy_rwq_ind_table(other), 0);
	return end();
}

static bool einval(void)
{
	struct ibv_wq *missing[4];
	struct ibv_rwq_ind_table_init_attr a = { .ind_tbl = missing };
	struct ibv_device_attr_ex device;
	uint32_t size;

	MUST(begin());
	memcpy(missing, wq, sizeof(missing));
	a.comp_mask = IBV_CREATE_IND_TABLE_RESERVED;
	MUST_FAIL(ibv_create_rwq_ind_table(ctx, &a), EINVAL);
	a.comp_mask = 0;
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &device), 0);
	size = device.rss_caps.max_rwq_indirection_table_size;
	a.log_ind_tbl_size = 1 + (uint32_t)__builtin_ctz(size);
	MUST_FAIL(ibv_create_rwq_ind_table(ctx, &a), EINVAL);
	a.log_ind_tbl_size = 32;
	MUST_FAIL(ibv_create_rwq_ind_table(ctx, &a), EINVAL);
	a.log_ind_tbl_size = 2;
	missing[3] = NULL;
	MUST_FAIL(ibv_create_rwq_ind_table(ctx, &a), EINVAL);
	return end();
}

static bool enoent(void)
{
	struct ibv_rwq_ind_table *table;

	MUST(begin());
	wq[1]->handle ^= 1u << 31;
	MUST_FAIL(table_of(1), ENOENT);
	wq[1]->handle ^= 1u << 31;
	MUST(table = table_of(1));
	table->ind_tbl_handle ^= 1 << 30;
	MUST_EQ(ibv_destroy_rwq_ind_table(table), ENOENT);
	table->ind_tbl_handle ^= 1 << 30;
	MUST_EQ(ibv_destroy_rwq_ind_table(table), 0);
	return end();
}

/* ibv_query_device_ex(3), rss_caps: the maxima of tables and of their length. */
static bool as_many_as_there_may_be(void)
{
	struct ibv_rwq_ind_table_init_attr longest = { 0 };
	struct ibv_rwq_ind_table **table;
	struct ibv_device_attr_ex device;
	uint32_t n = 0, max, size;

	MUST(begin());
	MUST_EQ(ibv_query_device_ex(ctx, NULL, &device), 0);
	MUST_EQ(device.rss_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
	MUST_EQ(device.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	MUST_EQ(device.rss_caps.rx_hash_fields_mask, 0xff);
	max = device.rss_caps.max_rwq_indirection_tables;
	size = device.rss_caps.max_rwq_indirection_table_size;
	MUST(max >= 16 && size >= 128);
	MUST(table = calloc(max + 1, sizeof(struct ibv_rwq_ind_table *)));
	while (n <= max && (table[n] = table_of(0)))
		n++;
	MUST_EQ(errno, ENOMEM);
	MUST_EQ(n, max);
	while (n)
		MUST_EQ(ibv_destroy_rwq_ind_table(table[--n]), 0);
	longest.log_ind_tbl_size = (uint32_t)__builtin_ctz(size);
	MUST(longest.ind_tbl = calloc(size, sizeof(struct ibv_wq *)));
	for (uint32_t i = 0; i < size; i++)
		longest.ind_tbl[i] = wq[i % WQS];
	MUST(table[0] = ibv_create_rwq_ind_table(ctx, &longest));
	MUST_EQ(ibv_destroy_rwq_ind_table(table[0]), 0);
	free(longest.ind_tbl);
	free(table);
	return end();
}

/* ---- QPs with a table ---- */

static struct ibv_qp_init_attr_ex hashing(struct ibv_rwq_ind_table *table)
{
	static uint8_t key[40];

	memcpy(key, key_bytes, sizeof(key));
	return (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = 40,
				  .rx_hash_key = key,
				  .rx_hash_fields_mask =
					  IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
					  IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP },
	};
}

/* It has no queues: nothing can be posted to it, and it goes as far as it can receive. */
static bool qp_has_no_queues(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 }, now;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;
	struct ibv_recv_wr recv = { 0 }, *bad_recv;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp_init_attr_ex ex;
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp;

	MUST(begin());
	MUST(table = table_of(2));
	ex = hashing(table);
	MUST(qp = ibv_create_qp_ex(ctx, &ex));
	MUST_EQ(ibv_destroy_rwq_ind_table(table), EBUSY);
	MUST(!qp->recv_cq && !qp->send_cq);
	MUST_EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT), 0);
	MUST_EQ(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	MUST_EQ(qp_to_state(qp, IBV_QPS_RTR), 0);
	MUST_EQ(ibv_post_recv(qp, &recv, &bad_recv), EINVAL);
	MUST_EQ(qp_to_state(qp, IBV_QPS_RTS), EINVAL);
	MUST_EQ(ibv_post_send(qp, &send, &bad_send), EINVAL);
	MUST_EQ(qp_to_state(qp, IBV_QPS_ERR), 0);
	MUST_EQ(ibv_post_send(qp, &send, &bad_send), EINVAL);
	MUST_EQ(ibv_query_qp(qp, &now, IBV_QP_CAP, &init), 0);
	MUST_EQ(now.cap.max_recv_wr, 0);
	MUST_EQ(now.cap.max_send_wr, 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_rwq_ind_table(table), 0);
	return end();
}

static bool qp_refused(void)
{
	const uint32_t table_bit = IBV_QP_INIT_ATTR_IND_TABLE, hash_bit = IBV_QP_INIT_ATTR_RX_HASH;
	struct ibv_rwq_ind_table *table, *one;
	struct ibv_qp_init_attr_ex a;
	struct ibv_qp *qp;

	MUST(begin());
	MUST(table = table_of(2));
	MUST(one = table_of(0));
#define WITH(field, value) (a = hashing(table), a.field = (value), ibv_create_qp_ex(ctx, &a))
	MUST_FAIL(WITH(qp_type, IBV_QPT_UD), EOPNOTSUPP);
	MUST_FAIL(WITH(comp_mask, a.comp_mask & ~table_bit), EINVAL);
	MUST_FAIL(WITH(comp_mask, a.comp_mask & ~hash_bit), EINVAL);
	MUST_FAIL(WITH(comp_mask, a.comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD), EINVAL);
	MUST_FAIL(WITH(rwq_ind_tbl, NULL), EINVAL);
	MUST_FAIL(WITH(cap.max_recv_wr, 1), EINVAL);
	MUST_FAIL(WITH(cap.max_recv_sge, 1), EINVAL);
	MUST_FAIL(WITH(cap.max_send_wr, 1), EINVAL);
	MUST_FAIL(WITH(rx_hash_conf.rx_hash_function, 0), EOPNOTSUPP);
	MUST_FAIL(WITH(rx_hash_conf.rx_hash_function, 2), EOPNOTSUPP);
	MUST_FAIL(WITH(rx_hash_conf.rx_hash_key_len, 39), EINVAL);
	MUST_FAIL(WITH(rx_hash_conf.rx_hash_key, NULL), EINVAL);
	MUST_FAIL(WITH(rx_hash_conf.rx_hash_fields_mask, 1 << 9), EINVAL);
	MUST_FAIL(WITH(rx_hash_conf.rx_hash_fields_mask, IBV_RX_HASH_IPSEC_SPI), EOPNOTSUPP);
	MUST_FAIL(WITH(rx_hash_conf.rx_hash_fields_mask, IBV_RX_HASH_INNER | 1), EOPNOTSUPP);
	/* without fields there is nothing to choose by */
	MUST_FAIL(WITH(rx_hash_conf.rx_hash_fields_mask, 0), EINVAL);
	a = hashing(table);
	a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	a.send_ops_flags = IBV_QP_EX_WITH_SEND;
	MUST_FAIL(ibv_create_qp_ex(ctx, &a), EOPNOTSUPP);
	table->ind_tbl_handle ^= 1 << 30;
	MUST_FAIL(WITH(pd, pd), ENOENT);
	table->ind_tbl_handle ^= 1 << 30;
#undef WITH
	a = hashing(one);
	a.rx_hash_conf.rx_hash_fields_mask = 0;
	MUST(qp = ibv_create_qp_ex(ctx, &a));
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_rwq_ind_table(table), 0);
	MUST_EQ(ibv_destroy_rwq_ind_table(one), 0);
	return end();
}

/* ---- frames, from ourselves ---- */

static struct ibv_qp *sender, *receiver;
static struct ibv_rwq_ind_table *table4;
static struct ibv_flow *flow;
static struct ibv_cq *sends;
static uint8_t frame[BYTES];

static bool own_mac(uint8_t mac[6])
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%s/address",
		 strchr(ibv_get_device_name(ctx->device), '_') + 1);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 17) {
		/* /sys may be another namespace's */
		memcpy(mac, (uint8_t[]){ 2, 0, 0, 0x77, 0, 1 }, 6);
		return true;
	}
	close(fd);
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		      &mac[4], &mac[5]) == 6;
}

static bool traffic_begin(void)
{
	struct ibv_flow_attr all = { .type = IBV_FLOW_ATTR_ALL_DEFAULT, .size = sizeof(all),
				     .port = 1 };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr plain = { .qp_type = IBV_QPT_RAW_PACKET,
					  .cap = { 1, 0, 1, 0, 0 } };
	struct ibv_qp_init_attr_ex ex;

	MUST(begin());
	MUST(sends = ibv_create_cq(ctx, 16, NULL, NULL, 0));
	plain.send_cq = plain.recv_cq = sends;
	MUST(sender = ibv_create_qp(pd, &plain));
	MUST_EQ(ibv_modify_qp(sender, &a, IBV_QP_STATE | IBV_QP_PORT), 0);
	MUST_EQ(qp_to_state(sender, IBV_QPS_RTR), 0);
	MUST_EQ(qp_to_state(sender, IBV_QPS_RTS), 0);
	MUST(table4 = table_of(2));
	ex = hashing(table4);
	/* in RESET: its state does not count */
	MUST(receiver = ibv_create_qp_ex(ctx, &ex));
	MUST(flow = ibv_create_flow(receiver, &all));
	memset(frame, 0, sizeof(frame));
	MUST(own_mac(frame));
	frame[6] = 2;
	frame[12] = 8;
	frame[14] = 0x45;
	frame[17] = BYTES - 14;
	frame[22] = 64;
	frame[23] = 17;
	return true;
}

static int destroy_wq(void *object)
{
	return ibv_destroy_wq(object);
}

/* One of wq[0], which is destroyed first: it waits until the event is acknowledged. */
static bool traffic_end(struct ibv_async_event *unacknowledged)
{
	MUST_EQ(ibv_destroy_qp(receiver), EBUSY);
	MUST_EQ(ibv_destroy_flow(flow), 0);
	MUST_EQ(ibv_destroy_qp(receiver), 0);
	MUST_EQ(ibv_destroy_rwq_ind_table(table4), 0);
	MUST_EQ(ibv_destroy_qp(sender), 0);
	MUST_EQ(ibv_destroy_cq(sends), 0);
	if (unacknowledged) {
		struct destruction d;

		MUST(destroy_begins(&d, destroy_wq, unacknowledged->element.wq));
		MUST(destroy_waits(&d));
		ibv_ack_async_event(unacknowledged);
		MUST(destroy_ends(&d));
		wq[0] = NULL;
	}
	return end();
}

static int post(int to, int slot, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)memory[to][slot], length, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)(100 * to + slot), .sg_list = &sge,
				  .num_sge = 1 }, *bad;

	return ibv_post_wq_recv(wq[to], &wr, &bad);
}

static bool send_frame(const char *src, const char *dst, uint16_t sport, uint16_t dport)
{
	struct ibv_sge sge = { (uintptr_t)frame, BYTES, 0 };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_mr *from;
	struct ibv_wc wc;

	MUST_EQ(inet_pton(AF_INET, src, frame + 26), 1);
	MUST_EQ(inet_pton(AF_INET, dst, frame + 30), 1);
	memcpy(frame + 34, (uint16_t[]){ htons(sport), htons(dport) }, 4);
	MUST(from = ibv_reg_mr(pd, frame, sizeof(frame), 0));
	sge.lkey = from->lkey;
	MUST_EQ(ibv_post_send(sender, &wr, &bad), 0);
	MUST(wait_wc(sends, &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(ibv_dereg_mr(from), 0);
	return true;
}

/* Of the published vectors, each in its work queue, by its number; its CQ alone has the event. */
static bool frames_by_hash(void)
{
	static const struct {
		const char *src, *dst;
		uint16_t sport, dport;
		uint32_t hash;
	} v[] = {
		{ "66.9.149.187", "161.142.100.80", 2794, 1766, 0x51ccc178 },
		{ "199.92.111.2", "65.69.140.83", 14230, 4739, 0xc626b0ea },
		{ "24.19.198.95", "12.22.207.184", 12898, 38024, 0x5c2b394a },
		{ "38.27.205.30", "209.142.163.6", 48228, 2217, 0xafc7327f },
		{ "153.39.163.191", "202.188.127.2", 44251, 1303, 0x10e828a2 },
	};
	struct ibv_wc wc;

	MUST(traffic_begin());
	for (unsigned int i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		const int to = (int)(v[i].hash % WQS), slot = (int)i;

		for (int n = 0; n < WQS; n++)
			MUST_EQ(post(n, slot, sizeof(memory[0][0])), 0);
		for (int n = 0; n < 2; n++)
			MUST_EQ(ibv_req_notify_cq(cq[n], 0), 0);
		MUST(send_frame(v[i].src, v[i].dst, v[i].sport, v[i].dport));
		MUST(take_cq_event(channel[to % 2], cq[to % 2]));
		MUST(wait_wc(cq[to % 2], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.opcode, IBV_WC_RECV);
		MUST_EQ(wc.qp_num, wq[to]->wq_num);
		MUST_EQ(wc.wr_id / 100, to);
		MUST_EQ(wc.byte_len, BYTES);
		MUST(!memcmp(memory[to][wc.wr_id % 100], frame, BYTES));
		MUST_EQ(ibv_poll_cq(cq[0], 1, &wc), 0);
		MUST_EQ(ibv_poll_cq(cq[1], 1, &wc), 0);
		MUST(no_cq_event(channel[1 - to % 2]));
		/* as many are posted to each as before */
		for (int n = 0; n < WQS; n++) {
			struct ibv_wq_attr a = { .attr_mask = IBV_WQ_ATTR_STATE };

			MUST_EQ(ibv_modify_wq(wq[n], &a), 0);
			a.wq_state = IBV_WQS_RDY;
			MUST_EQ(ibv_modify_wq(wq[n], &a), 0);
		}
	}
	return traffic_end(NULL);
}

/*
 * "WQ_FATAL: Error occurred on a WQ and it transitioned to error state"; another one goes on. As
 * of other objects, destroying it waits for the acknowledgement.
 */
static bool wq_fatal(void)
{
	struct ibv_wq_attr a = { .attr_mask = IBV_WQ_ATTR_CURR_STATE,
				 .curr_wq_state = IBV_WQS_ERR };
	struct ibv_async_event event;
	struct ibv_wc wc;

	MUST(traffic_begin());
	/* by its hash wq[0]'s, the other one wq[2]'s */
	MUST_EQ(post(0, 0, BYTES - 1), 0);
	MUST_EQ(post(2, 0, BYTES), 0);
	MUST(send_frame("66.9.149.187", "161.142.100.80", 2794, 1766));
	MUST(wait_wc(cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_LOC_LEN_ERR);
	MUST_EQ(wc.qp_num, wq[0]->wq_num);
	MUST(next_async(&event));
	MUST_EQ(event.event_type, IBV_EVENT_WQ_FATAL);
	MUST(event.element.wq == wq[0]);
	MUST_EQ(ibv_modify_wq(wq[0], &a), 0);
	MUST_EQ(wq[0]->state, IBV_WQS_ERR);
	MUST(send_frame("199.92.111.2", "65.69.140.83", 14230, 4739));
	MUST(wait_wc(cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.qp_num, wq[2]->wq_num);
	return traffic_end(&event);
}

const struct test_case man_cases[] = {
	CASE(makes_and_destroys),
	CASE(einval),
	CASE(enoent),
	CASE(as_many_as_there_may_be),
	CASE(qp_has_no_queues),
	CASE(qp_refused),
	CASE(frames_by_hash),
	CASE(wq_fatal),
	{ 0 },
};
