/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* ibv_create_cq_ex(3) */
#define _GNU_SOURCE /* _Fork() */
#include <arpa/inet.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "man.h"

#define ALL_FIELDS                                                                                 \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_CVLAN |      \
	 IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

/* Between ibv_start_poll() and ibv_end_poll(): a case that fails does not keep the CQ. */
#define POLLED_EQ(got, want)                                                                       \
	do {                                                                                       \
		long long got_ = (long long)(got), want_ = (long long)(want);                      \
		if (got_ != want_) {                                                               \
			ibv_end_poll(cq);                                                          \
			printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #got, got_,  \
			       want_);                                                             \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static struct ibv_poll_cq_attr start;

static struct ibv_cq_ex *make(struct ibv_cq_init_attr_ex a)
{
	a.cqe = a.cqe ? a.cqe : 10;
	return ibv_create_cq_ex(ctx, &a);
}

static bool wait_start(struct ibv_cq_ex *cq)
{
	long long end = clock_ns(CLOCK_MONOTONIC) + WAIT_MS * 1000000ll;
	int err;

	while ((err = ibv_start_poll(cq, &start)) == ENOENT && clock_ns(CLOCK_MONOTONIC) < end)
		;
	MUST_EQ(err, 0);
	return true;
}

static bool creates(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq_ex *cq;

	MUST(ch);
	/*
	 * "Minimum number of entries"; "Check the cqe attribute in the returned CQ for the actual
	 * size."
	 */
	for (unsigned int n = 1; n < 100000; n = n * 2 + 1) {
		MUST(cq = make((struct ibv_cq_init_attr_ex){
			     .cqe = n, .cq_context = &cq, .channel = ch }));
		MUST(cq->cqe >= (int)n);
		MUST(cq->cq_context == &cq && cq->channel == ch && cq->context == ctx);
		MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

static bool refuses(void)
{
	struct ibv_device_attr dev;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	MUST(pd);
	MUST_EQ(ibv_query_device(ctx, &dev), 0);
	MUST_FAIL(ibv_create_cq_ex(ctx, &(struct ibv_cq_init_attr_ex){ .cqe = 0 }), EINVAL);
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .cqe = (uint32_t)dev.max_cqe + 1 }), EINVAL);
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .cqe = UINT32_MAX }), EINVAL);
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .comp_mask = 1 << 2 }), EINVAL);
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
						     .flags = 1 << 2 }),
		  EINVAL);
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .wc_flags = 1 << 12 }), EOPNOTSUPP);
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .wc_flags = 1ull << 40 }), EOPNOTSUPP);
	/* A PD is no parent domain. */
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
						     .parent_domain = pd }),
		  EINVAL);
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD }),
		  EINVAL);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/*
 * "Must be >= 0 and < context->num_comp_vectors": the interface's receive queues; any vector goes
 * with any channel.
 */
static bool completion_vectors(void)
{
	const char *queues = getenv("XROCE_TEST_QUEUES");
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	int n = ctx->num_comp_vectors;
	struct ibv_cq_ex *cq;

	MUST(ch && queues);
	MUST_EQ(n, atoi(queues));
	for (int v = 0; v < n; v++)
		for (int with = 0; with < 2; with++) {
			MUST(cq = make((struct ibv_cq_init_attr_ex){
				     .comp_vector = (uint32_t)v, .channel = with ? ch : NULL }));
			MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
		}
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .comp_vector = (uint32_t)n }), EINVAL);
	MUST_FAIL(make((struct ibv_cq_init_attr_ex){ .comp_vector = UINT32_MAX }), EINVAL);
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/*
 * "Only fields that the user requested via wc_flags in ibv_create_cq_ex could be queried": others
 * have no reader.
 */
static bool only_requested_fields_have_readers(void)
{
	for (int bit = -1; bit < 12; bit++) {
		uint64_t flags = bit < 0 ? 0 : 1ull << bit;
		struct ibv_cq_ex *cq;

		if (flags & ~(uint64_t)ALL_FIELDS)
			continue;
		MUST(cq = make((struct ibv_cq_init_attr_ex){ .wc_flags = flags }));
#define READER(field, flag) MUST_EQ(cq->read_##field != NULL, flags == (flag))
		READER(byte_len, IBV_WC_EX_WITH_BYTE_LEN);
		READER(imm_data, IBV_WC_EX_WITH_IMM);
		READER(qp_num, IBV_WC_EX_WITH_QP_NUM);
		READER(src_qp, IBV_WC_EX_WITH_SRC_QP);
		READER(slid, IBV_WC_EX_WITH_SLID);
		READER(sl, IBV_WC_EX_WITH_SL);
		READER(dlid_path_bits, IBV_WC_EX_WITH_DLID_PATH_BITS);
		READER(completion_ts, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
		READER(cvlan, IBV_WC_EX_WITH_CVLAN);
		READER(flow_tag, IBV_WC_EX_WITH_FLOW_TAG);
		READER(completion_wallclock_ns, IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
		READER(tm_info, IBV_WC_EX_WITH_TM_INFO);
#undef READER
		/* These are there always. */
		MUST(cq->read_opcode && cq->read_vendor_err && cq->read_wc_flags &&
		     cq->start_poll && cq->next_poll && cq->end_poll);
		MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	}
	return true;
}

/* Without BYTE_LEN and so on in the flags the plain interface still works on the same CQ. */
static bool iterator_body(struct pair *p)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)p->cq[1];
	struct ibv_poll_cq_attr bad = { .comp_mask = 1 };
	struct ibv_wc wc;

	/*
	 * "When no completions are available on the CQ, ENOENT is returned, but the CQ remains in a
	 * valid state"; no end_poll
	 */
	for (int i = 0; i < 3; i++)
		MUST_EQ(ibv_start_poll(cq, &start), ENOENT);
	MUST_EQ(ibv_start_poll(cq, &bad), EINVAL);
	for (uint64_t i = 0; i < 4; i++)
		MUST_EQ(post_recv(p, 50 + i, 0, 100), 0);
	for (uint64_t i = 0; i < 4; i++)
		MUST_EQ(post_send(p, 0, 0, 10 + (uint32_t)i, IBV_SEND_SIGNALED), 0);
	for (int i = 0; i < 4; i++)
		MUST(wait_wc(p->cq[0], &wc));
	/*
	 * A batch of two, ended before the CQ is empty: each of them is gone, the others are not.
	 */
	MUST(wait_start(cq));
	POLLED_EQ(cq->wr_id, 50);
	POLLED_EQ(ibv_wc_read_byte_len(cq), 10);
	POLLED_EQ(ibv_next_poll(cq), 0);
	POLLED_EQ(cq->wr_id, 51);
	POLLED_EQ(ibv_wc_read_byte_len(cq), 11);
	ibv_end_poll(cq);
	/* ibv_poll_cq(3) on an extended CQ goes on from there. */
	MUST_EQ(ibv_poll_cq(p->cq[1], 1, &wc), 1);
	MUST_EQ(wc.wr_id, 52);
	MUST_EQ(wc.byte_len, 12);
	MUST(wait_start(cq));
	POLLED_EQ(cq->wr_id, 53);
	POLLED_EQ(cq->status, IBV_WC_SUCCESS);
	/* next_poll: ENOENT, "end_poll should still be called" */
	POLLED_EQ(ibv_next_poll(cq), ENOENT);
	POLLED_EQ(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	MUST_EQ(ibv_start_poll(cq, &start), ENOENT);
	/* and the CQ remains valid */
	MUST(message(p, 0));
	return true;
}

ON_PAIR(iterates, iterator_body,
	.ex = &(struct ibv_cq_init_attr_ex){ .cqe = 10, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN })

static bool fields_body(struct pair *p)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)p->cq[1];
	struct ibv_ah_attr to = own_address();
	struct ibv_ah *ah = ibv_create_ah(p->pd, &to);
	struct ibv_sge sge = sge_of(p, 0, 0, 20);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl(0x11223344),
				  .wr.ud = { .ah = ah,
					     .remote_qpn = p->qp[1]->qp_num,
					     .remote_qkey = UD_QKEY } },
			   *bad;

	MUST(ah);
	MUST_EQ(post_recv(p, 0x1234567812345678, 0, 100), 0);
	MUST_EQ(ibv_post_send(p->qp[0], &wr, &bad), 0);
	MUST(wait_start(cq));
	POLLED_EQ(cq->wr_id, 0x1234567812345678);
	POLLED_EQ(cq->status, IBV_WC_SUCCESS);
	POLLED_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
	POLLED_EQ(ibv_wc_read_vendor_err(cq), 0);
	POLLED_EQ(ibv_wc_read_byte_len(cq), 60);
	POLLED_EQ(ntohl(ibv_wc_read_imm_data(cq)), 0x11223344);
	POLLED_EQ(ibv_wc_read_qp_num(cq), p->qp[1]->qp_num);
	POLLED_EQ(ibv_wc_read_src_qp(cq), p->qp[0]->qp_num);
	POLLED_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_GRH | IBV_WC_WITH_IMM);
	POLLED_EQ(ibv_wc_read_slid(cq), 0);
	POLLED_EQ(ibv_wc_read_sl(cq), 2); /* over IPv4: docs/verbs.md */
	POLLED_EQ(ibv_wc_read_dlid_path_bits(cq), 0);
	POLLED_EQ(ibv_wc_read_cvlan(cq), 0);
	ibv_end_poll(cq);
	MUST_EQ(ibv_destroy_ah(ah), 0);
	return true;
}

ON_PAIR(fields_of_a_datagram, fields_body,
	.ex = &(struct ibv_cq_init_attr_ex){ .cqe = 10, .wc_flags = ALL_FIELDS },
	.type = IBV_QPT_UD)

/* "Get the rkey invalided by the SEND_INVAL from the current completion" */
static bool invalidate_body(struct pair *p)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)p->cq[1];
	uint32_t rkey;

	MUST(send_invalidating(p, &rkey));
	MUST(wait_start(cq));
	POLLED_EQ(cq->wr_id, 33);
	POLLED_EQ(cq->status, IBV_WC_SUCCESS);
	POLLED_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_INV);
	POLLED_EQ(ibv_wc_read_invalidated_rkey(cq), rkey);
	ibv_end_poll(cq);
	return true;
}

ON_PAIR(invalidated_rkey, invalidate_body,
	.ex = &(struct ibv_cq_init_attr_ex){ .cqe = 10, .wc_flags = IBV_WC_EX_WITH_IMM })

static bool error_body(struct pair *p)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)p->cq[1];

	MUST_EQ(post_recv(p, 77, 0, 100), 0);
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(wait_start(cq));
	POLLED_EQ(cq->wr_id, 77);
	POLLED_EQ(cq->status, IBV_WC_WR_FLUSH_ERR);
	POLLED_EQ(ibv_wc_read_qp_num(cq), p->qp[1]->qp_num);
	POLLED_EQ(ibv_wc_read_vendor_err(cq) != 0, 1);
	ibv_end_poll(cq);
	return true;
}

ON_PAIR(fields_of_an_error, error_body,
	.ex = &(struct ibv_cq_init_attr_ex){ .cqe = 10, .wc_flags = IBV_WC_EX_WITH_QP_NUM })

/*
 * Device time is in units of hca_core_clock and on the clock of ibv_query_rt_values_ex(3): never
 * backwards, and between our own two readings.
 */
static bool time_body(struct pair *p)
{
	struct ibv_cq_ex *cq = (struct ibv_cq_ex *)p->cq[1];
	struct ibv_values_ex v = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_device_attr_ex dev;
	uint64_t last = 0;

	MUST_EQ(ibv_query_device_ex(ctx, NULL, &dev), 0);
	MUST_EQ(dev.hca_core_clock, 1000000); /* kHz */
	for (int i = 0; i < 200; i++) {
		long long wall = clock_ns(CLOCK_REALTIME), wall_end;
		uint64_t begin, end, ts, wall_ts;

		MUST_EQ(ibv_query_rt_values_ex(ctx, &v), 0);
		begin = (uint64_t)v.raw_clock.tv_sec * 1000000000 + (uint64_t)v.raw_clock.tv_nsec;
		MUST_EQ(post_recv(p, 1, 0, 100), 0);
		MUST_EQ(post_send(p, 1, 0, 10, 0), 0);
		MUST(wait_start(cq));
		ts = ibv_wc_read_completion_ts(cq);
		wall_ts = ibv_wc_read_completion_wallclock_ns(cq);
		ibv_end_poll(cq);
		MUST_EQ(ibv_query_rt_values_ex(ctx, &v), 0);
		end = (uint64_t)v.raw_clock.tv_sec * 1000000000 + (uint64_t)v.raw_clock.tv_nsec;
		wall_end = clock_ns(CLOCK_REALTIME);
		MUST(ts >= begin && ts <= end);
		MUST(ts >= last);
		last = ts;
		/* "wall clock nanoseconds": within 1 ms of the system's */
		MUST((long long)wall_ts >= wall - 1000000 &&
		     (long long)wall_ts <= wall_end + 1000000);
	}
	return true;
}

static bool timestamps(void)
{
	struct pair p;
	struct ibv_cq_init_attr_ex ex = { .cqe = 10,
					  .wc_flags =
						  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
						  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK };

	IN_PAIR(&p, OPTIONS(.ex = &ex), time_body);
}

/* "This CQ will not pass to error state if overrun"; "CQEs might be lost" */
static bool ignore_body(struct pair *p)
{
	struct ibv_wc wc;
	int n = 0;

	for (int i = 0; i < 8; i++)
		MUST_EQ(post_recv(p, 1, 0, 100), 0);
	for (int i = 0; i < 8; i++)
		MUST_EQ(post_send(p, 1, 0, 10, IBV_SEND_SIGNALED), 0);
	for (int i = 0; i < 8; i++)
		MUST(wait_wc(p->cq[0], &wc));
	MUST(no_async_event());
	MUST_EQ(qp_state_now(p->qp[1]), IBV_QPS_RTS);
	while (ibv_poll_cq(p->cq[1], 1, &wc) == 1)
		n++;
	MUST(n >= 1 && n <= p->cq[1]->cqe);
	MUST(n < 8); /* else it was none */
	MUST(message(p, 0));
	return true;
}

static bool ignore_overrun(void)
{
	struct pair p;
	struct ibv_cq_init_attr_ex ex = { .cqe = 2,
					  .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					  .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN };

	IN_PAIR(&p, OPTIONS(.ex = &ex), ignore_body);
}

/* A flag without its bit in comp_mask is not looked at. */
static bool no_mask_body(struct pair *p)
{
	for (int i = 0; i < 3; i++)
		MUST_EQ(post_recv(p, 1, 0, 100), 0);
	for (int i = 0; i < 3; i++)
		MUST_EQ(post_send(p, 1, 0, 10, 0), 0);
	for (bool err = false; !err;) {
		struct ibv_async_event event;

		MUST(next_async(&event));
		err = event.event_type == IBV_EVENT_CQ_ERR;
		ibv_ack_async_event(&event);
	}
	return true;
}

static bool flags_need_their_mask(void)
{
	struct pair p;
	struct ibv_cq_init_attr_ex ex = { .cqe = 2,
					  .comp_mask = 0,
					  .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN };

	IN_PAIR(&p, OPTIONS(.ex = &ex), no_mask_body);
}

/*
 * ---- "no locking is required": locked instructions are counted while a child of ours polls one
 * completion, step by step ----
 */

#if defined(__x86_64__)
static bool is_locked(pid_t pid, unsigned long long rip)
{
	long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)rip, NULL);
	const unsigned char *b = (const unsigned char *)&word;
	int i = 0;

	while (i < 4 &&
	       (b[i] == 0x66 || b[i] == 0xf2 || b[i] == 0xf3 || b[i] == 0x2e || b[i] == 0x3e))
		i++;
	if (b[i] == 0xf0)
		return true;
	if ((b[i] & 0xf0) == 0x40)
		i++;
	/* xchg with memory locks by itself */
	return (b[i] == 0x86 || b[i] == 0x87) && b[i + 1] >> 6 != 3;
}

/* Returns how many, or -1 if it cannot be told. The CQ must hold a completion. */
static int locked_instructions(struct ibv_cq *cq)
{
	/* without the library's handlers: the copy is to have the completion */
	pid_t pid = _Fork();
	int status, n = 0;
	long steps = 0;

	if (pid == 0) {
		struct ibv_wc wc;
		int got;

		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(3);
		raise(SIGSTOP);
		got = ibv_poll_cq(cq, 1, &wc);
		_exit(got == 1 ? 42 : 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -1;
	while (steps++ < 1000000) {
		struct user_regs_struct regs;

		if (ptrace(PTRACE_GETREGS, pid, NULL, &regs))
			break;
		n += is_locked(pid, regs.rip);
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid ||
		    WIFEXITED(status))
			break;
	}
	if (!WIFEXITED(status)) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return -1;
	}
	return WEXITSTATUS(status) == 42 ? n : -1;
}
#else
static int locked_instructions(struct ibv_cq *cq)
{
	return -1;
}
#endif

static int counted;

static bool count_body(struct pair *p)
{
	struct ibv_wc wc;

	MUST_EQ(post_recv(p, 1, 0, 100), 0);
	MUST_EQ(post_send(p, 1, 0, 1, IBV_SEND_SIGNALED), 0);
	MUST(wait_wc(p->cq[0], &wc));
	counted = locked_instructions(p->cq[1]);
	MUST(wait_wc(p->cq[1], &wc));
	return true;
}

static bool count_locks(struct ibv_cq_init_attr_ex ex)
{
	struct pair p;

	IN_PAIR(&p, OPTIONS(.ex = &ex), count_body);
}

static bool single_threaded_takes_no_lock(void)
{
	int with;

	MUST(count_locks((struct ibv_cq_init_attr_ex){ .cqe = 10 }));
	with = counted;
	MUST(count_locks(
		(struct ibv_cq_init_attr_ex){ .cqe = 10,
					      .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					      .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED }));
#if defined(__x86_64__)
	/* What the rest of the child's life locks is the same in both. */
	MUST(with >= 1 && counted >= 0);
	MUST_EQ(counted, with - 1);
#endif
	return true;
}

/* A thread domain says the same as the flag; the CQ holds its parent domain. */
static bool parent_domain_with_thread_domain(void)
{
	struct ibv_td *td = ibv_alloc_td(ctx, &(struct ibv_td_init_attr){ 0 });
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *parent;
	struct ibv_parent_domain_init_attr a = { .pd = pd, .td = td };
	int with;

	MUST(td && pd && (parent = ibv_alloc_parent_domain(ctx, &a)));
	MUST(count_locks((struct ibv_cq_init_attr_ex){ .cqe = 10 }));
	with = counted;
	MUST(count_locks((struct ibv_cq_init_attr_ex){
		.cqe = 10, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent }));
#if defined(__x86_64__)
	MUST(with >= 1);
	MUST_EQ(counted, with - 1);
#endif
	struct ibv_cq_ex *cq = make((struct ibv_cq_init_attr_ex){
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent });

	MUST(cq);
	MUST_EQ(ibv_dealloc_pd(parent), EBUSY);
	MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	MUST_EQ(ibv_dealloc_pd(parent), 0);
	MUST_EQ(ibv_dealloc_td(td), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

const struct test_case man_cases[] = {
	CASE(creates),
	CASE(refuses),
	CASE(completion_vectors),
	CASE(only_requested_fields_have_readers),
	CASE(iterates),
	CASE(fields_of_a_datagram),
	CASE(invalidated_rkey),
	CASE(fields_of_an_error),
	CASE(timestamps),
	CASE(ignore_overrun),
	CASE(flags_need_their_mask),
	CASE(single_threaded_takes_no_lock),
	CASE(parent_domain_with_thread_domain),
	{ 0 },
};
