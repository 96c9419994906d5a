/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UD queue pairs, some attached to a multicast group and some not.
 *
 *	group [-s] [-e | -p] [-m MEMBERS] [-o OTHERS] DEVICE GID-INDEX GROUP COUNT
 *
 * Each member must get COUNT messages of increasing length, each once and whole, then a last
 * message; the others none. -s: it sends them, from its first member or, without one, from its
 * first other. It polls; with -e it sleeps in ibv_get_cq_event(), with -p in poll() on the channel.
 * A process without members ends with SIGTERM. The caller bounds the wait for the first message, as
 * other processes start in that time. Prints `ready` first and `ok` last.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define QKEY	  0x01234567
#define QPN	  0xffffff
#define QPS_MAX	  16
#define RECEIVES  256
#define GRH	  40
#define LONGEST	  1024
#define COUNT_MAX (RECEIVES - 1)
#define END	  0xffffffffu /* in place of a message's number */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_comp_channel *channel;
static struct ibv_mr *mr;
static union ibv_gid group;
static uint32_t members = 1, others = 1, count, ended, taken;
static bool sends, polls_channel;
static volatile sig_atomic_t stop;

static struct end {
	struct ibv_qp *qp;
	uint32_t got;
	bool has_ended;
} end[QPS_MAX];
static uint8_t (*memory)[RECEIVES][GRH + LONGEST], to_send[LONGEST];

static void on_signal(int sig)
{
	stop = 1;
}

static uint32_t length_of(uint32_t number)
{
	return number == END ? 0 : number * 37 % LONGEST;
}

static void fill(uint8_t *bytes, uint32_t number)
{
	for (uint32_t i = 0; i < length_of(number); i++)
		bytes[i] = (uint8_t)(number * 7 + i);
}

static void post_receive(uint32_t q, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)memory[q][slot], GRH + LONGEST, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = q * RECEIVES + slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	must(!ibv_post_recv(end[q].qp, &wr, &bad), "ibv_post_recv");
}

static void make_qp(struct end *e)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { RECEIVES, RECEIVES, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	must((e->qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!ibv_modify_qp(e->qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT refused");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE), "RTR refused");
	a.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS refused");
}

static void make(void)
{
	const uint32_t qps = members + others;
	const size_t bytes = qps * sizeof(*memory);

	must((memory = malloc(bytes)), "no memory");
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd");
	must((mr = ibv_reg_mr(pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE)), "ibv_reg_mr");
	must((channel = ibv_create_comp_channel(ctx)), "ibv_create_comp_channel");
	must((cq = ibv_create_cq(ctx, (int)(qps * RECEIVES * 2), NULL, channel, 0)),
	     "ibv_create_cq: %s", strerror(errno));
	for (uint32_t q = 0; q < qps; q++) {
		make_qp(&end[q]);
		for (uint32_t i = 0; i < RECEIVES; i++)
			post_receive(q, i);
		if (q < members)
			must(!(errno = ibv_attach_mcast(end[q].qp, &group, 0)),
			     "ibv_attach_mcast: %s", strerror(errno));
	}
}

/* ---- sending ---- */

static struct ibv_ah *make_ah(int gid_index)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	struct ibv_ah *ah;

	attr.grh.sgid_index = (uint8_t)gid_index;
	attr.grh.dgid = group;
	attr.grh.hop_limit = 1;
	must((ah = ibv_create_ah(pd, &attr)), "ibv_create_ah: %s", strerror(errno));
	return ah;
}

/* Inline data is copied at once: so is this. */
static void send_message(struct ibv_ah *ah, struct ibv_mr *send_mr, uint32_t number)
{
	struct ibv_sge sge = { (uintptr_t)to_send, length_of(number), send_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = UINT64_MAX,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htonl(number),
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.ud = { .ah = ah, .remote_qpn = QPN, .remote_qkey = QKEY } };
	struct ibv_send_wr *bad;

	fill(to_send, number);
	must(!ibv_post_send(end[0].qp, &wr, &bad), "ibv_post_send");
}

/* ---- receiving ---- */

static void take_receive(const struct ibv_wc *wc)
{
	const uint32_t q = (uint32_t)(wc->wr_id / RECEIVES);
	const uint32_t slot = (uint32_t)(wc->wr_id % RECEIVES);
	const uint32_t number = ntohl(wc->imm_data);
	const uint8_t *bytes = memory[q][slot];
	uint8_t want[LONGEST];

	must(wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV, "a receive ends with %s",
	     ibv_wc_status_str(wc->status));
	must(wc->qp_num == end[q].qp->qp_num && q < members, "QP %u, no member, has a message", q);
	must(!end[q].has_ended, "member %u has %u after the end", q, number);
	must(number == (end[q].got < count ? end[q].got : END), "member %u has %u in place of %u",
	     q, number, end[q].got);
	must(wc->wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM) &&
		     wc->byte_len == GRH + length_of(number),
	     "flags %x, length %u", wc->wc_flags, wc->byte_len);
	must(!memcmp(bytes + GRH - 4, group.raw + 12, 4), "the GRH is of another group");
	fill(want, number);
	must(!memcmp(bytes + GRH, want, length_of(number)), "message %u has wrong bytes", number);
	if (number == END) {
		end[q].has_ended = true;
		ended++;
	} else {
		end[q].got++;
	}
	taken++;
	post_receive(q, slot);
}

/* Takes what there is; returns how many sends have ended. */
static uint32_t take_all(void)
{
	struct ibv_wc wc[16];
	uint32_t sent = 0;
	int n;

	while ((n = ibv_poll_cq(cq, 16, wc)) > 0)
		for (int i = 0; i < n; i++) {
			if (wc[i].wr_id == UINT64_MAX) {
				must(wc[i].status == IBV_WC_SUCCESS, "a send ends with %s",
				     ibv_wc_status_str(wc[i].status));
				sent++;
			} else {
				take_receive(&wc[i]);
			}
		}
	must(!n, "ibv_poll_cq: %d", n);
	return sent;
}

static void take_event(void)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *from;
	void *arg;

	if (polls_channel)
		must(poll(&p, 1, taken ? WAIT_MS : -1) == 1, "no event");
	must(!ibv_get_cq_event(channel, &from, &arg), "ibv_get_cq_event");
	ibv_ack_cq_events(from, 1);
}

static void receive_all(bool sleeps)
{
	uint64_t until = UINT64_MAX;
	uint32_t before;

	if (sleeps)
		must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	for (;;) {
		before = taken;
		take_all();
		if (ended == members)
			return;
		if (taken != before)
			until = now_ms() + WAIT_MS;
		must(now_ms() < until, "member 0 has %u of %u", end[0].got, count);
		/* others are started meanwhile, which takes longer than all that follows */
		if (!sleeps && !taken)
			poll(NULL, 0, 1);
		if (!sleeps)
			continue;
		take_event();
		must(!ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	}
}

static void send_all(struct ibv_ah *ah)
{
	struct ibv_mr *send_mr = ibv_reg_mr(pd, to_send, sizeof(to_send), 0);
	uint32_t sent = 0;

	must(send_mr, "ibv_reg_mr");
	for (uint32_t i = 0; i <= count; i++) {
		send_message(ah, send_mr, i < count ? i : END);
		while (sent <= i)
			sent += take_all();
	}
	must(!ibv_dereg_mr(send_mr), "ibv_dereg_mr");
}

static void end_all(void)
{
	for (uint32_t q = 0; q < members + others; q++) {
		if (q < members) {
			must(ibv_destroy_qp(end[q].qp) == EBUSY, "an attached QP is destroyed");
			must(!ibv_detach_mcast(end[q].qp, &group, 0), "ibv_detach_mcast");
			must(ibv_detach_mcast(end[q].qp, &group, 0) == EINVAL, "detached twice");
		}
		must(!ibv_destroy_qp(end[q].qp), "ibv_destroy_qp");
	}
	must(!ibv_destroy_cq(cq) && !ibv_destroy_comp_channel(channel) && !ibv_dereg_mr(mr) &&
		     !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	     "the end");
}

static void set_group(const char *text)
{
	struct in_addr ipv4;

	group = (union ibv_gid){ .raw = { [10] = 0xff, [11] = 0xff } };
	if (inet_pton(AF_INET, text, &ipv4) == 1)
		memcpy(group.raw + 12, &ipv4, 4);
	else
		must(inet_pton(AF_INET6, text, group.raw) == 1, "not an address: %s", text);
}

int main(int argc, char **argv)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	struct ibv_ah *ah = NULL;
	sigset_t term, before;
	bool sleeps = false;
	int c;

	while ((c = getopt(argc, argv, "sepm:o:")) != -1) {
		sends |= c == 's';
		sleeps |= c == 'e' || c == 'p';
		polls_channel |= c == 'p';
		if (c == 'm')
			members = (uint32_t)atoi(optarg);
		if (c == 'o')
			others = (uint32_t)atoi(optarg);
	}
	must(argc == optind + 4, "group [-s] [-e | -p] [-m MEMBERS] [-o OTHERS] DEVICE GID-INDEX "
				 "GROUP COUNT");
	count = (uint32_t)atoi(argv[optind + 3]);
	must(members + others <= QPS_MAX && members + others && count <= COUNT_MAX, "too many");
	set_group(argv[optind + 2]);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	sigaction(SIGTERM, &sa, NULL);
	ctx = open_device(argv[optind]);
	make();
	if (sends)
		ah = make_ah(atoi(argv[optind + 1]));
	printf("ready\n");
	fflush(stdout);
	if (sends)
		send_all(ah);
	receive_all(sleeps);
	while (!members && !sends && !stop)
		sigsuspend(&before);
	take_all();
	if (ah)
		must(!ibv_destroy_ah(ah), "ibv_destroy_ah");
	end_all();
	printf("ok\n");
	return 0;
}
