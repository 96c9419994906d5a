/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The objects of an end of the threads program; see threads.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../lib/device.h"
#include "threads.h"

static struct ibv_context *ctx;
struct ibv_pd *pd;
struct ibv_srq *srq;
struct ibv_mr *mr;
struct ibv_ah *ah;
struct queue queue[QPS_MAX];
struct worker worker[THREADS_MAX];
struct address own, peer;
uint8_t *memory, *send_area, *recv_area, *write_area, *read_area;
uint64_t *counter;
_Atomic uint8_t *added;

static uint8_t *take(uint8_t **next, size_t bytes)
{
	uint8_t *p = *next;

	*next += (bytes + 63) & ~(size_t)63;
	return p;
}

static void make_memory(void)
{
	const size_t slots = (size_t)num_qps * config.depth * config.bytes,
		     recv = (size_t)num_qps * receives * (config.bytes + GRH);
	const size_t size = 3 * slots + recv + 5 * 64;
	uint8_t *next = memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(memory != MAP_FAILED, "%zu bytes of memory: %s", size, strerror(errno));
	counter = (uint64_t *)take(&next, 8);
	send_area = take(&next, slots);
	recv_area = take(&next, recv);
	write_area = take(&next, slots);
	read_area = take(&next, slots);
	for (unsigned int q = 0; q < num_qps && config.op == OP_READ; q++)
		for (uint32_t i = 0; i < config.depth; i++)
			fill(read_area + (size_t)(q * config.depth + i) * config.bytes,
			     stamp(is_client, q, i));
	mr = ibv_reg_mr(pd, memory, size,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	must(mr, "ibv_reg_mr: %s", strerror(errno));
	must((added = calloc(1, num_qps * config.messages / 8 + 1)), "no memory");
	own.base = (uintptr_t)memory;
	own.rkey = mr->rkey;
}

static void make_cqs(void)
{
	for (unsigned int t = 0; t < config.threads; t++) {
		struct worker *w = &worker[t];
		const unsigned int qps = one_cq ? num_qps : config.qps;
		/* one QP may take all of an SRQ's receives */
		const unsigned int entries =
			qps * config.depth + (one_srq ? num_qps : qps) * receives;

		w->index = t;
		if (sleeps)
			w->channel = t && (one_channel || one_cq) ? worker[0].channel :
								    ibv_create_comp_channel(ctx);
		must(!sleeps || w->channel, "ibv_create_comp_channel: %s", strerror(errno));
		w->cq = t && one_cq ? worker[0].cq :
				      ibv_create_cq(ctx, (int)entries, w, w->channel,
						    (int)t % ctx->num_comp_vectors);
		must(w->cq, "ibv_create_cq: %s", strerror(errno));
	}
	for (unsigned int t = 0; t < config.threads && sleeps && looks_up(); t++)
		fcntl(worker[t].channel->fd, F_SETFL,
		      fcntl(worker[t].channel->fd, F_GETFL) | O_NONBLOCK);
}

static void make_qp(unsigned int q)
{
	struct ibv_cq *cq = worker[q / config.qps].cq;
	struct ibv_qp_init_attr init = { .qp_type = ops[config.op].type,
					 .send_cq = cq,
					 .recv_cq = cq,
					 .srq = srq,
					 .sq_sig_all = 0,
					 .cap = { config.depth, srq ? 0 : receives, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = QKEY,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						    IBV_ACCESS_REMOTE_READ |
						    IBV_ACCESS_REMOTE_ATOMIC };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   (init.qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);

	if (init.qp_type == IBV_QPT_UC)
		a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	must((queue[q].qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	must(!(errno = ibv_modify_qp(queue[q].qp, &a, mask)), "ibv_modify_qp to INIT: %s",
	     strerror(errno));
	must((queue[q].seen = calloc(1, config.messages / 8 + 1)) &&
		     (queue[q].busy = calloc(1, config.depth)),
	     "no memory");
	own.qpn[q] = queue[q].qp->qp_num;
}

void post_receive(unsigned int slot, unsigned int count)
{
	struct ibv_recv_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	for (unsigned int i = 0; i < count; i++) {
		sge[i] = (struct ibv_sge){ (uintptr_t)recv_area +
						   (size_t)(slot + i) * (config.bytes + GRH),
					   config.bytes + GRH, mr->lkey };
		wr[i] = (struct ibv_recv_wr){ .wr_id = slot + i,
					      .sg_list = &sge[i],
					      .num_sge = 1,
					      .next = i + 1 < count ? &wr[i + 1] : NULL };
	}
	errno = srq ? ibv_post_srq_recv(srq, wr, &bad) :
		      ibv_post_recv(queue[slot / receives].qp, wr, &bad);
	must(!errno, "posting a receive: %s", strerror(errno));
}

void make(const char *device)
{
	struct ibv_port_attr port;

	ctx = open_device(device);
	must(!ibv_query_port(ctx, 1, &port), "ibv_query_port");
	own.mtu = port.active_mtu;
	must((pd = ibv_alloc_pd(ctx)), "ibv_alloc_pd: %s", strerror(errno));
	must(!ibv_query_gid(ctx, 1, gid_index, &own.gid), "ibv_query_gid(%d)", gid_index);
	make_memory();
	make_cqs();
	if (one_srq) {
		struct ibv_srq_init_attr attr = { .attr = { .max_wr = num_qps * receives,
							    .max_sge = 1 } };

		must((srq = ibv_create_srq(pd, &attr)), "ibv_create_srq: %s", strerror(errno));
	}
	for (unsigned int q = 0; q < num_qps; q++)
		make_qp(q);
	own.config = config;
}

static void connect_qp(unsigned int q)
{
	const bool rc = ops[config.op].type == IBV_QPT_RC, ud = ops[config.op].type == IBV_QPT_UD;
	struct ibv_ah_attr path = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = peer.gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64 }
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR,
				 .path_mtu = own.mtu < peer.mtu ? own.mtu : peer.mtu,
				 .dest_qp_num = peer.qpn[q],
				 .max_dest_rd_atomic = 16,
				 .min_rnr_timer = 5,
				 .timeout = 14,
				 .retry_cnt = 7,
				 .rnr_retry = 7,
				 .max_rd_atomic = 16,
				 .ah_attr = path };

	errno = ibv_modify_qp(
		queue[q].qp, &a,
		ud ? IBV_QP_STATE :
		     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				(rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	must(!errno, "ibv_modify_qp to RTR: %s", strerror(errno));
	a.qp_state = IBV_QPS_RTS;
	errno = ibv_modify_qp(queue[q].qp, &a,
			      IBV_QP_STATE | IBV_QP_SQ_PSN |
				      (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						       IBV_QP_MAX_QP_RD_ATOMIC :
					    0));
	must(!errno, "ibv_modify_qp to RTS: %s", strerror(errno));
	if (ud && !ah)
		must((ah = ibv_create_ah(pd, &path)), "ibv_create_ah: %s", strerror(errno));
}

void connect_all(void)
{
	for (unsigned int q = 0; q < num_qps; q++) {
		connect_qp(q);
		for (unsigned int i = 0; ops[config.op].receives && is_target && i < receives;
		     i += BATCH)
			post_receive(q * receives + i, receives - i < BATCH ? receives - i : BATCH);
	}
}

void unmake(void)
{
	for (unsigned int q = 0; q < num_qps; q++)
		must(!ibv_destroy_qp(queue[q].qp), "ibv_destroy_qp");
	for (unsigned int t = 0; t < config.threads; t++)
		must((one_cq && t) || !ibv_destroy_cq(worker[t].cq), "ibv_destroy_cq");
	for (unsigned int t = 0; t < config.threads && sleeps; t++)
		must(((one_cq || one_channel) && t) || !ibv_destroy_comp_channel(worker[t].channel),
		     "ibv_destroy_comp_channel");
	must(!srq || !ibv_destroy_srq(srq), "ibv_destroy_srq");
	must(!ah || !ibv_destroy_ah(ah), "ibv_destroy_ah");
	must(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) && !ibv_close_device(ctx), "closing");
}
