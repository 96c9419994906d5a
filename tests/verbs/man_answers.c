/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Short pages: ibv_query_rt_values_ex(3), ibv_query_qp_data_in_order(3), ibv_query_ece(3) and
 * ibv_set_ece(3), ibv_close_device(3), ibv_import_device(3), ibv_import_pd(3) and ibv_import_mr(3)
 * (device memory's is in man_dm.c), and the alternate paths of ibv_modify_qp(3).
 */
#define _GNU_SOURCE /* memfd_create() */
#include <sys/mman.h>
#include <time.h>

#include "man.h"

static long long timespec_ns(const struct timespec *t)
{
	return t->tv_sec * 1000000000ll + t->tv_nsec;
}

/* "comp_mask: Compatibility mask that defines the query/queried fields [in/out]" */
static bool rt_values_are_those_asked_for(void)
{
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	long long before = clock_ns(CLOCK_MONOTONIC), now;

	MUST_EQ(ibv_query_rt_values_ex(ctx, &v), 0);
	now = timespec_ns(&v.raw_clock);
	MUST(now >= before && now <= clock_ns(CLOCK_MONOTONIC));
	MUST_EQ(v.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	v = (struct ibv_values_ex){ .raw_clock = { 1, 2 } };
	MUST_EQ(ibv_query_rt_values_ex(ctx, &v), 0);
	MUST(v.comp_mask == 0 && v.raw_clock.tv_sec == 1 && v.raw_clock.tv_nsec == 2);
	v.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 2;
	MUST_EQ(ibv_query_rt_values_ex(ctx, &v), EINVAL);
	MUST(v.raw_clock.tv_sec == 1);
	return true;
}

/*
 * "Returns 1 if the data is guaranteed to be written in-order, 0 otherwise." Newer pages have a
 * flag 1, which asks for capabilities: 1 of whole messages, 2 of aligned blocks of 128 bytes.
 */
static bool order_body(struct pair *p)
{
	static const enum ibv_wr_opcode data[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						   IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						   IBV_WR_SEND_WITH_INV, IBV_WR_RDMA_READ },
					other[] = { IBV_WR_ATOMIC_CMP_AND_SWP,
						    IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV,
						    IBV_WR_BIND_MW, IBV_WR_TSO };
#if defined(__x86_64__) || defined(__s390x__)
	const int yes = 1, capabilities = 1 | 2;
#else
	const int yes = 0, capabilities = 0;
#endif

	for (unsigned int i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
		MUST_EQ(ibv_query_qp_data_in_order(p->qp[0], data[i], 0), yes);
		MUST_EQ(ibv_query_qp_data_in_order(p->qp[0], data[i], 1), capabilities);
		/* 2: of the device alone, in newer headers */
		MUST_EQ(ibv_query_qp_data_in_order(p->qp[0], data[i], 2), yes);
		MUST_EQ(ibv_query_qp_data_in_order(p->qp[0], data[i], 3), capabilities);
		MUST_EQ(ibv_query_qp_data_in_order(p->qp[0], data[i], 4), 0);
	}
	for (unsigned int i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		for (uint32_t flags = 0; flags < 4; flags++)
			MUST_EQ(ibv_query_qp_data_in_order(p->qp[0], other[i], flags), 0);
	return true;
}

/* A UD QP receives datagrams, and neither a WRITE nor a READ's answer. */
static bool order_of_datagrams_body(struct pair *p)
{
	const int send = ibv_query_qp_data_in_order(p->qp[0], IBV_WR_SEND, 0);
	struct ibv_qp_init_attr init = { .send_cq = p->cq[0], .recv_cq = p->cq[0],
					 .qp_type = IBV_QPT_UD,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp *qp = ibv_create_qp(p->qp[0]->pd, &init);

	MUST(qp);
	MUST_EQ(ibv_query_qp_data_in_order(qp, IBV_WR_SEND, 0), send);
	MUST_EQ(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
	MUST_EQ(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_READ, 1), 0);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	return true;
}

/* "EOPNOTSUPP: libibverbs or provider driver doesn't support the ibv_set_ece() verb." */
static bool ece_body(struct pair *p)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 2, .comp_mask = 3 };

	MUST_EQ(ibv_query_ece(p->qp[0], &ece), EOPNOTSUPP);
	/* nothing to hand to a peer, for programs that do not look at the result */
	MUST(!ece.vendor_id && !ece.options && !ece.comp_mask);
	ece.vendor_id = 0x15b3;
	ece.options = 1;
	MUST_EQ(ibv_set_ece(p->qp[0], &ece), EOPNOTSUPP);
	MUST(message(p, 0));
	return true;
}

/* "To check if a device supports it, check if the IBV_DEVICE_AUTO_PATH_MIG bit is set" */
static bool paths_body(struct pair *p)
{
	static const int masks[] = { IBV_QP_ALT_PATH, IBV_QP_PATH_MIG_STATE,
				     IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE };
	struct ibv_qp_attr a = { .alt_ah_attr = own_address(),
				 .alt_port_num = 1,
				 .alt_timeout = 14,
				 .path_mig_state = IBV_MIG_REARM,
				 .min_rnr_timer = 3 },
			   now, before;
	struct ibv_qp_init_attr init;
	struct ibv_device_attr d;

	MUST_EQ(ibv_query_device(ctx, &d), 0);
	MUST(!(d.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG));
	MUST_EQ(ibv_query_qp(p->qp[0], &before, IBV_QP_MIN_RNR_TIMER, &init), 0);
	MUST(before.path_mig_state == IBV_MIG_MIGRATED && before.min_rnr_timer != 3);
	for (int i = 0; i < 3; i++) {
		MUST_EQ(ibv_modify_qp(p->qp[0], &a, masks[i]), EOPNOTSUPP);
		MUST_EQ(ibv_modify_qp(p->qp[0], &a, masks[i] | IBV_QP_MIN_RNR_TIMER), EOPNOTSUPP);
		MUST_EQ(ibv_query_qp(p->qp[0], &now, IBV_QP_ALT_PATH, &init), 0);
		MUST(!memcmp(&now, &before, sizeof(now)));
	}
	MUST(message(p, 0));
	return true;
}

/* "a pointer to the allocated RDMA context, or NULL": the descriptor is closed with the context. */
static bool import_device_refuses(void)
{
	int pipes[2], file = memfd_create("other", MFD_CLOEXEC), fd;
	const off_t nobodys = ((off_t)4791 << 32) + 0x7ffffff0;

	MUST(file >= 0 && pipe(pipes) == 0);
	MUST_FAIL(ibv_import_device(-1), EINVAL);
	MUST_FAIL(ibv_import_device(pipes[0]), EINVAL);
	MUST_FAIL(ibv_import_device(file), EINVAL); /* it is empty */
	/* as a context's, but of an interface that does not exist; then with content */
	MUST_EQ(lseek(file, nobodys, SEEK_SET), nobodys);
	MUST_FAIL(ibv_import_device(file), ENODEV);
	MUST_EQ(ftruncate(file, 4), 0);
	MUST_FAIL(ibv_import_device(file), EINVAL);
	/* what failed has closed nothing */
	MUST(fcntl(pipes[0], F_GETFD) >= 0 && fcntl(file, F_GETFD) >= 0);
	close(pipes[0]);
	close(pipes[1]);
	close(file);
	MUST((fd = dup(ctx->cmd_fd)) >= 0);
	MUST_EQ(ibv_close_device(ibv_import_device(fd)), 0);
	MUST(fcntl(fd, F_GETFD) < 0 && fcntl(ctx->cmd_fd, F_GETFD) >= 0);
	return true;
}

/*
 * "The returned ibv_pd can be used in all verbs that get a protection domain": a QP of another
 * context's handle, with a region of the first one's, sends to the first one's.
 */
static bool imported_body(struct pair *p)
{
	struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd));
	struct ibv_pd *pd = other ? ibv_import_pd(other, p->pd->handle) : NULL;
	struct ibv_mr *mr = pd ? ibv_import_mr(pd, p->mr[0]->handle) : NULL;
	struct ibv_cq *cq = other ? ibv_create_cq(other, QUEUE, NULL, NULL, 0) : NULL;
	struct ibv_qp *qp = mr && cq ? qp_to_itself(pd, cq, cq, NULL) : NULL;
	struct ibv_sge from, to;
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rr = { .sg_list = &to, .num_sge = 1 }, *bad_rr;
	struct ibv_wc wc;

	MUST(qp);
	/* "The addr field in the imported MR is not applicable, NULL value is expected." */
	MUST(!mr->addr && mr->length == BUF_BYTES && mr->context == other && mr->pd == pd);
	MUST(mr->lkey == p->mr[0]->lkey && mr->rkey == p->mr[0]->rkey);
	from = (struct ibv_sge){ (uintptr_t)p->buf[0], 100, mr->lkey };
	to = (struct ibv_sge){ (uintptr_t)p->buf[0] + 1000, 100, mr->lkey };
	memset(p->buf[0], 0x5a, 100);
	for (int i = 0; i < 2; i++) {
		memset(p->buf[0] + 1000, 0, 100);
		MUST_EQ(ibv_post_recv(qp, &rr, &bad_rr), 0);
		MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
		MUST(wait_wc(cq, &wc) && wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
		MUST_EQ(memcmp(p->buf[0], p->buf[0] + 1000, 100), 0);
		/* its memory stays what it was, and the handle without an address */
		MUST_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				     IBV_ACCESS_LOCAL_WRITE), 0);
		MUST(!mr->addr && mr->length == BUF_BYTES);
	}
	MUST_EQ(ibv_dealloc_pd(pd), EBUSY);
	MUST_EQ(ibv_destroy_qp(qp), 0);
	MUST_EQ(ibv_destroy_cq(cq), 0);
	/* unimported, they live on with the context that made them */
	ibv_unimport_mr(mr);
	ibv_unimport_pd(pd);
	MUST_EQ(ibv_close_device(other), 0);
	MUST(message(p, 0));
	return true;
}

/* "a valid kernel handle for an MR object": of no other kind, of no other PD, and not of one gone.
 */
static bool handles_body(struct pair *p)
{
	struct ibv_context *other = ibv_import_device(dup(ctx->cmd_fd)),
			   *foreign = ibv_open_device(ctx->device);
	struct ibv_pd *second = ibv_alloc_pd(ctx), *pd = ibv_import_pd(other, p->pd->handle), *pd2;
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf[0], 64, 0), *mr2;
	uint32_t handle = mr->handle;

	MUST(other && foreign && second && pd && mr);
	MUST_FAIL(ibv_import_pd(other, mr->handle), ENOENT);
	MUST_FAIL(ibv_import_mr(pd, p->pd->handle), ENOENT);
	/* another context has none of its handles */
	MUST_FAIL(ibv_import_pd(foreign, p->pd->handle), ENOENT);
	MUST(pd2 = ibv_import_pd(other, second->handle));
	MUST_FAIL(ibv_import_mr(pd2, handle), ENOENT);
	/* "ibv_dealloc_pd() or ibv_unimport_pd() should be called": the first one destroys */
	MUST(mr2 = ibv_import_mr(pd, handle));
	MUST_EQ(ibv_dereg_mr(mr2), 0);
	MUST_EQ(ibv_post_recv(
			p->qp[1],
			&(struct ibv_recv_wr){
				.sg_list = &(struct ibv_sge){ (uintptr_t)p->buf[0], 64, mr->lkey },
				.num_sge = 1 },
			&(struct ibv_recv_wr *){ NULL }),
		0);
	MUST_EQ(post_send(p, 1, 0, 8, IBV_SEND_SIGNALED), 0);
	MUST(wait_wc(p->cq[1], &(struct ibv_wc){ 0 }));
	ibv_unimport_mr(mr);
	MUST_FAIL(ibv_import_mr(pd, handle), ENOENT);
	ibv_unimport_pd(pd2);
	ibv_unimport_pd(pd);
	MUST_EQ(ibv_dealloc_pd(second), 0);
	MUST_EQ(ibv_close_device(other), 0);
	MUST_EQ(ibv_close_device(foreign), 0);
	return true;
}

ON_PAIR(data_is_in_order, order_body)
ON_PAIR(datagrams_are_in_order, order_of_datagrams_body)
ON_PAIR(ece_is_not_supported, ece_body)
ON_PAIR(alternate_paths_are_refused, paths_body)
ON_PAIR(imported_objects_work, imported_body)
ON_PAIR(import_wants_a_handle_of_its_kind, handles_body)

/* ---- ibv_close_device(3) ---- */

static struct ibv_qp *plain_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					 .cap = { QUEUE, QUEUE, 1, 1, 0 } };

	return ibv_create_qp(pd, &init);
}

/* With few and short retries. */
static int connect_qp(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS, .sq_psn = 7, .timeout = 10,
				 .retry_cnt = 2, .max_rd_atomic = 1 };
	int err = qp_to_init(qp);

	if (!err)
		err = qp_to_rtr(qp, dest_qpn);
	return err ? err : ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
					 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					 IBV_QP_MAX_QP_RD_ATOMIC);
}

/* The status of a WRITE of that byte to the start of end 1's buffer, or -1. */
static int write_byte(struct pair *p, struct ibv_qp *qp, uint32_t rkey, char byte)
{
	struct ibv_sge from = sge_of(p, 0, 0, 1);
	struct ibv_send_wr wr = { .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)p->buf[1], rkey } }, *bad;
	struct ibv_wc wc;

	p->buf[0][0] = byte;
	return ibv_post_send(qp, &wr, &bad) || !wait_wc(p->cq[0], &wc) ? -1 : (int)wc.status;
}

/*
 * "ibv_close_device() does not release all the resources allocated": peers reach the objects as
 * long as a context of the same file is open. Then they do not, and the program can still destroy
 * them.
 */
static bool left_body(struct pair *p)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_context *left = ibv_open_device(ctx->device);
	struct ibv_context *import = left ? ibv_import_device(dup(left->cmd_fd)) : NULL;
	struct ibv_qp *target, *writer;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;

	MUST(import && (pd = ibv_alloc_pd(left)) &&
	     (cq = ibv_create_cq(left, QUEUE, NULL, NULL, 0)));
	MUST((mr = ibv_reg_mr(pd, p->buf[1], 64, access)) && (target = plain_qp(pd, cq)));
	MUST(writer = plain_qp(p->pd, p->cq[0]));
	MUST_EQ(connect_qp(target, writer->qp_num), 0);
	MUST_EQ(connect_qp(writer, target->qp_num), 0);
	MUST_EQ(ibv_close_device(left), 0);
	MUST_EQ(write_byte(p, writer, mr->rkey, 1), IBV_WC_SUCCESS);
	MUST_EQ(p->buf[1][0], 1);
	MUST_EQ(ibv_close_device(import), 0);
	MUST_EQ(write_byte(p, writer, mr->rkey, 2), IBV_WC_RETRY_EXC_ERR);
	MUST_EQ(p->buf[1][0], 1);
	MUST_EQ(ibv_destroy_qp(writer), 0);
	MUST_EQ(ibv_destroy_qp(target), 0);
	MUST(!ibv_dereg_mr(mr) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
	return message(p, 0);
}

ON_PAIR(a_closed_contexts_objects_are_out_of_reach, left_body)

const struct test_case man_cases[] = {
	CASE(rt_values_are_those_asked_for),
	CASE(data_is_in_order),
	CASE(datagrams_are_in_order),
	CASE(ece_is_not_supported),
	CASE(alternate_paths_are_refused),
	CASE(import_device_refuses),
	CASE(imported_objects_work),
	CASE(import_wants_a_handle_of_its_kind),
	CASE(a_closed_contexts_objects_are_out_of_reach),
	{ 0 },
};
