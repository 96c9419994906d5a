/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tag matching between two processes, both ways at once, every completion and every byte judged:
 * eager messages that find their tag and that do not, messages without a tag, rendezvous that the
 * device fetches and that the application fetches itself. The application does its half: it counts
 * unexpected messages and reports the count.
 *
 *	tags [options]			server: waits for one client
 *	tags [options] HOST		client
 *
 * Both sides must be given the same -n, -m and -s. The messages are a function of the seed, so each
 * side knows all messages of the other.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define WINDOW	 8	/* messages of a round */
#define LONGEST	 12000
#define SLOT	 (64 + LONGEST)
/* for whole messages: a round's, and a FIN for each message of this side */
#define RECEIVES 24

enum kind { MATCHED, UNEXPECTED, NO_TAG, FETCHED, UNEXPECTED_FETCH, KINDS };

/* Which work request: in the upper half of a wr_id, its number in the lower. */
enum { ID_TAG = 1, ID_RECEIVE, ID_SEND, ID_READ, ID_FIN, ID_SYNC };
#define ID(what, n) ((uint64_t)(what) << 32 | (n))

struct message {
	enum kind kind;
	uint32_t len;
};

struct address {
	union ibv_gid gid;
	uint32_t qpn, psn;
};

static struct {
	const char *device, *port, *host;
	uint32_t gid_index, rounds, seed;
	enum ibv_mtu mtu;
	bool events;
} opt = { .port = "18610", .rounds = 100, .seed = 1, .mtu = IBV_MTU_1024 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq_ex *cq;	/* the SRQ's */
static struct ibv_cq *send_cq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *out, *in, *whole; /* WINDOW slots each, and RECEIVES slots */

static unsigned int side;	/* 0 server, 1 client */
static uint32_t round_now;
static uint32_t unexpected;	/* messages since the start */
static bool must_sync;
static uint32_t done, sent, fins, fins_wanted, fetches; /* of this round */
static bool seen[WINDOW], matched[WINDOW];
static uint64_t count[KINDS];

/* What side s sends as message i of a round. */
static struct message planned(unsigned int s, uint32_t round, uint32_t i)
{
	uint64_t x = opt.seed * 1000003ull + round * 2 * WINDOW + s * WINDOW + i;

	x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 32) * 0x94d049bb133111ebull;
	x ^= x >> 31;
	return (struct message){ .kind = x % KINDS,
				 .len = (x >> 8) % 4 ? (x >> 16) % 600 : (x >> 16) % LONGEST };
}

static uint64_t tag_of(unsigned int s, uint32_t i)
{
	return (uint64_t)s << 56 | (uint64_t)round_now << 8 | i;
}

static void fill(uint8_t *to, unsigned int s, uint32_t i, uint32_t len)
{
	for (uint32_t k = 0; k < len; k++)
		to[k] = (uint8_t)(k * 31 + (k >> 8) + i * 101 + round_now * 17 + s * 3 + 1);
}

static bool is_filled(const uint8_t *from, unsigned int s, uint32_t i, uint32_t len)
{
	static uint8_t want[LONGEST];

	fill(want, s, i, len);
	return memcmp(from, want, len) == 0;
}

/* ---- opening ---- */

static void open_queues(void)
{
	struct ibv_cq_init_attr_ex ex = {
		.cqe = 256, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_TM_INFO
	};
	struct ibv_srq_init_attr_ex a = { .attr = { .max_wr = RECEIVES, .max_sge = 1 },
					  .srq_type = IBV_SRQT_TM,
					  .comp_mask = IBV_SRQ_INIT_ATTR_PD |
						       IBV_SRQ_INIT_ATTR_TYPE |
						       IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
					  .tm_cap = { .max_num_tags = WINDOW, .max_ops = 4 } };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4 * WINDOW, .max_send_sge = 1, .max_inline_data = 32 }
	};
	size_t bytes = (size_t)(2 * WINDOW + RECEIVES) * SLOT;

	ctx = open_device(opt.device);
	pd = ibv_alloc_pd(ctx);
	channel = ibv_create_comp_channel(ctx);
	must(pd && channel, "no PD or channel: %s", strerror(errno));
	ex.channel = channel;
	cq = ibv_create_cq_ex(ctx, &ex);
	must(cq, "ibv_create_cq_ex: %s", strerror(errno));
	send_cq = ibv_create_cq(ctx, 256, NULL, channel, 0);
	must(send_cq, "ibv_create_cq: %s", strerror(errno));
	a.pd = pd;
	a.cq = ibv_cq_ex_to_cq(cq);
	srq = ibv_create_srq_ex(ctx, &a);
	must(srq, "ibv_create_srq_ex: %s", strerror(errno));
	init.send_cq = init.recv_cq = send_cq;
	init.srq = srq;
	qp = ibv_create_qp(pd, &init);
	must(qp, "ibv_create_qp: %s", strerror(errno));
	out = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	must(out, "no memory");
	in = out + (size_t)WINDOW * SLOT;
	whole = in + (size_t)WINDOW * SLOT;
	mr = ibv_reg_mr(pd, out, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	must(mr, "ibv_reg_mr: %s", strerror(errno));
}

static void modify(struct ibv_qp_attr *attr, int mask, const char *to)
{
	int err = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);

	must(!err, "ibv_modify_qp to %s: %s", to, strerror(err));
}

static void connect_qp(int ctl)
{
	struct address own = { .qpn = qp->qp_num, .psn = opt.seed * 7919 + side * 0x7ffff1 }, peer;
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = opt.mtu,
				   .max_dest_rd_atomic = 4,
				   .min_rnr_timer = 1 };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 4 };

	must(!ibv_query_gid(ctx, 1, (int)opt.gid_index, &own.gid), "ibv_query_gid(%u)",
	     opt.gid_index);
	own.psn &= 0xffffff;
	ctl_swap(ctl, &own, &peer, sizeof(own));
	modify(&init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
	rtr.dest_qp_num = peer.qpn;
	rtr.rq_psn = peer.psn;
	rtr.ah_attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer.gid, .sgid_index = (uint8_t)opt.gid_index, .hop_limit = 64 }
	};
	modify(&rtr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	       "RTR");
	rts.sq_psn = own.psn;
	modify(&rts,
	       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC,
	       "RTS");
}

/* ---- posting ---- */

static void post_receive(uint32_t n)
{
	struct ibv_sge sge = { (uintptr_t)whole + (size_t)n * SLOT, SLOT, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = ID(ID_RECEIVE, n), .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = ibv_post_srq_recv(srq, &wr, &bad);

	must(!err, "ibv_post_srq_recv: %s", strerror(err));
}

static void post_op(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad;
	int err = ibv_post_srq_ops(srq, wr, &bad);

	must(!err, "ibv_post_srq_ops: %s", strerror(err));
}

/* Posts buffers for the peer's messages that are to match. */
static void post_tags(void)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct message m = planned(!side, round_now, i);
		struct ibv_sge sge = { (uintptr_t)in + (size_t)i * SLOT, m.len, mr->lkey };
		struct ibv_ops_wr wr = { .opcode = IBV_WR_TAG_ADD,
					 .flags = IBV_OPS_TM_SYNC,
					 .tm = { .unexpected_cnt = unexpected,
						 .add = { .recv_wr_id = ID(ID_TAG, i),
							  .sg_list = &sge,
							  .num_sge = 1,
							  .tag = tag_of(!side, i),
							  .mask = UINT64_MAX } } };

		memset(in + (size_t)i * SLOT, 0xee, SLOT);
		if (m.kind == MATCHED || m.kind == FETCHED)
			post_op(&wr);
	}
}

static void post_send(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err;

	wr->send_flags |= IBV_SEND_SIGNALED;
	err = ibv_post_send(qp, wr, &bad);
	must(!err, "ibv_post_send: %s", strerror(err));
}

static void send_messages(void)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct message m = planned(side, round_now, i);
		bool is_rndv = m.kind == FETCHED || m.kind == UNEXPECTED_FETCH;
		uint8_t *slot = out + (size_t)i * SLOT, *data = slot + (is_rndv ? 64 : 16);
		struct ibv_tmh h = { .opcode = is_rndv		? IBV_TMH_RNDV :
					       m.kind == NO_TAG ? IBV_TMH_NO_TAG :
								  IBV_TMH_EAGER,
				     .app_ctx = htobe32(i),
				     .tag = htobe64(tag_of(side, i)) };
		struct ibv_rvh v = { .va = htobe64((uintptr_t)data),
				     .rkey = htobe32(mr->rkey),
				     .len = htobe32(m.len) };
		struct ibv_sge sge = { (uintptr_t)slot, is_rndv ? 32 : 16 + m.len, mr->lkey };
		struct ibv_send_wr wr = { .wr_id = ID(ID_SEND, i),
					  .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = IBV_WR_SEND };

		fill(data, side, i, m.len);
		memcpy(slot, &h, sizeof(h));
		if (is_rndv) {
			memcpy(slot + 16, &v, sizeof(v));
			fins_wanted++;
		}
		post_send(&wr);
	}
}

/* The application's own part of a rendezvous: fetch, then answer. */
static void fetch(uint32_t i, const struct ibv_rvh *v)
{
	struct ibv_sge sge = { (uintptr_t)in + (size_t)i * SLOT, be32toh(v->len), mr->lkey };
	struct ibv_send_wr wr = { .wr_id = ID(ID_READ, i),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = { be64toh(v->va), be32toh(v->rkey) } };

	post_send(&wr);
	fetches++;
}

static void answer(uint32_t i)
{
	struct ibv_tmh h = { .opcode = IBV_TMH_FIN,
			     .app_ctx = htobe32(i),
			     .tag = htobe64(tag_of(!side, i)) };
	struct ibv_sge sge = { (uintptr_t)&h, sizeof(h), 0 };
	struct ibv_send_wr wr = { .wr_id = ID(ID_FIN, i),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_INLINE };

	post_send(&wr);
}

/* ---- judging ---- */

/* Message i of the peer's is there, as it was to be: its data. */
static void take(uint32_t i, enum kind kind, const uint8_t *data, uint32_t len)
{
	struct message m;

	must(i < WINDOW, "message %u of %u", i, WINDOW);
	m = planned(!side, round_now, i);
	must(m.kind == kind, "message %u is of kind %d, not %d", i, kind, m.kind);
	must(m.len == len, "message %u has %u bytes, not %u", i, len, m.len);
	must(is_filled(data, !side, i, len), "message %u of round %u: wrong bytes", i, round_now);
	must(!seen[i], "message %u came twice", i);
	seen[i] = true;
	count[kind]++;
	done++;
}

static void judge_match(uint64_t wr_id, unsigned int flags)
{
	uint32_t i = (uint32_t)wr_id;
	struct message m = planned(!side, round_now, i % WINDOW);

	must(wr_id == ID(ID_TAG, i) && i < WINDOW, "a match with wr_id %llx",
	     (unsigned long long)wr_id);
	if (flags & IBV_WC_TM_MATCH) {
		struct ibv_wc_tm_info info;

		ibv_wc_read_tm_info(cq, &info);
		must(!matched[i], "tag %u matched twice", i);
		must(info.tag == tag_of(!side, i) && info.priv == i, "tag %llx, context %u",
		     (unsigned long long)info.tag, info.priv);
		matched[i] = true;
	}
	if (flags & IBV_WC_TM_DATA_VALID) {
		must(matched[i], "data before the match");
		take(i, m.kind == FETCHED ? FETCHED : MATCHED, in + (size_t)i * SLOT,
		     ibv_wc_read_byte_len(cq));
		must(in[(size_t)i * SLOT + m.len] == 0xee, "more was written than came");
	}
}

/* What came whole, into receive n. */
static void judge_whole(uint32_t n, bool has_tag)
{
	const uint8_t *slot = whole + (size_t)n * SLOT;
	uint32_t len = ibv_wc_read_byte_len(cq), i;
	struct ibv_tmh h;
	struct ibv_rvh v;

	memcpy(&h, slot, sizeof(h));
	i = be32toh(h.app_ctx);
	must(len >= sizeof(h), "a message of %u bytes", len);
	if (h.opcode == IBV_TMH_FIN) {
		must(!has_tag && i < WINDOW && be64toh(h.tag) == tag_of(side, i),
		     "a FIN for tag %llx", (unsigned long long)be64toh(h.tag));
		fins++;
	} else if (h.opcode == IBV_TMH_RNDV) {
		memcpy(&v, slot + sizeof(h), sizeof(v));
		must(has_tag && i < WINDOW && len == 32, "a rendezvous of %u bytes", len);
		fetch(i, &v);
	} else {
		must(has_tag == (h.opcode == IBV_TMH_EAGER), "opcode %u %s a tag", h.opcode,
		     has_tag ? "with" : "without");
		take(i, has_tag ? UNEXPECTED : NO_TAG, slot + sizeof(h), len - (uint32_t)sizeof(h));
	}
	unexpected += has_tag;
	must_sync |= has_tag;
	post_receive(n);
}

static void judge_one(void)
{
	enum ibv_wc_opcode opcode = ibv_wc_read_opcode(cq);
	unsigned int flags = ibv_wc_read_wc_flags(cq);

	must(cq->status == IBV_WC_SUCCESS, "%s (wr_id %llx, vendor_err %u)",
	     ibv_wc_status_str(cq->status), (unsigned long long)cq->wr_id,
	     ibv_wc_read_vendor_err(cq));
	if (opcode == IBV_WC_TM_SYNC)
		must(cq->wr_id == ID(ID_SYNC, 0) && !flags, "a SYNC with flags %x", flags);
	else if (opcode == IBV_WC_TM_RECV && flags & (IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID))
		judge_match(cq->wr_id, flags);
	else if (opcode == IBV_WC_TM_RECV || opcode == IBV_WC_TM_NO_TAG)
		judge_whole((uint32_t)cq->wr_id, opcode == IBV_WC_TM_RECV);
	else
		die("a completion with opcode %d", opcode);
}

static void judge_sent(const struct ibv_wc *wc)
{
	uint32_t i = (uint32_t)wc->wr_id;

	must(wc->status == IBV_WC_SUCCESS, "%s of a request (wr_id %llx, vendor_err %u)",
	     ibv_wc_status_str(wc->status), (unsigned long long)wc->wr_id, wc->vendor_err);
	if (wc->wr_id >> 32 == ID_READ) {
		take(i, UNEXPECTED_FETCH, in + (size_t)i * SLOT, wc->byte_len);
		answer(i);
	} else if (wc->wr_id >> 32 == ID_FIN) {
		fetches--;
	} else {
		must(wc->wr_id == ID(ID_SEND, sent), "send %u completes with wr_id %llx", sent,
		     (unsigned long long)wc->wr_id);
		sent++;
	}
}

/* True if anything was there. */
static bool poll_both(void)
{
	struct ibv_poll_cq_attr start = { 0 };
	bool any = false;
	struct ibv_wc wc;

	if (ibv_start_poll(cq, &start) == 0) {
		judge_one();
		ibv_end_poll(cq);
		any = true;
	}
	if (ibv_poll_cq(send_cq, 1, &wc) > 0) {
		judge_sent(&wc);
		any = true;
	}
	return any;
}

static void wait_for_event(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *which;
	void *context;

	must(poll(&p, 1, WAIT_MS) == 1, "no event");
	must(!ibv_get_cq_event(channel, &which, &context), "ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(which, 1);
	must(!ibv_req_notify_cq(which, 0), "ibv_req_notify_cq");
}

/* ---- rounds ---- */

static void run_round(int ctl)
{
	struct ibv_ops_wr sync = { .wr_id = ID(ID_SYNC, 0),
				   .opcode = IBV_WR_TAG_SYNC,
				   .flags = IBV_OPS_SIGNALED };
	uint64_t end = now_ms() + WAIT_MS;

	done = sent = fins = fins_wanted = fetches = 0;
	memset(seen, 0, sizeof(seen));
	memset(matched, 0, sizeof(matched));
	post_tags();
	ctl_barrier(ctl, round_now << 1);
	send_messages();
	while (done < WINDOW || sent < WINDOW || fins < fins_wanted || fetches) {
		if (poll_both())
			continue;
		must(now_ms() < end,
		     "round %u: %u messages, %u sends, %u of %u FINs, and nothing more", round_now,
		     done, sent, fins, fins_wanted);
		if (opt.events)
			wait_for_event();
	}
	if (must_sync) {
		sync.tm.unexpected_cnt = unexpected;
		post_op(&sync);
		must_sync = false;
	}
	ctl_barrier(ctl, round_now << 1 | 1);
}

static uint32_t number(const char *text, uint32_t least, uint32_t most)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	must(*text && !*end && v >= least && v <= most,
	     "tags: '%s' is not a number between %u and %u", text, least, most);
	return (uint32_t)v;
}

static void parse(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "d:g:m:n:s:p:e")) != -1) {
		switch (c) {
		case 'd': opt.device = optarg; break;
		case 'g': opt.gid_index = number(optarg, 0, 255); break;
		case 'm':
			for (opt.mtu = IBV_MTU_256;
			     opt.mtu < IBV_MTU_4096 && 128u << opt.mtu < number(optarg, 256, 4096);
			     opt.mtu++)
				;
			break;
		case 'n': opt.rounds = number(optarg, 1, 1000000); break;
		case 's': opt.seed = number(optarg, 0, UINT32_MAX); break;
		case 'p': opt.port = optarg; break;
		case 'e': opt.events = true; break;
		default:
			die("tags [-d DEVICE] [-g GID-INDEX] [-m PATH-MTU] [-n ROUNDS] [-s SEED] "
			    "[-e] [-p PORT] [HOST]");
		}
	}
	opt.host = argv[optind];
}

int main(int argc, char **argv)
{
	int ctl;

	parse(argc, argv);
	side = opt.host != NULL;
	open_queues();
	ctl = ctl_open(opt.host, opt.port);
	connect_qp(ctl);
	for (uint32_t n = 0; n < RECEIVES; n++)
		post_receive(n);
	must(!ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 0) && !ibv_req_notify_cq(send_cq, 0),
	     "ibv_req_notify_cq");
	for (round_now = 0; round_now < opt.rounds; round_now++)
		run_round(ctl);
	printf("tags: seed %u side %u: %llu matched, %llu unexpected, %llu without a tag, %llu "
	       "fetched by the device, %llu by the application\n",
	       opt.seed, side, (unsigned long long)count[MATCHED],
	       (unsigned long long)count[UNEXPECTED], (unsigned long long)count[NO_TAG],
	       (unsigned long long)count[FETCHED], (unsigned long long)count[UNEXPECTED_FETCH]);
	must(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq), "destroying the QP and the SRQ");
	must(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) && !ibv_destroy_cq(send_cq) && !ibv_dereg_mr(mr),
	     "destroying the rest");
	ibv_destroy_comp_channel(channel);
	ibv_dealloc_pd(pd);
	/* Neither leaves before the other has taken its resources down. */
	ctl_barrier(ctl, 0xe0d);
	ibv_close_device(ctx);
	close(ctl);
	free(out);
	return 0;
}
