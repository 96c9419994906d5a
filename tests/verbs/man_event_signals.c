/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long tsan */
/*
 * fcntl(2) on descriptors of events: O_ASYNC with F_SETOWN and F_SETSIG, as the kernel's
 * descriptors of completion channels and asynchronous events support them, and rdma_cm's do not.
 * Over a real path: netns/event_matrix.c.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../common/open_fds.h"
#include "man.h"

#define SIGNAL SIGRTMIN

/* Signals are taken by sigtimedwait(2), so that each is seen once. */
static bool signals_block(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return !pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* The next one within that time. */
static bool signal_comes(int sig, siginfo_t *info, int within_ms)
{
	const struct timespec t = { within_ms / 1000, within_ms % 1000 * 1000000l };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return sigtimedwait(&set, info, &t) == sig;
}

/* "si_fd gives the file descriptor", "si_band ... the same values as in the revents field" */
static bool signal_is_of(int fd)
{
	siginfo_t info;

	MUST(signal_comes(SIGNAL, &info, WAIT_MS));
	MUST_EQ(info.si_code, POLL_IN);
	MUST_EQ(info.si_fd, fd);
	MUST(info.si_band & POLLIN);
	return true;
}

/* None is there. If one might be on its way, a later event has arrived. */
static bool no_signal(void)
{
	siginfo_t info;

	return !signal_comes(SIGNAL, &info, 0);
}

/* The signals so far, where a case cannot predict their number. */
static bool signals_forget(void)
{
	siginfo_t info;

	while (signal_comes(SIGNAL, &info, 0))
		;
	return true;
}

static bool set_async(int fd, bool on)
{
	const int flags = fcntl(fd, F_GETFL);

	return !fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC);
}

static bool ask_for_signals(int fd)
{
	const struct f_owner_ex me = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };

	MUST(signals_block(SIGNAL));
	MUST(!fcntl(fd, F_SETOWN_EX, &me) && !fcntl(fd, F_SETSIG, SIGNAL) && set_async(fd, true));
	return true;
}

/* ---- completion channels ---- */

/* An event of loop i: its signal comes, once, and then it is there to be taken. */
static bool event_has_signal(struct loops *l, int i, struct ibv_comp_channel *ch)
{
	MUST(loops_event(l, i));
	MUST(signal_is_of(ch->fd));
	MUST(take_cq_event(ch, l->cq[i]));
	MUST(!readable(ch->fd, 0) && no_signal() && no_cq_event(ch));
	return true;
}

static bool channel_signals(struct ibv_comp_channel *ch)
{
	struct loops l;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0) && loops_add(&l, NULL, ch, 1));
	MUST(loops_event(&l, 0) && take_cq_event(ch, l.cq[0]));
	/* asked for while a CQ is armed */
	MUST_EQ(ibv_req_notify_cq(l.cq[1], 0), 0);
	MUST(ask_for_signals(ch->fd) && no_signal());
	for (int i = 0; i < 4; i++)
		MUST(event_has_signal(&l, i % 2, ch));
	MUST(fcntl(ch->fd, F_GETFL) & O_ASYNC);
	MUST_EQ(fcntl(ch->fd, F_GETSIG), SIGNAL);
	/* one for each event */
	MUST(loops_event(&l, 0) && loops_event(&l, 1));
	MUST(signal_is_of(ch->fd) && signal_is_of(ch->fd));
	MUST(take_cq_event(ch, l.cq[0]) && take_cq_event(ch, l.cq[1]) && no_signal());
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/* A channel that XDP wakes by a ring buffer (docs/events.md). */
static bool completion_channel(void)
{
	return channel_signals(ibv_create_comp_channel(ctx));
}

/* A channel that the worker wakes: the process has no descriptors for rings then. */
static bool completion_channel_without_ring(void)
{
	struct ibv_comp_channel *ch;
	struct rlimit before, few;

	MUST_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 31;
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	ch = ibv_create_comp_channel(ctx);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	return channel_signals(ch);
}

/* "O_ASYNC: enable": no signal before, none after it is cleared, and again. */
static bool turned_off_and_on(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct loops l;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0) && ask_for_signals(ch->fd));
	MUST(event_has_signal(&l, 0, ch));
	MUST(set_async(ch->fd, false));
	MUST(loops_event(&l, 0) && take_cq_event(ch, l.cq[0]));
	/* the event after the one without a signal */
	MUST(loops_event(&l, 0) && readable(ch->fd, WAIT_MS) && no_signal());
	MUST(take_cq_event(ch, l.cq[0]));
	MUST(set_async(ch->fd, true));
	MUST(event_has_signal(&l, 0, ch));
	/* an owner of 0 is none */
	MUST_EQ(fcntl(ch->fd, F_SETOWN, 0), 0);
	MUST(loops_event(&l, 0) && readable(ch->fd, WAIT_MS) && no_signal());
	MUST(take_cq_event(ch, l.cq[0]));
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/* "If a signal is not sent to an owner": O_ASYNC alone does nothing. */
static bool nobody_without_an_owner(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct loops l;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0));
	MUST(signals_block(SIGNAL) && signals_block(SIGIO));
	MUST(!fcntl(ch->fd, F_SETSIG, SIGNAL) && set_async(ch->fd, true));
	MUST(loops_event(&l, 0) && take_cq_event(ch, l.cq[0]));
	MUST(loops_event(&l, 0) && readable(ch->fd, WAIT_MS) && no_signal());
	MUST(take_cq_event(ch, l.cq[0]));
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/* A QP whose sends are not answered: it fails after a moment, while no verb is called. */
static struct ibv_qp *qp_to_nobody(struct ibv_pd *pd, struct ibv_cq *send_cq,
				   struct ibv_cq *recv_cq)
{
	struct ibv_qp_init_attr init = { .send_cq = send_cq,
					 .recv_cq = recv_cq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { 1, 1, 1, 1, 0 } };
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = 7,
				 .max_rd_atomic = 1,
				 .timeout = 10 };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp || qp_to_init(qp) || qp_to_rtr(qp, qp->qp_num ^ 0x800000) ||
	    ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		return NULL;
	return qp;
}

/*
 * A thread that finds events in ibv_get_cq_event() itself takes one: the other has its signal all
 * the same. They are the failed request's and the flushed receive's.
 */
static bool what_a_call_finds_and_leaves(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct ibv_recv_wr rr = { .wr_id = 1 }, *bad_rr;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq[2], *got[2];
	struct ibv_qp *qp;
	void *context;

	MUST(ch && pd);
	for (int i = 0; i < 2; i++)
		MUST((cq[i] = ibv_create_cq(ctx, 1, NULL, ch, 0)) && !ibv_req_notify_cq(cq[i], 0));
	MUST(qp = qp_to_nobody(pd, cq[0], cq[1]));
	MUST(ask_for_signals(ch->fd));
	MUST_EQ(ibv_post_recv(qp, &rr, &bad_rr), 0);
	MUST_EQ(ibv_post_send(qp, &wr, &bad), 0);
	MUST_EQ(ibv_get_cq_event(ch, &got[0], &context), 0);
	MUST(signal_is_of(ch->fd));
	MUST_EQ(ibv_get_cq_event(ch, &got[1], &context), 0);
	MUST(got[0] != got[1] && !readable(ch->fd, 0));
	MUST(signals_forget());
	MUST_EQ(ibv_destroy_qp(qp), 0);
	for (int i = 0; i < 2; i++) {
		ibv_ack_cq_events(got[i], 1);
		MUST_EQ(ibv_destroy_cq(cq[i]), 0);
	}
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	MUST_EQ(ibv_dealloc_pd(pd), 0);
	return true;
}

/* The process as the owner, a handler, SIGIO: it takes the event, and the completion. */
static struct {
	struct ibv_comp_channel *ch;
	atomic_int taken, wrong;
} handled;

static void serve_channel(void)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *cq_context;

	if (ibv_get_cq_event(handled.ch, &cq, &cq_context))
		return;
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
	while (ibv_poll_cq(cq, 1, &wc) == 1)
		if (wc.status)
			atomic_fetch_add(&handled.wrong, 1);
		else
			atomic_fetch_add(&handled.taken, 1);
}

static void on_sigio(int sig, siginfo_t *info, void *context)
{
	const int before = errno;

	serve_channel();
	errno = before;
}

static bool handler_serves_its_channel(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct sigaction action = { .sa_sigaction = on_sigio, .sa_flags = SA_SIGINFO }, before;
	struct loops l;
	sigset_t set;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0));
	handled.ch = ch;
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	MUST_EQ(sigaction(SIGIO, &action, &before), 0);
	MUST(!fcntl(ch->fd, F_SETOWN, getpid()) && set_nonblocking(ch->fd, true) &&
	     set_async(ch->fd, true));
	MUST_EQ(ibv_req_notify_cq(l.cq[0], 0), 0);
	for (int i = 0; i < 50; i++) {
		/* the handler calls verbs: it must not come within one (docs/events.md) */
		MUST_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
		MUST(ping(l.qp[0], 1, 0));
		MUST_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
		MUST_EQ(counted_to(&handled.taken, i + 1), i + 1);
	}
	MUST_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
	MUST_EQ(atomic_load(&handled.wrong), 0);
	MUST_EQ(fcntl(ch->fd, F_SETOWN, 0), 0);
	MUST_EQ(sigaction(SIGIO, &before, NULL), 0);
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/* Other waiters on the descriptor, before or after, are not affected. */
static bool other_waits_go_on(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u32 = 7 }, got;
	const int set = epoll_create1(EPOLL_CLOEXEC);
	struct loops l;

	MUST(ch && set >= 0 && loops_open(&l) && loops_add(&l, NULL, ch, 0));
	MUST_EQ(epoll_ctl(set, EPOLL_CTL_ADD, ch->fd, &ev), 0);
	MUST(set_nonblocking(ch->fd, true) && ask_for_signals(ch->fd));
	for (int i = 0; i < 3; i++) {
		MUST(loops_event(&l, 0));
		MUST(signal_is_of(ch->fd) && readable(ch->fd, WAIT_MS));
		MUST_EQ(epoll_wait(set, &got, 1, WAIT_MS), 1);
		MUST_EQ(got.data.u32, 7);
		MUST(fcntl(ch->fd, F_GETFL) & O_NONBLOCK);
		MUST(take_cq_event(ch, l.cq[0]));
	}
	close(set);
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

static void *get_cq_event(void *arg)
{
	struct ibv_cq *cq = NULL;
	void *context;

	if (!ibv_get_cq_event(arg, &cq, &context))
		ibv_ack_cq_events(cq, 1);
	return cq;
}

/*
 * A thread that sleeps in ibv_get_cq_event() since before O_ASYNC was set gets the first event, and
 * its signal comes all the same. In a round of twenty or so it slept on.
 */
static bool sleeper_has_the_first(void)
{
	for (int i = 0; i < 60; i++) {
		struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
		pthread_t sleeper;
		struct loops l;
		void *got;

		MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0));
		MUST_EQ(pthread_create(&sleeper, NULL, get_cq_event, ch), 0);
		usleep(5000);
		MUST(ask_for_signals(ch->fd) && loops_event(&l, 0) && signal_is_of(ch->fd));
		MUST_EQ(pthread_join(sleeper, &got), 0);
		MUST(got == l.cq[0] && !readable(ch->fd, 0) && no_signal());
		MUST(loops_close(&l));
		MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	}
	return true;
}

/* More unread events than a socket holds: each has a signal. */
static bool many_that_nobody_takes(void)
{
	enum { MANY = 1000 };
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq;
	struct loops l;
	void *context;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0) && ask_for_signals(ch->fd));
	for (int i = 0; i < MANY; i++)
		MUST(loops_event(&l, 0) && signal_is_of(ch->fd));
	for (int i = 0; i < MANY; i++) {
		MUST(readable(ch->fd, 0));
		MUST_EQ(ibv_get_cq_event(ch, &cq, &context), 0);
	}
	ibv_ack_cq_events(cq, MANY);
	MUST(!readable(ch->fd, 0));
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

/* "F_SETOWN: a process or, negative, a process group": here another process, in a new group. */
static bool owner_is_another_process(int sign)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	siginfo_t info = { 0 };
	struct loops l;
	pid_t other;
	int status;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0) && signals_block(SIGNAL));
	other = fork();
	if (other == 0)
		_exit(!(signal_comes(SIGNAL, &info, WAIT_MS) && info.si_fd == ch->fd &&
			info.si_code == POLL_IN && info.si_band & POLLIN));
	MUST(other > 0 && !setpgid(other, other));
	MUST(!fcntl(ch->fd, F_SETOWN, sign * other) && !fcntl(ch->fd, F_SETSIG, SIGNAL) &&
	     set_async(ch->fd, true));
	MUST(loops_event(&l, 0) && take_cq_event(ch, l.cq[0]));
	MUST_EQ(waitpid(other, &status, 0), other);
	MUST(WIFEXITED(status) && !WEXITSTATUS(status));
	MUST(no_signal());
	/* that has ended; events go on */
	MUST(loops_event(&l, 0) && take_cq_event(ch, l.cq[0]) && no_signal());
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

static bool owners(void)
{
	return owner_is_another_process(1) && owner_is_another_process(-1);
}

/* A pending signal outlives the channel, and causes no other. */
static bool destroyed_with_a_signal_pending(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	sigset_t pending;
	struct loops l;
	int fd;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0) && ask_for_signals(ch->fd));
	MUST(loops_event(&l, 0));
	do
		MUST(!sigpending(&pending));
	while (!sigismember(&pending, SIGNAL));
	fd = ch->fd;
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	MUST(signal_is_of(fd) && no_signal());
	return true;
}

/* "FD_CLOEXEC": a process that passes the descriptor to another program keeps it. */
static bool close_on_exec_is_kept(void)
{
	for (int cloexec = 0; cloexec <= FD_CLOEXEC; cloexec++) {
		struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
		struct loops l;

		MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0));
		MUST_EQ(fcntl(ch->fd, F_SETFD, cloexec), 0);
		MUST(ask_for_signals(ch->fd) && event_has_signal(&l, 0, ch));
		MUST_EQ(fcntl(ch->fd, F_GETFD), cloexec);
		MUST(loops_close(&l));
		MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	}
	return true;
}

/* Events of a CQ that a thread makes at full speed, until no process is left to take them. */
struct busy {
	struct loops l;
	struct ibv_comp_channel *ch;
	atomic_bool stop;
	pthread_t thread;
};

static void *make_events(void *arg)
{
	struct busy *b = arg;

	while (!atomic_load(&b->stop) && loops_event(&b->l, 0))
		;
	return NULL;
}

static bool busy_begin(struct busy *b)
{
	MUST(b->ch = ibv_create_comp_channel(ctx));
	MUST(loops_open(&b->l) && loops_add(&b->l, NULL, b->ch, 0));
	atomic_init(&b->stop, false);
	MUST_EQ(pthread_create(&b->thread, NULL, make_events, b), 0);
	return true;
}

static bool busy_end(struct busy *b)
{
	struct ibv_cq *cq;
	void *context;
	int n = 0;

	atomic_store(&b->stop, true);
	MUST_EQ(pthread_join(b->thread, NULL), 0);
	MUST(set_nonblocking(b->ch->fd, true));
	while (!ibv_get_cq_event(b->ch, &cq, &context))
		n++;
	ibv_ack_cq_events(b->l.cq[0], (unsigned int)n);
	MUST(loops_close(&b->l));
	MUST_EQ(ibv_destroy_comp_channel(b->ch), 0);
	return true;
}

/* The descriptor's file has been replaced by one with signals (docs/events.md). */
static bool is_socket(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISSOCK(st.st_mode);
}

/*
 * Asks for signals of fd; after the owner has been named, until the file has been changed, or
 * within_ns.
 */
static bool ask_slowly(int fd, long long within_ns)
{
	const struct f_owner_ex me = { F_OWNER_TID, (pid_t)syscall(SYS_gettid) };
	const long long until = clock_ns(CLOCK_MONOTONIC) + within_ns;
	struct f_owner_ex owner;

	MUST(!fcntl(fd, F_SETOWN_EX, &me));
	while (!is_socket(fd) && clock_ns(CLOCK_MONOTONIC) < until)
		;
	MUST(!fcntl(fd, F_SETSIG, SIGNAL) && !fcntl(fd, F_SETFL, O_RDWR | O_ASYNC | O_NONBLOCK));
	MUST(signal_comes(SIGNAL, &(siginfo_t){ 0 }, WAIT_MS));
	MUST_EQ(fcntl(fd, F_GETSIG), SIGNAL);
	MUST(fcntl(fd, F_GETFL) & O_NONBLOCK);
	MUST(!fcntl(fd, F_GETOWN_EX, &owner) && owner.type == me.type && owner.pid == me.pid);
	return true;
}

/*
 * Settings by fcntl(2) hold, also if events come between two calls, the first of which sets the
 * owner: in every other round the second one comes as the file is replaced.
 */
static bool asked_for_while_events_come(void)
{
	bool good = signals_block(SIGNAL) && signals_block(SIGIO);
	struct busy b;

	for (int i = 0; i < 200 && good; i++) {
		MUST(busy_begin(&b));
		good = ask_slowly(b.ch->fd, i % 2 ? WAIT_MS * 1000000ll : i * 1000);
		MUST(busy_end(&b) && signals_forget());
	}
	return good;
}

/* ---- asynchronous events ---- */

static bool async_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };

	MUST(ask_for_signals(ctx->async_fd));
	for (int i = 0; i < 3; i++) {
		MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
		MUST(signal_is_of(ctx->async_fd));
		MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq));
		MUST(no_signal() && no_async_event());
	}
	/* each has one, also while another is unread */
	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
	MUST(signal_is_of(ctx->async_fd));
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(signal_is_of(ctx->async_fd));
	MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq));
	MUST(take_async(IBV_EVENT_QP_LAST_WQE_REACHED, p->qp[1]));
	MUST(no_signal() && no_async_event());
	MUST(set_async(ctx->async_fd, false) && !fcntl(ctx->async_fd, F_SETOWN, 0));
	return true;
}

ON_PAIR(asynchronous_events, async_body, .srq = true)

/* ---- leftovers ---- */

struct child {
	struct ibv_comp_channel *ch;
	struct loops *l;
};

static bool in_child(void *arg)
{
	const struct child *c = arg;
	struct ibv_cq *cq;
	void *context;

	MUST(readable(c->ch->fd, 0));
	errno = 0;
	MUST_EQ(ibv_get_cq_event(c->ch, &cq, &context), -1);
	MUST_EQ(errno, EIO);
	MUST(loops_close(c->l));
	MUST_EQ(ibv_destroy_comp_channel(c->ch), 0);
	return true;
}

static bool closes_in_child(void *arg)
{
	const struct child *c = arg;

	MUST_EQ(close(c->ch->fd), 0);
	return true;
}

static bool executes_in_child(void *arg)
{
	const struct child *c = arg;

	MUST_EQ(fcntl(c->ch->fd, F_SETFD, 0), 0);
	execl("/bin/true", "true", NULL);
	return false;
}

/* A child's copies are not the parent's, which continues. */
static bool after_fork(void)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct child c = { .ch = ch };
	struct loops l;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0) && ask_for_signals(ch->fd));
	MUST(event_has_signal(&l, 0, ch));
	c.l = &l;
	MUST(in_a_child(in_child, &c) && in_a_child(closes_in_child, &c) &&
	     in_a_child(executes_in_child, &c));
	MUST(no_signal());
	for (int i = 0; i < 3; i++)
		MUST(event_has_signal(&l, 0, ch));
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

static bool nothing_is_left(void)
{
	const int fds = open_fds(), threads = entries_of("/proc/self/task");

	for (int i = 0; i < 20; i++)
		MUST(completion_channel());
	MUST_EQ(open_fds(), fds);
	MUST_EQ(entries_of("/proc/self/task"), threads);
	return true;
}

const struct test_case man_cases[] = {
	CASE(completion_channel),
	CASE(completion_channel_without_ring),
	CASE(turned_off_and_on),
	CASE(nobody_without_an_owner),
	CASE(what_a_call_finds_and_leaves),
	CASE(handler_serves_its_channel),
	CASE(other_waits_go_on),
	CASE(sleeper_has_the_first),
	CASE(many_that_nobody_takes),
	CASE(owners),
	CASE(destroyed_with_a_signal_pending),
	CASE(close_on_exec_is_kept),
	CASE(asked_for_while_events_come),
	CASE(asynchronous_events),
	CASE(after_fork),
	CASE(nothing_is_left),
	{ 0 },
};
