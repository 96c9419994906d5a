/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * ibv_fork_init(3): "It is not necessary to use this function if all parent process threads are
 * always blocked until all child processes end or change address spaces via an exec() operation."
 * With it the parent goes on as if there were no child. What a child inherits is the parent's: its
 * use is an error at once (docs/verbs.md), and whatever the child does the parent does not notice.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "man.h"


/* Everything that there is, made before the fork. */
struct all {
	struct pair p;		       /* RC, connected, with an SRQ and a channel */
	struct ibv_cq *cq, *joined;    /* without a QP; with a completion in it */
	struct ibv_cq_ex *cq_ex;
	struct ibv_comp_channel *channel; /* of nothing */
	struct ibv_qp *plain, *own, *qp_ex;
	struct ibv_mw *mw;
	struct ibv_ah *ah;
	struct ibv_td *td;
	struct ibv_context *idle;      /* nothing was made on it */
	struct ibv_xrcd *xrcd;	       /* of a file */
	int file;
};

static struct ibv_xrcd *open_domain(struct ibv_context *context, int file, int oflags)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = file, .oflags = oflags,
	};

	return ibv_open_xrcd(context, &attr);
}

static struct ibv_qp *make_qp(struct all *a, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
					 .cap = { QUEUE, QUEUE, 1, 1, 0 } };

	return ibv_create_qp(a->p.pd, &init);
}

static struct ibv_qp *make_qp_ex(struct all *a)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = a->cq, .recv_cq = a->cq, .qp_type = IBV_QPT_RC,
		.cap = { QUEUE, QUEUE, 1, 1, 0 }, .pd = a->p.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};

	return ibv_create_qp_ex(ctx, &init);
}

static bool all_open(struct all *a)
{
	struct ibv_ah_attr address = own_address();
	struct ibv_cq_init_attr_ex ex = { .cqe = QUEUE };
	struct ibv_td_init_attr td = { 0 };

	*a = (struct all){ 0 };
	MUST(pair_open(&a->p, OPTIONS(.srq = true, .channel = true)));
	MUST(a->cq = ibv_create_cq(ctx, QUEUE, NULL, NULL, 0));
	MUST(a->cq_ex = ibv_create_cq_ex(ctx, &ex));
	MUST(a->channel = ibv_create_comp_channel(ctx));
	MUST(a->joined = ibv_create_cq(ctx, QUEUE, NULL, a->channel, 0));
	MUST(a->plain = make_qp(a, a->cq));
	MUST(a->qp_ex = make_qp_ex(a));
	MUST(a->own = qp_to_itself(a->p.pd, a->joined, a->joined, NULL));
	MUST(a->mw = ibv_alloc_mw(a->p.pd, IBV_MW_TYPE_2));
	MUST(a->ah = ibv_create_ah(a->p.pd, &address));
	MUST(a->td = ibv_alloc_td(ctx, &td));
	MUST(a->idle = ibv_open_device(ctx->device));
	MUST((a->file = memfd_create("domain", MFD_CLOEXEC)) >= 0);
	MUST(a->xrcd = open_domain(ctx, a->file, O_CREAT));
	/* a completion and its event, both unread */
	MUST_EQ(ibv_req_notify_cq(a->joined, 0), 0);
	MUST(ping(a->own, 5, IBV_SEND_SIGNALED));
	MUST(readable(a->channel->fd, WAIT_MS));
	return true;
}

/* Both of the completions, and the event. */
static bool parent_has_its_own(struct all *a)
{
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++) {
		MUST(wait_wc(a->joined, &wc));
		MUST_EQ(wc.wr_id, 5);
		MUST_EQ(wc.status, IBV_WC_SUCCESS);
	}
	MUST(take_cq_event(a->channel, a->joined));
	MUST(no_cq_event(a->channel));
	/* and goes on */
	MUST_EQ(ibv_req_notify_cq(a->p.cq[1], 0), 0);
	MUST(message(&a->p, IBV_SEND_SIGNALED));
	MUST(take_cq_event(a->p.channel, a->p.cq[1]));
	MUST(no_async_event());
	return true;
}

/* Works in either process. */
static bool all_close(struct all *a)
{
	MUST_EQ(ibv_close_xrcd(a->xrcd), 0);
	MUST_EQ(close(a->file), 0);
	MUST_EQ(ibv_close_device(a->idle), 0);
	MUST_EQ(ibv_dealloc_td(a->td), 0);
	MUST_EQ(ibv_destroy_ah(a->ah), 0);
	MUST_EQ(ibv_dealloc_mw(a->mw), 0);
	MUST_EQ(ibv_destroy_qp(a->own), 0);
	MUST_EQ(ibv_destroy_qp(a->qp_ex), 0);
	MUST_EQ(ibv_destroy_qp(a->plain), 0);
	MUST_EQ(ibv_destroy_cq(a->joined), 0);
	MUST_EQ(ibv_destroy_comp_channel(a->channel), 0);
	MUST_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(a->cq_ex)), 0);
	MUST_EQ(ibv_destroy_cq(a->cq), 0);
	return pair_close(&a->p);
}

struct call {
	bool (*body)(struct all *a);
	struct all *a;
};

static bool call_run(void *arg)
{
	const struct call *call = arg;

	return call->body(call->a);
}

/* Runs body in a child, which must come to its end and find all as it must. */
static bool in_child(bool (*body)(struct all *a), struct all *a)
{
	return in_a_child(call_run, &(struct call){ body, a });
}

static bool with_child(bool (*body)(struct all *a))
{
	struct all a;
	bool good = all_open(&a) && in_child(body, &a) && parent_has_its_own(&a);

	return all_close(&a) && good;
}

#define IN_CHILD(name, body)                 \
	static bool name(void)               \
	{                                    \
		return with_child(body);     \
	}

/* ---- in the child ---- */

static bool post(struct all *a)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;
	struct ibv_recv_wr rr = { 0 }, *bad_rr = NULL;
	struct ibv_qp *each[] = { a->p.qp[0], a->plain, a->own };

	for (int i = 0; i < 3; i++) {
		bad = NULL;
		bad_rr = NULL;
		MUST_EQ(ibv_post_send(each[i], &wr, &bad), EIO);
		MUST(bad == &wr);
		MUST_EQ(ibv_post_recv(each[i], &rr, &bad_rr), EIO);
		MUST(bad_rr == &rr);
	}
	bad_rr = NULL;
	MUST_EQ(ibv_post_srq_recv(a->p.srq, &rr, &bad_rr), EIO);
	MUST(bad_rr == &rr);
	return true;
}

static bool post_by_builders(struct all *a)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a->qp_ex);

	ibv_wr_start(ex);
	ibv_wr_send(ex);
	MUST_EQ(ibv_wr_complete(ex), EIO);
	return true;
}

/* Completions in the parent's CQs are the parent's. */
static bool poll_cqs(struct all *a)
{
	struct ibv_cq *each[] = { a->cq, a->joined, a->p.cq[0], a->p.cq[1] };
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc;

	for (int i = 0; i < 4; i++) {
		MUST(ibv_poll_cq(each[i], 1, &wc) < 0);
		MUST_EQ(ibv_req_notify_cq(each[i], 0), EIO);
	}
	MUST_EQ(ibv_start_poll(a->cq_ex, &attr), EIO);
	return true;
}

/* Neither waits: the descriptors are readable, and nothing is to be had. */
static bool get_events(struct all *a)
{
	struct ibv_comp_channel *each[] = { a->channel, a->p.channel };
	struct ibv_context *contexts[] = { ctx, a->idle };
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	for (int i = 0; i < 2; i++) {
		MUST(readable(each[i]->fd, 0));
		errno = 0;
		MUST_EQ(ibv_get_cq_event(each[i], &cq, &context), -1);
		MUST_EQ(errno, EIO);
		MUST(readable(contexts[i]->async_fd, 0));
		errno = 0;
		MUST_EQ(ibv_get_async_event(contexts[i], &event), -1);
		MUST_EQ(errno, EIO);
	}
	return true;
}

static bool create(struct all *a)
{
	struct ibv_context *contexts[] = { ctx, a->idle };
	struct ibv_cq_init_attr_ex ex = { .cqe = QUEUE };
	struct ibv_srq_init_attr srq = { .attr = { QUEUE, 1, 0 } };
	struct ibv_ah_attr address = own_address();
	struct ibv_td_init_attr td = { 0 };
	struct ibv_parent_domain_init_attr domain = { .pd = a->p.pd, .td = a->td };
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1, .oflags = O_CREAT };

	for (int i = 0; i < 2; i++) {
		MUST_FAIL(ibv_alloc_pd(contexts[i]), EIO);
		MUST_FAIL(ibv_create_comp_channel(contexts[i]), EIO);
		MUST_FAIL(ibv_create_cq(contexts[i], 1, NULL, NULL, 0), EIO);
		MUST_FAIL(ibv_create_cq_ex(contexts[i], &ex), EIO);
		MUST_FAIL(ibv_alloc_td(contexts[i], &td), EIO);
		MUST_FAIL(ibv_open_xrcd(contexts[i], &xrcd), EIO);
		MUST_FAIL(ibv_import_pd(contexts[i], a->p.pd->handle), EIO);
	}
	MUST_FAIL(ibv_alloc_parent_domain(ctx, &domain), EIO);
	MUST_FAIL(make_qp(a, a->cq), EIO);
	MUST_FAIL(make_qp_ex(a), EIO);
	MUST_FAIL(ibv_create_srq(a->p.pd, &srq), EIO);
	MUST_FAIL(ibv_reg_mr(a->p.pd, a->p.buf[0], 8, 0), EIO);
	MUST_FAIL(ibv_import_mr(a->p.pd, a->p.mr[0]->handle), EIO);
	MUST_FAIL(ibv_alloc_mw(a->p.pd, IBV_MW_TYPE_2), EIO);
	MUST_FAIL(ibv_create_ah(a->p.pd, &address), EIO);
	return true;
}

static bool modify(struct all *a)
{
	struct ibv_modify_cq_attr moderate = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_srq_attr srq = { .srq_limit = 1 };
	struct ibv_qp_attr qp = { .qp_state = IBV_QPS_RESET };

	MUST_EQ(ibv_modify_qp(a->own, &qp, IBV_QP_STATE), EIO);
	MUST_EQ(ibv_modify_qp(a->plain, &qp, IBV_QP_STATE), EIO);
	MUST_EQ(ibv_modify_srq(a->p.srq, &srq, IBV_SRQ_LIMIT), EIO);
	MUST_EQ(ibv_modify_cq(a->p.cq[1], &moderate), EIO);
	MUST_EQ(ibv_resize_cq(a->p.cq[1], QUEUE + 1), EIO);
	MUST(ibv_rereg_mr(a->p.mr[0], IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) != 0);
	MUST_EQ(errno, EIO);
	return true;
}

static bool query(struct all *a)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	union ibv_gid gid;

	MUST_EQ(ibv_query_device(ctx, &device), 0); /* limits: nothing of the parent's */
	MUST(device.max_qp > 0);
	MUST_EQ(ibv_query_port(ctx, 1, &port), EIO);
	errno = 0;
	MUST_EQ(ibv_query_gid(ctx, 1, 0, &gid), -1);
	MUST_EQ(errno, EIO);
	return true;
}

/* The child destroys its copies, and its calls affect only these. */
static bool destroy(struct all *a)
{
	MUST(post(a) && poll_cqs(a) && get_events(a));
	MUST(all_close(a));
	MUST_EQ(ibv_close_device(ctx), 0);
	return true;
}

/* An event in the parent's hand is not the child's to wait for. */
static bool destroy_with_event_in_hand(struct all *a)
{
	return all_close(a);
}

/* The device is there for the child, too, as for any process. */
static bool open_anew(struct all *a)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *own = NULL;
	struct ibv_port_attr port;
	struct ibv_xrcd *xrcd;

	MUST(list);
	for (struct ibv_device **d = list; *d && !own; d++)
		if (!strcmp(ibv_get_device_name(*d), ibv_get_device_name(ctx->device)))
			own = ibv_open_device(*d);
	ibv_free_device_list(list);
	MUST(own);
	MUST_EQ(ibv_query_port(own, 1, &port), 0);
	MUST_EQ(port.state, IBV_PORT_ACTIVE);
	/* another process's object cannot be imported, nor its domain there */
	MUST_FAIL(ibv_import_pd(own, a->p.pd->handle), ENOENT);
	MUST_FAIL(ibv_import_dm(own, 1), ENOENT);
	MUST_FAIL(open_domain(own, a->file, 0), EAGAIN);
	MUST(xrcd = open_domain(own, a->file, O_CREAT | O_EXCL));
	MUST_FAIL(open_domain(own, a->file, O_CREAT | O_EXCL), EINVAL);
	MUST_EQ(ibv_close_xrcd(xrcd), 0);
	MUST_EQ(ibv_close_device(own), 0);
	/* nor by the file of the parent's context */
	MUST(own = ibv_import_device(dup(ctx->cmd_fd)));
	MUST_FAIL(ibv_import_pd(own, a->p.pd->handle), ENOENT);
	MUST_EQ(ibv_close_device(own), 0);
	return true;
}

static bool grandchild(struct all *a)
{
	return in_child(post, a) && in_child(poll_cqs, a) && in_child(get_events, a) &&
	       in_child(destroy, a);
}

/* A daemon closes all inherited descriptors, and opens other files. */
#define OWN_FILES 50

static bool files_are(const ino_t *inode, const int *fd)
{
	struct stat st;

	for (int i = 0; i < OWN_FILES; i++)
		if (fstat(fd[i], &st) || st.st_ino != inode[i])
			return false;
	return true;
}

struct own_files {
	ino_t inode[OWN_FILES];
	int fd[OWN_FILES];
};

static struct own_files own_files;

static bool has_its_files(struct all *a)
{
	return files_are(own_files.inode, own_files.fd);
}

static bool daemon_with_files(struct all *a)
{
	struct stat st;

	close_range(3, ~0u, 0);
	for (int i = 0; i < OWN_FILES; i++) {
		own_files.fd[i] = memfd_create("own", MFD_CLOEXEC);
		MUST(own_files.fd[i] >= 0 && !fstat(own_files.fd[i], &st));
		own_files.inode[i] = st.st_ino;
	}
	return has_its_files(a) && in_child(has_its_files, a) && has_its_files(a);
}

/* ---- the cases ---- */

static bool is_not_needed(void)
{
	MUST_EQ(ibv_fork_init(), 0);
	MUST_EQ(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	return true;
}

IN_CHILD(a_child_cannot_post, post)
IN_CHILD(a_child_cannot_post_by_builders, post_by_builders)
IN_CHILD(a_child_cannot_poll, poll_cqs)
IN_CHILD(a_child_does_not_wait_for_events, get_events)
IN_CHILD(a_child_cannot_create, create)
IN_CHILD(a_child_cannot_modify, modify)
IN_CHILD(a_child_cannot_query, query)
IN_CHILD(a_child_destroys_its_copies, destroy)
IN_CHILD(a_child_opens_the_device_itself, open_anew)
IN_CHILD(a_childs_child_is_no_better, grandchild)
IN_CHILD(a_daemon_keeps_its_files, daemon_with_files)

static bool a_child_does_not_wait_for_the_parents_events(void)
{
	struct ibv_cq *cq;
	void *context;
	struct all a;
	bool good;

	good = all_open(&a) && !ibv_get_cq_event(a.channel, &cq, &context) &&
	       in_child(destroy_with_event_in_hand, &a);
	if (good)
		ibv_ack_cq_events(cq, 1);
	return all_close(&a) && good;
}

/* Makes a child without fork()'s handlers. Its exit() runs the library's destructors. */
static bool exit_without_handlers(long flags)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = flags ? (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0) : _Fork();
	MUST(pid >= 0);
	if (!pid) {
		alarm(CHILD_S);
		exit(0);
	}
	MUST_EQ(waitpid(pid, &status, 0), pid);
	MUST(WIFEXITED(status));
	return true;
}

static bool a_child_without_handlers_exits(void)
{
	struct all a;
	bool good = all_open(&a) && exit_without_handlers(0) && exit_without_handlers(SIGCHLD) &&
		    exit_without_handlers(CLONE_FILES | SIGCHLD) && parent_has_its_own(&a);

	return all_close(&a) && good;
}

/* Whatever other threads of the parent are at when it forks. */
#define FORKS 200

struct busy {
	pthread_t thread;
	struct all *a;
	atomic_bool stop;
	bool good;
};

static void *busy_main(void *arg)
{
	struct busy *b = arg;

	b->good = true;
	while (b->good && !atomic_load(&b->stop))
		b->good = message(&b->a->p, IBV_SEND_SIGNALED);
	return NULL;
}

static bool a_child_of_a_busy_process(void)
{
	struct all a;
	struct busy b = { .a = &a };
	bool good = all_open(&a);

	MUST_EQ(pthread_create(&b.thread, NULL, busy_main, &b), 0);
	for (int i = 0; good && i < FORKS; i++)
		good = in_child(destroy, &a);
	atomic_store(&b.stop, true);
	pthread_join(b.thread, NULL);
	good = good && b.good && parent_has_its_own(&a);
	return all_close(&a) && good;
}

const struct test_case man_cases[] = {
	CASE(is_not_needed),
	CASE(a_child_cannot_post),
	CASE(a_child_cannot_post_by_builders),
	CASE(a_child_cannot_poll),
	CASE(a_child_does_not_wait_for_events),
	CASE(a_child_cannot_create),
	CASE(a_child_cannot_modify),
	CASE(a_child_cannot_query),
	CASE(a_child_destroys_its_copies),
	CASE(a_child_opens_the_device_itself),
	CASE(a_childs_child_is_no_better),
	CASE(a_daemon_keeps_its_files),
	CASE(a_child_does_not_wait_for_the_parents_events),
	CASE(a_child_without_handlers_exits),
	CASE(a_child_of_a_busy_process),
	{ 0 },
};
