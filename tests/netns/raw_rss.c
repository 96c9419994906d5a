/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames over work queues: a packet socket sends frames of many addresses and ports, a raw packet
 * QP with an indirection table receives them. The i-th frame is the same at both ends, and which
 * work queue it belongs to is worked out here from its bytes, as the hash is defined.
 *
 *	raw_rss send IFACE [OPTION...]		a packet socket
 *	raw_rss recv DEVICE [OPTION...]		a QP with a table
 *	raw_rss refused DEVICE			prints what making a work queue and such a QP say
 *
 *	-k KIND		udp4, udp6, tcp4, tcp6, vlan (a tagged udp4), frag (fragments of udp4, whose
 *			later ones have other bytes in the place of ports), eth
 *	-n COUNT	frames
 *	-F FIELDS	of recv: enum ibv_rx_hash_fields
 *	-w WQS -t LOG	of recv: work queues, and log2 of the table's size
 *	-c CQS		of recv: the i-th work queue completes in CQ i modulo CQS
 *	-e		of recv: sleeps, and looks into a CQ only when its channel has its event
 *	-b		of recv: the second work queue is in ERR, and its frames are dropped
 *
 * recv prints "ready" when it can receive, and "received COUNT in WQS" when all have arrived.
 */
#define _GNU_SOURCE /* strerrorname_np() */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define BYTES	 120
#define SLOTS	 512
#define WQS_MAX	 16
#define KEY	 40

static struct {
	const char *kind;
	unsigned int count, fields, wqs, log_size, cqs;
	bool events, broken;
} o = { .kind = "udp4", .count = 200, .fields = 0xff, .wqs = 4, .log_size = 2, .cqs = 1 };

static const unsigned char to[6] = { 2, 0, 0, 0x77, 0, 1 }, from[6] = { 2, 0, 0, 0x77, 0, 9 };

static bool is_kind(const char *kind)
{
	return !strcmp(o.kind, kind);
}

/* ---- frames ---- */

static void put16(unsigned char *at, unsigned int value)
{
	at[0] = (unsigned char)(value >> 8);
	at[1] = (unsigned char)value;
}

/* A step of a generator with its state in one word: what both ends draw for frame i. */
static unsigned int draw(unsigned int *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Where the IP header is, and what of the frame is hashed by the fields. */
struct made {
	unsigned char input[36];
	unsigned int input_bytes;
};

static void add_input(struct made *m, const unsigned char *bytes, unsigned int n,
		      unsigned int field)
{
	if (!(o.fields & field))
		return;
	memcpy(m->input + m->input_bytes, bytes, n);
	m->input_bytes += n;
}

static void put_ipv4(unsigned char *ip, unsigned int i, bool tcp)
{
	unsigned int sum = 0;

	memset(ip, 0, 12);
	ip[0] = 0x45;
	put16(ip + 2, (unsigned int)(BYTES - 14 - (is_kind("vlan") ? 4 : 0)));
	ip[8] = 64;
	ip[9] = tcp ? 6 : 17;
	/* the first of a packet, and others: no receiver here is to put them together */
	if (is_kind("frag"))
		put16(ip + 6, i & 1 ? 0x2000 : 0x2005);
	ip[12] = ip[16] = 10;
	for (unsigned int n = 0; n < 20; n += 2)
		sum += (unsigned int)ip[n] << 8 | ip[n + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~((sum & 0xffff) + (sum >> 16)) & 0xffff);
}

static void put_ipv6(unsigned char *ip, bool tcp)
{
	memset(ip, 0, 8);
	ip[0] = 0x60;
	put16(ip + 4, BYTES - 14 - 40);
	ip[6] = tcp ? 6 : 17;
	ip[7] = 64;
	ip[8] = ip[24] = 0xfd;
}

/* Random bytes, in which headers are put; the number stands at the end. */
static struct made make_frame(unsigned char *frame, unsigned int i)
{
	const bool v6 = is_kind("udp6") || is_kind("tcp6"), tcp = !strncmp(o.kind, "tcp", 3);
	unsigned char *ip = frame + 14, *l4;
	unsigned int state = i * 7919 + 1;
	struct made m = { .input_bytes = 0 };

	for (unsigned int n = 0; n < BYTES; n++)
		frame[n] = (unsigned char)draw(&state);
	memcpy(frame, to, 6);
	memcpy(frame + 6, from, 6);
	put16(frame + BYTES - 2, i);
	put16(frame + 12, is_kind("eth") ? ETH_P_802_EX1 : v6 ? ETH_P_IPV6 : ETH_P_IP);
	if (is_kind("eth"))
		return m;
	if (is_kind("vlan")) {
		memmove(frame + 16, frame + 12, 2);
		put16(frame + 12, ETH_P_8021Q);
		put16(frame + 14, 0x6064);
		ip += 4;
	}
	if (v6)
		put_ipv6(ip, tcp);
	else
		put_ipv4(ip, i, tcp);
	l4 = ip + (v6 ? 40 : 20);
	put16(l4, 1024 + draw(&state) % 60000);
	put16(l4 + 2, 5000 + draw(&state) % 1000); /* none of RoCEv2's */
	if (!tcp) {
		put16(l4 + 4, (unsigned int)(frame + BYTES - l4));
		put16(l4 + 6, 0);
	}
	add_input(&m, v6 ? ip + 8 : ip + 12, v6 ? 16 : 4,
		  v6 ? IBV_RX_HASH_SRC_IPV6 : IBV_RX_HASH_SRC_IPV4);
	add_input(&m, v6 ? ip + 24 : ip + 16, v6 ? 16 : 4,
		  v6 ? IBV_RX_HASH_DST_IPV6 : IBV_RX_HASH_DST_IPV4);
	if (is_kind("frag"))
		return m;
	add_input(&m, l4, 2, tcp ? IBV_RX_HASH_SRC_PORT_TCP : IBV_RX_HASH_SRC_PORT_UDP);
	add_input(&m, l4 + 2, 2, tcp ? IBV_RX_HASH_DST_PORT_TCP : IBV_RX_HASH_DST_PORT_UDP);
	return m;
}

/* ---- the hash, bit by bit ---- */

static unsigned char key[KEY];

static unsigned int hash_of(const struct made *m)
{
	unsigned int hash = 0;

	for (unsigned int bit = 0; bit < 8 * m->input_bytes; bit++)
		for (unsigned int n = 0; n < 32; n++)
			if (m->input[bit / 8] >> (7 - bit % 8) & 1 &&
			    key[(bit + n) / 8] >> (7 - (bit + n) % 8) & 1)
				hash ^= 0x80000000u >> n;
	return hash;
}

/* The table has the work queues in turn. */
static unsigned int wq_of(const struct made *m)
{
	return hash_of(m) % (1u << o.log_size) % o.wqs;
}

/* ---- the work queues ---- */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel[WQS_MAX];
static struct ibv_cq *cq[WQS_MAX];
static struct ibv_wq *wq[WQS_MAX];
static struct ibv_rwq_ind_table *table;
static struct ibv_mr *mr;
static unsigned char slots[WQS_MAX][SLOTS][256];
static bool *has_come;
static unsigned int in_wq[WQS_MAX];

static void post(unsigned int w, unsigned int slot)
{
	struct ibv_sge sge = { (uintptr_t)slots[w][slot], sizeof(slots[w][slot]), mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = w * SLOTS + slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_wq_recv(wq[w], &wr, &bad), "ibv_post_wq_recv");
}

static void move(struct ibv_wq *to_move, enum ibv_wq_state state)
{
	struct ibv_wq_attr a = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state };

	must(!ibv_modify_wq(to_move, &a), "ibv_modify_wq");
}

static void make_wqs(void)
{
	struct ibv_rwq_ind_table_init_attr t = { .log_ind_tbl_size = o.log_size };
	const unsigned int size = 1u << o.log_size;

	for (unsigned int i = 0; i < o.cqs; i++) {
		must((channel[i] = ibv_create_comp_channel(ctx)), "ibv_create_comp_channel");
		must((cq[i] = ibv_create_cq(ctx, 4096, NULL, channel[i], 0)), "ibv_create_cq");
		if (o.events)
			must(!ibv_req_notify_cq(cq[i], 0), "ibv_req_notify_cq");
	}
	for (unsigned int i = 0; i < o.wqs; i++) {
		struct ibv_wq_init_attr a = { .wq_type = IBV_WQT_RQ, .max_wr = SLOTS,
					      .max_sge = 1, .pd = pd, .cq = cq[i % o.cqs] };

		must((wq[i] = ibv_create_wq(ctx, &a)), "ibv_create_wq: %s", strerror(errno));
		move(wq[i], IBV_WQS_RDY);
		for (unsigned int slot = 0; slot < SLOTS; slot++)
			post(i, slot);
	}
	must((t.ind_tbl = calloc(size, sizeof(struct ibv_wq *))), "memory");
	for (unsigned int i = 0; i < size; i++)
		t.ind_tbl[i] = wq[i % o.wqs];
	must((table = ibv_create_rwq_ind_table(ctx, &t)), "ibv_create_rwq_ind_table");
	free(t.ind_tbl);
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
				  .rx_hash_key_len = KEY,
				  .rx_hash_key = key,
				  .rx_hash_fields_mask = o.fields },
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &init);

	must(qp, "ibv_create_qp_ex: %s", strerror(errno));
	return qp;
}

static struct ibv_flow *make_flow(struct ibv_qp *qp)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} f = {
		.attr = { .size = sizeof(f), .num_of_specs = 1, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(f.eth) },
	};
	struct ibv_flow *flow;

	memcpy(f.eth.val.dst_mac, to, 6);
	memset(f.eth.mask.dst_mac, 0xff, 6);
	memcpy(f.eth.val.src_mac, from, 6);
	memset(f.eth.mask.src_mac, 0xff, 6);
	must((flow = ibv_create_flow(qp, &f.attr)), "ibv_create_flow: %s", strerror(errno));
	return flow;
}

/* Checks a received frame: once, whole, in the right queue. */
static void check(const struct ibv_wc *wc, const struct ibv_cq *where)
{
	const unsigned int w = (unsigned int)wc->wr_id / SLOTS;
	const unsigned int slot = (unsigned int)wc->wr_id % SLOTS;
	const unsigned char *got = slots[w][slot];
	unsigned char want[BYTES];
	struct made m;
	unsigned int i;

	must(wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV, "a completion says %s",
	     ibv_wc_status_str(wc->status));
	must(wc->byte_len == BYTES, "a frame is of %u bytes", wc->byte_len);
	must(wc->qp_num == wq[w]->wq_num, "qp_num is no number of its work queue");
	must(wq[w]->cq == where, "a completion is in the CQ of another work queue");
	i = (unsigned int)got[BYTES - 2] << 8 | got[BYTES - 1];
	must(i < o.count, "frame %u", i);
	m = make_frame(want, i);
	must(!memcmp(got, want, BYTES), "frame %u is another", i);
	must(!has_come[i], "frame %u has come twice", i);
	must(w == wq_of(&m), "frame %u is in work queue %u, not %u", i, w, wq_of(&m));
	has_come[i] = true;
	in_wq[w]++;
	post(w, slot);
}

/* How many of the CQ's. */
static unsigned int drain(unsigned int c)
{
	unsigned int n = 0;
	struct ibv_wc wc;

	for (; ibv_poll_cq(cq[c], 1, &wc) > 0; n++)
		check(&wc, cq[c]);
	return n;
}

/* Nothing but an event makes it look. */
static unsigned int await_events(void)
{
	struct pollfd p[WQS_MAX];
	unsigned int n = 0;

	for (unsigned int c = 0; c < o.cqs; c++)
		p[c] = (struct pollfd){ .fd = channel[c]->fd, .events = POLLIN };
	must(poll(p, o.cqs, 10000) > 0, "no event");
	for (unsigned int c = 0; c < o.cqs; c++) {
		struct ibv_cq *which;
		void *arg;

		if (!(p[c].revents & POLLIN))
			continue;
		must(!ibv_get_cq_event(channel[c], &which, &arg) && which == cq[c], "the event");
		ibv_ack_cq_events(which, 1);
		must(!ibv_req_notify_cq(cq[c], 0), "ibv_req_notify_cq");
		n += drain(c);
	}
	return n;
}

static void recv_all(const char *device)
{
	unsigned int expected = 0, used = 0, got = 0;
	unsigned int want[WQS_MAX] = { 0 };
	struct ibv_flow *flow;
	struct ibv_qp *qp;

	ctx = open_device(device);
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	must((mr = ibv_reg_mr(pd, slots, sizeof(slots), IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
	must((has_come = calloc(o.count, sizeof(*has_come))), "memory");
	make_wqs();
	qp = make_qp();
	if (o.broken) {
		struct ibv_wc wc;

		move(wq[1], IBV_WQS_ERR);
		for (unsigned int n = 0; n < SLOTS;)
			n += ibv_poll_cq(wq[1]->cq, 1, &wc) == 1;
	}
	flow = make_flow(qp);
	for (unsigned int i = 0; i < o.count; i++) {
		unsigned char frame[BYTES];
		struct made m = make_frame(frame, i);

		if (o.broken && wq_of(&m) == 1)
			continue;
		want[wq_of(&m)]++;
		expected++;
	}
	printf("ready\n");
	fflush(stdout);
	while (got < expected) {
		if (o.events)
			got += await_events();
		else
			for (unsigned int c = 0; c < o.cqs; c++)
				got += drain(c);
	}
	for (unsigned int w = 0; w < o.wqs; w++) {
		must(in_wq[w] == want[w], "work queue %u has %u frames, not %u", w, in_wq[w],
		     want[w]);
		used += in_wq[w] > 0;
	}
	printf("received %u in %u\n", got, used);
	must(!ibv_destroy_flow(flow) && !ibv_destroy_qp(qp), "the QP's end");
	must(!ibv_destroy_rwq_ind_table(table), "the table's end");
	for (unsigned int w = 0; w < o.wqs; w++)
		must(!ibv_destroy_wq(wq[w]), "a work queue's end");
}

static void send_all(const char *iface)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETH_P_ALL),
					.sll_ifindex = (int)if_nametoindex(iface) };
	const int fd = socket(AF_PACKET, SOCK_RAW, 0);
	unsigned char frame[BYTES];

	must(fd >= 0 && !bind(fd, (const struct sockaddr *)&at, sizeof(at)), "a packet socket: %s",
	     strerror(errno));
	for (unsigned int i = 0; i < o.count; i++) {
		make_frame(frame, i);
		must(send(fd, frame, BYTES, 0) == BYTES, "send: %s", strerror(errno));
	}
	printf("sent %u\n", o.count);
}

/* Two errno values; "made" where there is none. */
static void refused(const char *device)
{
	struct ibv_wq_init_attr w = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1 };
	struct ibv_rwq_ind_table_init_attr t = { .ind_tbl = wq };
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, KEY, key, 0 },
	};

	ctx = open_device(device);
	must((w.pd = init.pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	must((w.cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)), "ibv_create_cq");
	wq[0] = ibv_create_wq(ctx, &w);
	if (!wq[0]) {
		printf("%s\n", strerrorname_np(errno));
		return;
	}
	must((init.rwq_ind_tbl = ibv_create_rwq_ind_table(ctx, &t)), "a table");
	printf("made %s\n", ibv_create_qp_ex(ctx, &init) ? "made" : strerrorname_np(errno));
}

int main(int argc, char **argv)
{
	int c;

	must(argc >= 3, "raw_rss MODE WHERE [OPTION...]");
	while ((c = getopt(argc - 2, argv + 2, "k:n:F:w:t:c:eb")) != -1) {
		const unsigned int number = optarg ? (unsigned int)strtoul(optarg, NULL, 0) : 0;

		switch (c) {
		case 'k': o.kind = optarg; break;
		case 'n': o.count = number; break;
		case 'F': o.fields = number; break;
		case 'w': o.wqs = number; break;
		case 't': o.log_size = number; break;
		case 'c': o.cqs = number; break;
		case 'e': o.events = true; break;
		case 'b': o.broken = true; break;
		default: exit(2);
		}
	}
	must(o.wqs && o.wqs <= WQS_MAX && o.cqs && o.cqs <= o.wqs && o.count < 65536, "options");
	for (unsigned int i = 0; i < KEY; i++)
		key[i] = (unsigned char)(i * 89 + 0x5a);
	if (!strcmp(argv[1], "send"))
		send_all(argv[2]);
	else if (!strcmp(argv[1], "refused"))
		refused(argv[2]);
	else
		recv_all(argv[2]);
	return 0;
}
