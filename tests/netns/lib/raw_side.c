/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See raw_side.h. */
#define _GNU_SOURCE
#include "raw_side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctl.h"
#include "device.h"

struct ibv_context *raw_ctx;
struct ibv_pd *raw_pd;
struct raw_queue raw_queues[RAW_QUEUES];
struct raw_frame raw_frames[RAW_FRAMES];
bool raw_ends_with_copy;

static int wire, tap;
/* the number of raw_frames[0], and how many there are */
static uint32_t base, frames;

static int socket_open(const char *iface, uint16_t protocol)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(protocol)), room = 4 << 20;

	addr.sll_ifindex = (int)if_nametoindex(iface);
	must(fd >= 0 && addr.sll_ifindex, "%s: no packet socket: %s", iface, strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	must(!bind(fd, (struct sockaddr *)&addr, sizeof(addr)), "bind: %s", strerror(errno));
	return fd;
}

void raw_open(const char *device, const char *netns, const char *peer)
{
	int here = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int there = open(netns, O_RDONLY | O_CLOEXEC);

	must(here >= 0 && there >= 0 && !setns(there, CLONE_NEWNET), "%s: %s", netns,
	     strerror(errno));
	wire = socket_open(peer, 0);
	must(!setns(here, CLONE_NEWNET), "setns: %s", strerror(errno));
	close(here);
	close(there);
	tap = socket_open(strchr(device, '_') + 1, ETH_P_ALL);
	raw_ctx = open_device(device);
	raw_pd = ibv_alloc_pd(raw_ctx);
	must(raw_pd, "ibv_alloc_pd: %s", strerror(errno));
}

struct ibv_cq_ex *raw_cq(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = RAW_QUEUES * RAW_RECVS,
		.wc_flags =
			IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_FLOW_TAG,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(raw_ctx, &attr);

	must(cq, "ibv_create_cq_ex: %s", strerror(errno));
	return cq;
}

static void queue_post(struct raw_queue *q, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)(q->slots + slot * FRAME_BYTES), FRAME_BYTES,
			       q->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = q->wq ? ibv_post_wq_recv(q->wq, &wr, &bad) : ibv_post_recv(q->qp, &wr, &bad);

	must(!err, "posting a receive: %s", strerror(err));
}

static void queue_fill(struct raw_queue *q)
{
	q->slots = calloc(RAW_RECVS, FRAME_BYTES);
	must(q->slots, "no memory");
	q->mr = ibv_reg_mr(raw_pd, q->slots, RAW_RECVS * FRAME_BYTES, IBV_ACCESS_LOCAL_WRITE);
	must(q->mr, "ibv_reg_mr: %s", strerror(errno));
	for (uint64_t i = 0; i < RAW_RECVS; i++)
		queue_post(q, i);
}

void raw_add_qp(struct raw_queue *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = { .max_recv_wr = RAW_RECVS, .max_recv_sge = 1 },
	};

	*q = (struct raw_queue){ .cq = raw_cq() };
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(q->cq);
	q->qp = ibv_create_qp(raw_pd, &init);
	must(q->qp, "ibv_create_qp: %s", strerror(errno));
	must(!ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PORT), "no INIT");
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(q->qp, &attr, IBV_QP_STATE), "no RTR");
	q->num = q->qp->qp_num;
	queue_fill(q);
}

void raw_add_wq(struct raw_queue *q, struct ibv_cq_ex *cq)
{
	struct ibv_wq_attr attr = { .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY };
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = RAW_RECVS,
		.max_sge = 1,
		.pd = raw_pd,
		.cq = ibv_cq_ex_to_cq(cq),
	};

	*q = (struct raw_queue){ .cq = cq };
	q->wq = ibv_create_wq(raw_ctx, &init);
	must(q->wq, "ibv_create_wq: %s", strerror(errno));
	must(!ibv_modify_wq(q->wq, &attr), "no RDY");
	q->num = q->wq->wq_num;
	queue_fill(q);
}

void raw_remove(struct raw_queue *q)
{
	int err = q->wq ? ibv_destroy_wq(q->wq) : ibv_destroy_qp(q->qp);

	must(!err, "destroying a queue: %s", strerror(err));
	must(!ibv_dereg_mr(q->mr), "ibv_dereg_mr");
	free(q->slots);
	*q = (struct raw_queue){ 0 };
}

struct ibv_flow *raw_flow_type(struct ibv_qp *qp, uint16_t ether_type)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .size = sizeof(rule), .num_of_specs = 1, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH,
			 .size = sizeof(rule.eth),
			 .val.ether_type = htons(ether_type),
			 .mask.ether_type = 0xffff },
	};
	struct ibv_flow *flow = ibv_create_flow(qp, &rule.attr);

	must(flow, "ibv_create_flow: %s", strerror(errno));
	return flow;
}

struct ibv_flow *raw_flow_default(struct ibv_qp *qp, enum ibv_flow_attr_type type)
{
	struct ibv_flow_attr attr = { .type = type, .size = sizeof(attr), .port = 1 };
	struct ibv_flow *flow = ibv_create_flow(qp, &attr);

	must(flow, "ibv_create_flow: %s", strerror(errno));
	return flow;
}

/* NULL: not one of this round's. */
static struct raw_frame *raw_find(const uint8_t *bytes, uint32_t len)
{
	uint32_t number;

	if (!frame_number(bytes, len, &number))
		return NULL;
	must(number - base < frames, "frame %u comes after its round", number);
	return &raw_frames[number - base];
}

static struct raw_queue *queue_find(uint32_t num, const struct ibv_cq_ex *cq)
{
	for (int i = 0; i < RAW_QUEUES; i++)
		if (raw_queues[i].cq == cq && raw_queues[i].num == num)
			return &raw_queues[i];
	die("a completion of %u, which is none of its CQ's", num);
}

static void completion_take(struct ibv_cq_ex *cq)
{
	struct raw_queue *q = queue_find(ibv_wc_read_qp_num(cq), cq);
	uint64_t slot = cq->wr_id;
	uint32_t len = ibv_wc_read_byte_len(cq);
	const uint8_t *bytes = q->slots + slot * FRAME_BYTES;
	struct raw_frame *f;

	must(cq->status == IBV_WC_SUCCESS && ibv_wc_read_opcode(cq) == IBV_WC_RECV,
	     "status %d, opcode %d", cq->status, ibv_wc_read_opcode(cq));
	must(slot == q->taken % RAW_RECVS, "receives are not used in order");
	q->taken++;
	f = raw_find(bytes, len);
	if (f) {
		must(len == f->frame.len && !memcmp(bytes, f->frame.bytes, len), "not as sent");
		f->copies[q - raw_queues]++;
		f->tags[q - raw_queues] = ibv_wc_read_flow_tag(cq);
	}
	queue_post(q, slot);
}

static void cq_take(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int err = ibv_start_poll(cq, &attr);

	if (err == ENOENT)
		return;
	while (!err) {
		completion_take(cq);
		err = ibv_next_poll(cq);
	}
	must(err == ENOENT, "polling: %s", strerror(err));
	ibv_end_poll(cq);
}

static void tap_take(void)
{
	uint8_t bytes[8192];
	struct sockaddr_ll from;
	socklen_t from_len = sizeof(from);
	ssize_t len;

	while ((len = recvfrom(tap, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from,
			       &from_len)) > 0) {
		struct raw_frame *f =
			from.sll_pkttype == PACKET_OUTGOING ? NULL : raw_find(bytes, (uint32_t)len);

		if (f)
			f->copies[RAW_KERNEL]++;
		from_len = sizeof(from);
	}
}

static void take_all(void)
{
	for (int i = 0; i < RAW_QUEUES; i++)
		if (raw_queues[i].cq)
			cq_take(raw_queues[i].cq);
	tap_take();
}

static void frame_send(const struct frame *frame)
{
	while (send(wire, frame->bytes, frame->len, 0) != (ssize_t)frame->len)
		must(errno == ENOBUFS || errno == EINTR, "send: %s", strerror(errno));
}

void raw_round_of(uint32_t count, raw_make_fn *make, const struct raw_queue *last)
{
	uint64_t end = now_ms() + WAIT_MS;
	uint32_t taken = 0;

	base += frames;
	frames = count + 1 + raw_ends_with_copy;
	must(frames <= RAW_FRAMES, "a long round");
	memset(raw_frames, 0, sizeof(raw_frames));
	for (uint32_t i = 0; i < count; i++)
		make(&raw_frames[i].frame, i, base + i);
	frame_make_last(&raw_frames[count].frame, FRAME_TYPE_LAST, base + count);
	if (raw_ends_with_copy)
		frame_make_last(&raw_frames[count + 1].frame, FRAME_TYPE_LAST_COPY,
				base + count + 1);
	for (uint32_t i = 0; i < frames; i++)
		frame_send(&raw_frames[i].frame);
	while (count + taken < frames) {
		must(now_ms() < end, "a round's last frame does not come");
		take_all();
		taken += raw_frames[count + taken].copies[last - raw_queues] > 0;
	}
	/* what came before it is there */
	take_all();
}

static void make_of_any_fields(struct frame *frame, uint32_t i, uint32_t number)
{
	(void)i;
	frame_make(frame, number, true);
}

static void make_of_few_values(struct frame *frame, uint32_t i, uint32_t number)
{
	(void)i;
	frame_make(frame, number, false);
}

void raw_round(uint32_t count, bool any_fields, const struct raw_queue *last)
{
	raw_round_of(count, any_fields ? make_of_any_fields : make_of_few_values, last);
}
