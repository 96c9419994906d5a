/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fields of an extended CQ for received packets: VLAN tag, service level, flow tag, times. One QP
 * that only receives; a line for each completion.
 *
 *	fields DEVICE GID-INDEX COUNT ud QKEY
 *	fields DEVICE GID-INDEX COUNT rc PEER-ADDRESS PEER-QPN
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/ctl.h"
#include "lib/device.h"

#define BYTES 64

static void ud_to_rtr(struct ibv_qp *qp, const char *qkey)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = (uint32_t)strtoul(qkey, NULL, 0) };

	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
	     "INIT refused");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a, IBV_QP_STATE), "RTR refused");
}

static void rc_to_rtr(struct ibv_qp *qp, int gid_index, const char *peer, const char *peer_qpn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .path_mtu = IBV_MTU_1024,
				 .max_dest_rd_atomic = 1,
				 .min_rnr_timer = 1,
				 .dest_qp_num = (uint32_t)strtoul(peer_qpn, NULL, 0),
				 .ah_attr = { .is_global = 1,
					      .port_num = 1,
					      .grh = { .sgid_index = (uint8_t)gid_index,
						       .hop_limit = 64 } } };
	uint8_t *raw = a.ah_attr.grh.dgid.raw;

	if (inet_pton(AF_INET6, peer, raw) != 1) {
		raw[10] = raw[11] = 0xff;
		must(inet_pton(AF_INET, peer, raw + 12) == 1, "%s is no address", peer);
	}
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT refused");
	a.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR refused");
}

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/*
 * Both times of the current completion are of one moment, which is not to come and not before the
 * last one's. Returns the wall clock's.
 */
static uint64_t read_times(struct ibv_cq_ex *cq, uint64_t *last_ns)
{
	uint64_t ts = ibv_wc_read_completion_ts(cq), wall = ibv_wc_read_completion_wallclock_ns(cq);
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	int64_t off = (int64_t)(clock_ns(CLOCK_REALTIME) - wall - (now - ts));

	must(ts >= *last_ns && ts <= now, "received at %llu, after %llu, it is %llu",
	     (unsigned long long)ts, (unsigned long long)*last_ns, (unsigned long long)now);
	must(off > -1000000 && off < 1000000, "the two clocks differ by %lld ns", (long long)off);
	*last_ns = ts;
	return wall;
}

int main(int argc, char **argv)
{
	struct ibv_cq_init_attr_ex ex = { .cqe = 64,
					  .wc_flags =
						  IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN |
						  IBV_WC_EX_WITH_FLOW_TAG |
						  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
						  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK };
	struct ibv_qp_init_attr init = { .cap = { 1, 64, 1, 1, 0 } };
	struct ibv_poll_cq_attr attr = { 0 };
	static char buffer[BYTES];
	struct ibv_context *ctx;
	struct ibv_cq_ex *cq;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	uint64_t last_ns = 0;
	int count;

	must(argc == 6 || argc == 7,
	     "fields DEVICE GID-INDEX COUNT ud QKEY | rc PEER-ADDRESS PEER-QPN");
	count = atoi(argv[3]);
	init.qp_type = argc == 6 ? IBV_QPT_UD : IBV_QPT_RC;
	ctx = open_device(argv[1]);
	must((pd = ibv_alloc_pd(ctx)) &&
		     (mr = ibv_reg_mr(pd, buffer, BYTES, IBV_ACCESS_LOCAL_WRITE)),
	     "ibv_reg_mr: %s", strerror(errno));
	must((cq = ibv_create_cq_ex(ctx, &ex)), "ibv_create_cq_ex: %s", strerror(errno));
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	must((qp = ibv_create_qp(pd, &init)), "ibv_create_qp: %s", strerror(errno));
	if (argc == 6)
		ud_to_rtr(qp, argv[5]);
	else
		rc_to_rtr(qp, atoi(argv[2]), argv[5], argv[6]);
	sge = (struct ibv_sge){ (uintptr_t)buffer, BYTES, mr->lkey };
	for (int i = 0; i < count; i++) {
		struct ibv_recv_wr wr = { .wr_id = (uint64_t)i, .sg_list = &sge, .num_sge = 1 },
				   *bad;

		must(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
	}
	printf("qpn 0x%x\n", qp->qp_num);
	fflush(stdout);
	for (int i = 0; i < count; i++) {
		int err;

		while ((err = ibv_start_poll(cq, &attr)) == ENOENT)
			;
		must(!err, "ibv_start_poll: %s", strerror(err));
		must(cq->status == IBV_WC_SUCCESS && cq->wr_id == (uint64_t)i,
		     "wr_id %d, status %d", (int)cq->wr_id, cq->status);
		printf("received %d: sl %d, vlan 0x%04x, flow 0x%08x, at %llu\n", i,
		       ibv_wc_read_sl(cq), ibv_wc_read_cvlan(cq), ibv_wc_read_flow_tag(cq),
		       (unsigned long long)read_times(cq, &last_ns));
		fflush(stdout);
		ibv_end_poll(cq);
	}
	must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) && !ibv_dereg_mr(mr) &&
		     !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	     "the end");
	return 0;
}
