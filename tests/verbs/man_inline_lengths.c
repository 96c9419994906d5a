/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * IBV_SEND_INLINE of ibv_post_send(3) and ibv_wr_set_inline_data(3): each length from none to
 * max_inline_data, from memory next to an unreadable page, in one element and in lists with empty
 * elements; the same lists also without inline.
 */
#include <sys/mman.h>

#include "man.h"

#define ELEMENTS 16
#define MOST	 1024u /* requested bytes of inline data */
#define FILLER	 0x5e
#define GRH	 40u
#define MARGIN	 64u /* bytes after a message that stay unchanged */
#define ROOM	 (GRH + MOST + MARGIN)

/* A QP of each service that is connected to itself. */
struct sender {
	struct ibv_pd *pd;
	struct ibv_cq *cq[2];
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_ah *ah;
	struct ibv_mr *mr, *source;
	unsigned char *to, *page; /* page[-1] and page[page_size] cannot be accessed */
	uint32_t most;		  /* accepted bytes of inline data */
	size_t page_size;
};

static struct ibv_qp *sender_qp(struct sender *s, enum ibv_qp_type type, uint32_t most)
{
	struct ibv_qp_init_attr_ex a = { .send_cq = s->cq[0],
					 .recv_cq = s->cq[1],
					 .qp_type = type,
					 .cap = { 8, 8, ELEMENTS, 2, most },
					 .comp_mask = IBV_QP_INIT_ATTR_PD |
						      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					 .send_ops_flags = IBV_QP_EX_WITH_SEND,
					 .pd = s->pd };
	struct ibv_qp *qp;

	if (type != IBV_QPT_UD)
		a.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE;
	qp = ibv_create_qp_ex(ctx, &a);
	s->most = a.cap.max_inline_data;
	return qp;
}

/* Connects an RC QP to itself with packets of 256 bytes, so that inline data takes several. */
static int to_small_packets(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = IBV_MTU_256,
				 .dest_qp_num = qp->qp_num,
				 .rq_psn = 7,
				 .max_dest_rd_atomic = 4,
				 .min_rnr_timer = 1,
				 .ah_attr = own_address() };
	int err = ibv_modify_qp(qp, &a,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER);

	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				  .sq_psn = 7,
				  .max_rd_atomic = 4,
				  .timeout = 14,
				  .retry_cnt = 7,
				  .rnr_retry = 7 };
	return err ? err :
		     ibv_modify_qp(qp, &a,
				   IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool sender_open(struct sender *s, enum ibv_qp_type type, uint32_t most, bool small_packets)
{
	struct ibv_ah_attr to = own_address();

	*s = (struct sender){ .page_size = (size_t)sysconf(_SC_PAGESIZE) };
	MUST(s->pd = ibv_alloc_pd(ctx));
	for (int i = 0; i < 2; i++)
		MUST(s->cq[i] = ibv_create_cq(ctx, 32, NULL, NULL, 0));
	for (; !s->qp; most /= 2) {
		MUST(most);
		s->qp = sender_qp(s, type, most);
		if (s->qp)
			MUST(s->most >= most);
	}
	if (s->most > MOST)
		s->most = MOST;
	MUST(s->ex = ibv_qp_to_qp_ex(s->qp));
	MUST(!qp_to_init(s->qp) &&
	     !(small_packets ? to_small_packets(s->qp) : qp_to_rts(s->qp, s->qp->qp_num, 7)));
	if (type == IBV_QPT_UD)
		MUST(s->ah = ibv_create_ah(s->pd, &to));
	MUST(s->to = calloc(1, ROOM));
	MUST(s->mr = ibv_reg_mr(s->pd, s->to, ROOM,
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	s->page = mmap(NULL, 3 * s->page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(s->page != MAP_FAILED);
	s->page += s->page_size;
	MUST_EQ(mprotect(s->page, s->page_size, PROT_READ | PROT_WRITE), 0);
	MUST(s->source = ibv_reg_mr(s->pd, s->page, s->page_size, 0));
	return true;
}

static bool sender_close(struct sender *s)
{
	bool good = !s->qp || !ibv_destroy_qp(s->qp);

	good &= !s->ah || !ibv_destroy_ah(s->ah);
	good &= !s->mr || !ibv_dereg_mr(s->mr);
	good &= !s->source || !ibv_dereg_mr(s->source);
	for (int i = 0; i < 2; i++)
		good &= !s->cq[i] || !ibv_destroy_cq(s->cq[i]);
	good &= !s->pd || !ibv_dealloc_pd(s->pd);
	free(s->to);
	if (s->page && s->page != MAP_FAILED)
		munmap(s->page - s->page_size, 3 * s->page_size);
	if (!good)
		printf("# something refused to be destroyed\n");
	return good;
}

/* ---- lists of elements ---- */

enum shape { WHOLE, HOLES, CRUMBS, SHAPES };

/*
 * Describes the bytes as one element; as pieces between empty elements with invalid addresses and
 * keys; or as single bytes, with the rest in the last element. Returns the number of elements.
 */
static int shaped(enum shape shape, struct ibv_sge *sge, unsigned char *from, uint32_t length,
		  uint32_t key)
{
	const struct ibv_sge none = { 1, 0, 0xdeadbeef };
	uint32_t done = 0;

	if (shape == WHOLE) {
		sge[0] = (struct ibv_sge){ (uintptr_t)from, length, key };
		return 1;
	}
	for (int i = 0; i < ELEMENTS; i++) {
		const bool last = i >= ELEMENTS - 2;
		uint32_t n = shape == CRUMBS ? 1 : 1 + length / 9;

		if (shape == HOLES && !(i & 1)) {
			sge[i] = none;
			continue;
		}
		if (shape == CRUMBS && i == ELEMENTS - 1) {
			sge[i] = none;
			continue;
		}
		if (last || n > length - done)
			n = length - done;
		sge[i] = (struct ibv_sge){ n ? (uintptr_t)from + done : 1, n, n ? key : 0 };
		done += n;
	}
	return ELEMENTS;
}

/* The data's place: at the end of the readable page, at its start, or in between. */
static unsigned char *source_of(struct sender *s, int place, uint32_t length)
{
	return place == 0 ? s->page + s->page_size - length :
	       place == 1 ? s->page :
			    s->page + 1 + length % 16;
}

static void fill(unsigned char *from, uint32_t length, unsigned int seed)
{
	for (uint32_t i = 0; i < length; i++)
		from[i] = (unsigned char)(seed + i * 7 + i / 256);
}

static bool is_filled(const unsigned char *bytes, uint32_t length, unsigned int seed)
{
	for (uint32_t i = 0; i < length; i++)
		MUST_EQ(bytes[i], (unsigned char)(seed + i * 7 + i / 256));
	return true;
}

static int room_for(struct sender *s, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)s->to, length, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(s->qp, &wr, &bad);
}

enum way { SEND_INLINE, WRITE_INLINE, WRITE_IMM_INLINE, SEND_LIST, BUILT_SEND, BUILT_WRITE, WAYS };

static bool is_write(enum way way)
{
	return way == WRITE_INLINE || way == WRITE_IMM_INLINE || way == BUILT_WRITE;
}

/* Posts by ibv_wr_*(); the setter has copied the data when it returns. */
static int build(struct sender *s, enum way way, struct ibv_sge *sge, int n, uint64_t remote)
{
	struct ibv_data_buf list[ELEMENTS];

	for (int i = 0; i < n; i++)
		list[i] = (struct ibv_data_buf){ (void *)(uintptr_t)sge[i].addr, sge[i].length };
	ibv_wr_start(s->ex);
	s->ex->wr_id = 4;
	s->ex->wr_flags = IBV_SEND_SIGNALED;
	if (way == BUILT_SEND)
		ibv_wr_send(s->ex);
	else
		ibv_wr_rdma_write(s->ex, s->mr->rkey, remote);
	if (s->ah)
		ibv_wr_set_ud_addr(s->ex, s->ah, s->qp->qp_num, UD_QKEY);
	if (n == 1)
		ibv_wr_set_inline_data(s->ex, list[0].addr, list[0].length);
	else
		ibv_wr_set_inline_data_list(s->ex, (size_t)n, list);
	for (int i = 0; i < n; i++)
		if (sge[i].length)
			memset(list[i].addr, 0xaa, list[i].length);
	return ibv_wr_complete(s->ex);
}

static int post(struct sender *s, enum way way, struct ibv_sge *sge, int n, uint64_t remote)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND };
	struct ibv_send_wr wr = { .wr_id = 4,
				  .sg_list = sge,
				  .num_sge = n,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	if (way == BUILT_SEND || way == BUILT_WRITE)
		return build(s, way, sge, n, remote);
	wr.opcode = ops[way];
	if (way != SEND_LIST)
		wr.send_flags |= IBV_SEND_INLINE;
	if (s->ah) {
		wr.wr.ud.ah = s->ah;
		wr.wr.ud.remote_qpn = s->qp->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = s->mr->rkey;
	}
	return ibv_post_send(s->qp, &wr, &bad);
}

static bool sent(struct sender *s, enum way way, enum shape shape, int place, uint32_t length)
{
	const uint32_t grh = s->ah ? GRH : 0;
	const uint32_t at = is_write(way) ? length % 13 : grh;
	const bool receives = way != WRITE_INLINE && way != BUILT_WRITE;
	unsigned char *from = source_of(s, place, length);
	const unsigned int seed = length * 31 + (unsigned int)shape * 5 + (unsigned int)way;
	struct ibv_sge sge[ELEMENTS];
	struct ibv_wc wc;
	int n;

	memset(s->page, 0, s->page_size);
	fill(from, length, seed);
	memset(s->to, FILLER, ROOM);
	n = shaped(shape, sge, from, length, way == SEND_LIST ? s->source->lkey : 0xdeadbeef);
	if (receives)
		MUST_EQ(room_for(s, is_write(way) ? 0 : grh + length), 0);
	MUST_EQ(post(s, way, sge, n, (uintptr_t)s->to + at), 0);
	if (way != SEND_LIST)
		memset(s->page, 0xaa, s->page_size); /* "can be reused immediately" */
	MUST(wait_wc(s->cq[0], &wc));
	MUST_EQ(wc.status, IBV_WC_SUCCESS);
	MUST_EQ(wc.wr_id, 4);
	if (receives) {
		MUST(wait_wc(s->cq[1], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		MUST_EQ(wc.byte_len, grh + length);
	} else if (s->qp->qp_type == IBV_QPT_UC) {
		/* the WRITE of a UC QP completes before it has arrived; a later SEND shows it */
		MUST_EQ(room_for(s, 0), 0);
		MUST_EQ(post(s, SEND_INLINE, sge, 0, 0), 0);
		MUST(wait_wc(s->cq[0], &wc) && wait_wc(s->cq[1], &wc));
	}
	MUST(is_filled(s->to + at, length, seed));
	for (uint32_t i = 0; i < at && is_write(way); i++)
		MUST_EQ(s->to[i], FILLER);
	for (uint32_t i = at + length; i < at + length + MARGIN && i < ROOM; i++)
		MUST_EQ(s->to[i], FILLER);
	return true;
}

static bool lengths_body(struct sender *s)
{
	for (uint32_t length = 0; length <= s->most; length++)
		for (enum way way = 0; way < WAYS; way++) {
			if (s->ah && is_write(way))
				continue;
			for (enum shape shape = 0; shape < SHAPES; shape++) {
				const int place = (int)((length + shape + way) % 3);

				if (!sent(s, way, shape, place, length)) {
					printf("# way %d, shape %d, place %d, length %u\n", way,
					       shape, place, length);
					return false;
				}
			}
		}
	return true;
}

static bool on(enum ibv_qp_type type, bool small_packets, bool (*body)(struct sender *s))
{
	struct sender s;
	bool good = sender_open(&s, type, MOST, small_packets) && body(&s);

	return sender_close(&s) && good;
}

#define ON(name, type, body)                                                                       \
	static bool name(void)                                                                     \
	{                                                                                          \
		return on(IBV_QPT_##type, false, body);                                            \
	}

ON(each_length_of_rc, RC, lengths_body)
ON(each_length_of_uc, UC, lengths_body)
ON(each_length_of_ud, UD, lengths_body)

static bool each_length_in_small_packets(void)
{
	return on(IBV_QPT_RC, true, lengths_body);
}

/* Short data at each place of the page, in each length and alignment up to two words and more. */
static bool places_body(struct sender *s)
{
	for (uint32_t length = 0; length <= 40 && length <= s->most; length++)
		for (enum shape shape = 0; shape < SHAPES; shape++)
			for (int place = 0; place < 3; place++)
				MUST(sent(s, SEND_INLINE, shape, place, length) &&
				     sent(s, BUILT_SEND, shape, place, length) &&
				     sent(s, SEND_LIST, shape, place, length));
	return true;
}

ON(short_data_at_the_ends_of_a_page, RC, places_body)

/* The requested limit is granted, and one byte more than the granted limit is refused. */
static bool limits(void)
{
	static const uint32_t asked[] = { 1, 7, 8, 63, 64, 65, 128, 236, 237, 512, 1000 };
	static unsigned char much[65536];
	int made = 0;

	for (int i = 0; i < (int)(sizeof(asked) / sizeof(asked[0])); i++) {
		struct sender s;
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		uint32_t most;

		MUST(sender_open(&s, IBV_QPT_RC, asked[i], false));
		MUST_EQ(ibv_query_qp(s.qp, &attr, IBV_QP_CAP, &init), 0);
		most = init.cap.max_inline_data;
		made += most >= asked[i];
		MUST(most < sizeof(much));
		for (enum shape shape = 0; shape < SHAPES; shape++) {
			struct ibv_sge sge[ELEMENTS];
			int n = shaped(shape, sge, much, most + 1, 0);

			MUST_EQ(post(&s, SEND_INLINE, sge, n, 0), ENOMEM);
			MUST_EQ(build(&s, BUILT_SEND, sge, n, 0), ENOMEM);
			MUST(sent(&s, SEND_INLINE, shape, 0, s.most));
			MUST(sent(&s, BUILT_SEND, shape, 1, s.most));
		}
		MUST(sender_close(&s));
	}
	MUST(made >= 5);
	return true;
}

/* Lengths whose sum overflows 32 or 64 bits, and unmapped bytes: nothing is copied. */
static bool sums_body(struct sender *s)
{
	struct ibv_sge sge[3] = { { (uintptr_t)s->page, 8, 0 },
				  { (uintptr_t)s->page, UINT32_MAX, 0 },
				  { (uintptr_t)s->page, 1, 0 } };
	struct ibv_data_buf list[3] = { { s->page, 8 }, { s->page, SIZE_MAX }, { s->page, 1 } };

	MUST_EQ(post(s, SEND_INLINE, sge, 3, 0), ENOMEM);
	MUST_EQ(post(s, SEND_INLINE, sge + 1, 2, 0), ENOMEM);
	sge[1].length = sge[2].length = 0x80000000;
	MUST_EQ(post(s, SEND_INLINE, sge, 3, 0), ENOMEM);
	for (int i = 0; i < 2; i++) {
		ibv_wr_start(s->ex);
		ibv_wr_send(s->ex);
		ibv_wr_set_inline_data_list(s->ex, 3 - (size_t)i, list + i);
		MUST_EQ(ibv_wr_complete(s->ex), ENOMEM);
		list[1].length = SIZE_MAX / 2 + 1;
		list[2].length = SIZE_MAX / 2 + 1;
	}
	return sent(s, SEND_INLINE, WHOLE, 0, 8);
}

ON(sums_that_wrap, RC, sums_body)

/* A message of only empty elements is empty, inline or not; no element is accessed. */
static bool empty_body(struct sender *s)
{
	for (int n = 0; n <= ELEMENTS; n++)
		for (enum way way = 0; way < WAYS; way++) {
			struct ibv_sge sge[ELEMENTS];
			struct ibv_wc wc;

			for (int i = 0; i < ELEMENTS; i++)
				sge[i] = (struct ibv_sge){ i & 1 ? 0 : UINT64_MAX, 0,
							   i & 2 ? 0 : UINT32_MAX };
			memset(s->to, FILLER, ROOM);
			if (way != WRITE_INLINE && way != BUILT_WRITE)
				MUST_EQ(room_for(s, 8), 0);
			MUST_EQ(post(s, way, sge, n, 1), 0);
			MUST(wait_wc(s->cq[0], &wc));
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			if (way != WRITE_INLINE && way != BUILT_WRITE) {
				MUST(wait_wc(s->cq[1], &wc));
				MUST_EQ(wc.status, IBV_WC_SUCCESS);
				MUST_EQ(wc.byte_len, 0);
			}
			MUST_EQ(s->to[0], FILLER);
		}
	return true;
}

ON(lists_of_nothing, RC, empty_body)

/* A READ's data, and an atomic's result, scattered into lists with empty elements. */
static bool answers_body(struct sender *s)
{
	struct ibv_mr *far = ibv_reg_mr(s->pd, s->page, s->page_size,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
						IBV_ACCESS_REMOTE_ATOMIC);
	struct ibv_sge sge[ELEMENTS];
	struct ibv_send_wr wr = { .sg_list = sge, .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t word;
	struct ibv_wc wc;

	MUST(far);
	for (uint32_t length = 0; length <= MOST; length += 1 + length / 8)
		for (enum shape shape = 0; shape < SHAPES; shape++) {
			fill(s->page, MOST, length);
			memset(s->to, FILLER, ROOM);
			wr.num_sge = shaped(shape, sge, s->to + 3, length, s->mr->lkey);
			wr.opcode = IBV_WR_RDMA_READ;
			wr.wr.rdma.remote_addr = (uintptr_t)s->page;
			wr.wr.rdma.rkey = far->rkey;
			MUST_EQ(ibv_post_send(s->qp, &wr, &bad), 0);
			MUST(wait_wc(s->cq[0], &wc));
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			MUST_EQ(wc.byte_len, length);
			MUST(is_filled(s->to + 3, length, length));
			MUST(s->to[2] == FILLER && s->to[3 + length] == FILLER);
		}
	for (enum shape shape = 0; shape < SHAPES; shape++) {
		memset(s->to, FILLER, ROOM);
		memset(s->page, 1 + shape, 8);
		wr.num_sge = shaped(shape, sge, s->to + 3, 8, s->mr->lkey);
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = (uintptr_t)s->page;
		wr.wr.atomic.rkey = far->rkey;
		wr.wr.atomic.compare_add = 1;
		MUST_EQ(ibv_post_send(s->qp, &wr, &bad), 0);
		MUST(wait_wc(s->cq[0], &wc));
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
		for (int i = 0; i < 8; i++)
			MUST_EQ(s->to[3 + i], 1 + shape);
		MUST(s->to[2] == FILLER && s->to[11] == FILLER);
		/* and 8 bytes that are sent as one word, in place and inline */
		for (int is_inline = 0; is_inline < 2; is_inline++) {
			fill(s->to + 3, 8, 90 + (unsigned int)shape);
			wr.num_sge = shaped(shape, sge, s->to + 3, 8, is_inline ? 0 : s->mr->lkey);
			wr.opcode = IBV_WR_ATOMIC_WRITE;
			wr.send_flags = IBV_SEND_SIGNALED | (is_inline ? IBV_SEND_INLINE : 0);
			wr.wr.rdma.rkey = s->mr->rkey;
			wr.wr.rdma.remote_addr = ((uintptr_t)s->to + 64 + 7) & ~(uintptr_t)7;
			MUST_EQ(ibv_post_send(s->qp, &wr, &bad), 0);
			MUST(wait_wc(s->cq[0], &wc));
			MUST_EQ(wc.status, IBV_WC_SUCCESS);
			memcpy(&word, s->to + 3, 8);
			MUST(!memcmp(&word, (void *)(uintptr_t)wr.wr.rdma.remote_addr, 8));
			memset(s->to + 64, 0, 16);
		}
		wr.send_flags = IBV_SEND_SIGNALED;
	}
	MUST_EQ(ibv_dereg_mr(far), 0);
	return true;
}

ON(answers_into_lists_with_holes, RC, answers_body)

/* Receives of two elements, one of them empty and without a region. */
static bool receives_body(struct sender *s)
{
	for (uint32_t length = 0; length <= 200; length += 7)
		for (int i = 0; i < 2; i++) {
			struct ibv_sge in[2], out;
			struct ibv_recv_wr wr = { .sg_list = in, .num_sge = 2 }, *bad;
			struct ibv_wc wc;

			memset(s->to, FILLER, ROOM);
			fill(s->page, length, length);
			in[i] = (struct ibv_sge){ (uintptr_t)s->to, length, s->mr->lkey };
			in[!i] = (struct ibv_sge){ 0, 0, 0x12345678 };
			MUST_EQ(ibv_post_recv(s->qp, &wr, &bad), 0);
			out = (struct ibv_sge){ (uintptr_t)s->page, length, s->source->lkey };
			MUST_EQ(post(s, SEND_LIST, &out, 1, 0), 0);
			MUST(wait_wc(s->cq[0], &wc) && wc.status == IBV_WC_SUCCESS);
			MUST(wait_wc(s->cq[1], &wc) && wc.status == IBV_WC_SUCCESS);
			MUST(is_filled(s->to, length, length));
			MUST_EQ(s->to[length], FILLER);
		}
	return true;
}

ON(receives_with_an_empty_element, RC, receives_body)

const struct test_case man_cases[] = {
	CASE(each_length_of_rc),
	CASE(each_length_of_uc),
	CASE(each_length_of_ud),
	CASE(each_length_in_small_packets),
	CASE(short_data_at_the_ends_of_a_page),
	CASE(limits),
	CASE(sums_that_wrap),
	CASE(lists_of_nothing),
	CASE(answers_into_lists_with_holes),
	CASE(receives_with_an_empty_element),
	{ 0 },
};
