/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * Descriptors of events under dup(2), select(2), execve(2) and signal(7). Limits of a process
 * (getrlimit(2)) that are reached in the middle of a call: it fails, leaves nothing, and works once
 * the limit allows it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <grp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>

#include "cancelled.h"
#include "held.h"
#include "man.h"

#define FDS 1024

/* ---- descriptors ---- */

static bool inherited[FDS];

/* Calls f for each descriptor of the process. */
static int each_descriptor(void (*f)(int fd))
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	int n = 0;

	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(dir))
			continue;
		if (f)
			f(atoi(e->d_name));
		n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

static void is_inherited(int fd)
{
	if (fd < FDS)
		inherited[fd] = true;
}

__attribute__((constructor)) static void note_inherited(void)
{
	each_descriptor(is_inherited);
}

static int descriptors(void)
{
	return each_descriptor(NULL);
}

/* The ways to duplicate a descriptor. */
#define WAYS 5
static int duplicate(int fd, int way)
{
	switch (way) {
	case 0:
		return dup(fd);
	case 1:
		return dup2(fd, FDS - 2);
	case 2:
		return dup3(fd, FDS - 3, O_CLOEXEC);
	case 3:
		return fcntl(fd, F_DUPFD, FDS / 2);
	default:
		return fcntl(fd, F_DUPFD_CLOEXEC, FDS / 2);
	}
}

/* Gets the readiness of fd; poll(2), select(2) and epoll(7) must agree. */
static bool is_ready(int fd, int set, bool *ready)
{
	struct timeval now = { 0 };
	struct epoll_event event;
	fd_set in;
	int n[3];

	FD_ZERO(&in);
	FD_SET(fd, &in);
	n[0] = readable(fd, 0);
	n[1] = select(fd + 1, &in, NULL, NULL, &now);
	n[2] = epoll_wait(set, &event, 1, 0);
	MUST_EQ(n[1], n[0]);
	MUST_EQ(n[2], n[0]);
	*ready = n[0];
	return true;
}

/* Returns a channel with a ring, by which XDP wakes it, or without one (docs/events.md). */
static struct ibv_comp_channel *channel_of(bool ring)
{
	struct ibv_comp_channel *ch;
	struct rlimit before, few;

	if (ring)
		return ibv_create_comp_channel(ctx);
	if (getrlimit(RLIMIT_NOFILE, &before))
		return NULL;
	few = (struct rlimit){ 31, before.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &few))
		return NULL;
	ch = ibv_create_comp_channel(ctx);
	return setrlimit(RLIMIT_NOFILE, &before) ? NULL : ch;
}

static bool duplicates_are_ready(bool ring)
{
	struct ibv_comp_channel *ch = channel_of(ring);
	struct loops l;

	MUST(ch && loops_open(&l) && loops_add(&l, NULL, ch, 0));
	for (int way = 0; way < WAYS; way++) {
		struct epoll_event event = { .events = EPOLLIN };
		const int set = epoll_create1(EPOLL_CLOEXEC), copy = duplicate(ch->fd, way);
		bool ready;

		MUST(copy >= 0 && copy != ch->fd && set >= 0);
		MUST_EQ(!!(fcntl(copy, F_GETFD) & FD_CLOEXEC), way == 2 || way == 4);
		MUST(!epoll_ctl(set, EPOLL_CTL_ADD, copy, &event));
		MUST(is_ready(copy, set, &ready) && !ready);
		for (int i = 0; i < 3; i++) {
			MUST(loops_event(&l, 0) && readable(copy, WAIT_MS));
			MUST(is_ready(copy, set, &ready) && ready && readable(ch->fd, 0));
			MUST(take_cq_event(ch, l.cq[0]));
			MUST(is_ready(copy, set, &ready) && !ready && !readable(ch->fd, 0));
		}
		MUST(!close(copy));
		MUST(loops_event(&l, 0) && take_cq_event(ch, l.cq[0]) && !close(set));
	}
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	return true;
}

static bool duplicates_of_a_channel(void)
{
	return duplicates_are_ready(true) && duplicates_are_ready(false);
}

/* dup(2): "They refer to the same open file description and thus share ... file status flags". */
static bool nonblocking_by_a_duplicate(void)
{
	for (int ring = 0; ring < 2; ring++) {
		struct ibv_comp_channel *ch = channel_of(ring);
		int copy[2];
		void *context;
		struct ibv_cq *cq;

		MUST(ch && (copy[0] = dup(ch->fd)) >= 0 && set_nonblocking(copy[0], true));
		MUST(fcntl(ch->fd, F_GETFL) & O_NONBLOCK);
		MUST(!close(copy[0]));
		MUST_EQ(ibv_get_cq_event(ch, &cq, &context), -1);
		MUST_EQ(errno, EAGAIN);
		MUST((copy[1] = dup(ch->fd)) >= 0 && set_nonblocking(copy[1], false));
		MUST(!(fcntl(ch->fd, F_GETFL) & O_NONBLOCK) && !close(copy[1]));
		MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	}
	return true;
}

/* A duplicate that outlives its channel gets no event of later channels. */
static bool duplicate_outlives_its_channel(void)
{
	const int before = descriptors();

	for (int i = 0; i < 20; i++) {
		struct ibv_comp_channel *old = channel_of(i % 2), *ch;
		struct loops l;
		int copy, fd;

		MUST(old && loops_open(&l) && loops_add(&l, NULL, old, 0) && loops_event(&l, 0));
		MUST(take_cq_event(old, l.cq[0]) && (copy = dup(old->fd)) >= 0 && loops_close(&l));
		fd = old->fd;
		MUST_EQ(ibv_destroy_comp_channel(old), 0);
		MUST(fcntl(fd, F_GETFD) == -1 && fcntl(copy, F_GETFD) == 0);
		MUST(ch = channel_of(i % 2));
		MUST(loops_open(&l) && loops_add(&l, NULL, ch, 0) && loops_event(&l, 0));
		MUST(readable(ch->fd, WAIT_MS) && !readable(copy, 0));
		MUST(take_cq_event(ch, l.cq[0]) && !close(copy));
		/* closing it affects no later channel */
		MUST(loops_event(&l, 0) && take_cq_event(ch, l.cq[0]) && loops_close(&l));
		MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	}
	/* a ring may be kept for the next channel */
	MUST(descriptors() <= before + 1);
	return true;
}

static bool async_duplicates_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };
	struct ibv_async_event event;

	for (int way = 0; way < WAYS; way++) {
		struct epoll_event ev = { .events = EPOLLIN };
		const int set = epoll_create1(EPOLL_CLOEXEC), copy = duplicate(ctx->async_fd, way);
		bool ready;

		MUST(copy >= 0 && set >= 0 && !epoll_ctl(set, EPOLL_CTL_ADD, copy, &ev));
		MUST(is_ready(copy, set, &ready) && !ready);
		MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
		MUST(readable(copy, WAIT_MS) && is_ready(copy, set, &ready) && ready);
		MUST(take_async(IBV_EVENT_SRQ_LIMIT_REACHED, p->srq));
		MUST(is_ready(copy, set, &ready) && !ready);
		MUST(set_nonblocking(copy, true));
		MUST_EQ(ibv_get_async_event(ctx, &event), -1);
		MUST_EQ(errno, EAGAIN);
		MUST(set_nonblocking(copy, false) && !(fcntl(ctx->async_fd, F_GETFL) & O_NONBLOCK));
		MUST(!close(copy) && !close(set));
	}
	return no_async_event();
}

ON_PAIR(duplicates_of_asynchronous_events, async_duplicates_body, .srq = true)

static int kept_over_exec;

static void is_kept_over_exec(int fd)
{
	if (fd < FDS && !inherited[fd] && !(fcntl(fd, F_GETFD) & FD_CLOEXEC)) {
		char path[32], name[256] = "";

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof(name) - 1) < 0)
			name[0] = 0;
		printf("# descriptor %d: %s\n", fd, name);
		kept_over_exec++;
	}
}

/* open(2), O_CLOEXEC: all descriptors of uverbs and rdma-core have the flag. */
static bool nothing_is_kept_body(struct pair *p)
{
	kept_over_exec = 0;
	MUST(message(p, IBV_SEND_SIGNALED));
	each_descriptor(is_kept_over_exec);
	MUST_EQ(kept_over_exec, 0);
	return true;
}

ON_PAIR(nothing_is_kept_over_exec, nothing_is_kept_body, .channel = true, .srq = true)

/* ---- signals ---- */

struct waiter {
	pthread_t thread;
	int (*call)(void *arg);
	void *arg;
	int rc, err;
	atomic_bool done;
};

static void *waiter_run(void *arg)
{
	struct waiter *w = arg;

	w->rc = w->call(w->arg);
	w->err = errno;
	atomic_store(&w->done, true);
	return NULL;
}

static bool waiter_begins(struct waiter *w, int (*call)(void *arg), void *arg)
{
	*w = (struct waiter){ .call = call, .arg = arg };
	MUST_EQ(pthread_create(&w->thread, NULL, waiter_run, w), 0);
	return true;
}

/* Signals the thread until the flag is set, at most `times` times. */
static void signal_until(pthread_t thread, const atomic_bool *done, int times)
{
	for (int i = 0; i < times && !atomic_load(done); i++) {
		pthread_kill(thread, SIGUSR1);
		usleep(1000);
	}
}

static int get_async(void *arg)
{
	return ibv_get_async_event(ctx, arg);
}

static int get_cq(void *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context))
		return -1;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* read(2) of uverbs' files: EINTR by a handler without SA_RESTART; with it the wait continues. */
static bool signals_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };
	struct ibv_async_event event = { 0 };
	struct waiter w[2];

	MUST(catch_usr1(0));
	MUST(waiter_begins(&w[0], get_async, &event) && waiter_begins(&w[1], get_cq, p->channel));
	for (int i = 0; i < 2; i++) {
		signal_until(w[i].thread, &w[i].done, WAIT_MS);
		MUST_EQ(pthread_join(w[i].thread, NULL), 0);
		MUST_EQ(w[i].rc, -1);
		MUST_EQ(w[i].err, EINTR);
	}
	MUST(catch_usr1(SA_RESTART));
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(waiter_begins(&w[0], get_async, &event) && waiter_begins(&w[1], get_cq, p->channel));
	for (int i = 0; i < 2; i++) {
		signal_until(w[i].thread, &w[i].done, 50);
		MUST(!atomic_load(&w[i].done));
	}
	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
	MUST(message(p, IBV_SEND_SIGNALED));
	for (int i = 0; i < 2; i++) {
		MUST_EQ(pthread_join(w[i].thread, NULL), 0);
		MUST_EQ(w[i].rc, 0);
	}
	MUST_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	MUST(event.element.srq == p->srq);
	ibv_ack_async_event(&event);
	signal(SIGUSR1, SIG_DFL);
	return no_async_event() && no_cq_event(p->channel);
}

ON_PAIR(signals_during_waits, signals_body, .channel = true, .srq = true)

static int destroy_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

static int destroy_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

/*
 * No signal ends a destroy that waits for an acknowledgement. Other threads create and destroy
 * objects, and send messages, during the wait.
 */
static bool destroy_body(struct pair *p)
{
	struct ibv_srq_attr a = { .srq_limit = 1 };
	struct ibv_async_event event[2];
	struct destruction d[3];
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	void *context;
	struct loops l;

	MUST(catch_usr1(0));
	MUST(loops_open(&l) && loops_add(&l, NULL, NULL, 0));
	MUST_EQ(ibv_req_notify_cq(p->cq[1], 0), 0);
	MUST(message(p, IBV_SEND_SIGNALED));
	MUST_EQ(ibv_get_cq_event(p->channel, &cq, &context), 0);
	MUST_EQ(ibv_modify_srq(p->srq, &a, IBV_SRQ_LIMIT), 0);
	MUST(next_async(&event[0]) && event[0].element.srq == p->srq);
	MUST_EQ(qp_to_state(p->qp[1], IBV_QPS_ERR), 0);
	MUST(next_async(&event[1]) && event[1].element.qp == p->qp[1]);
	MUST(destroy_begins(&d[0], destroy_qp, p->qp[1]));
	signal_until(d[0].thread, &d[0].done, 20);
	MUST(destroy_waits(&d[0]));
	MUST(srq = ibv_create_srq(p->pd, &(struct ibv_srq_init_attr){ .attr = { QUEUE, 1, 0 } }));
	MUST_EQ(ibv_destroy_srq(srq), 0);
	MUST(loops_event(&l, 0) && loops_drop(&l, 0) && loops_add(&l, NULL, NULL, 0));
	MUST(loops_event(&l, 1));
	ibv_ack_async_event(&event[1]);
	MUST(destroy_ends(&d[0]));
	p->qp[1] = NULL;
	MUST(destroy_begins(&d[1], destroy_srq, p->srq));
	MUST(destroy_begins(&d[2], destroy_cq, cq));
	for (int i = 1; i < 3; i++)
		signal_until(d[i].thread, &d[i].done, 20);
	MUST(destroy_waits(&d[1]) && destroy_waits(&d[2]));
	MUST(loops_event(&l, 1));
	ibv_ack_cq_events(cq, 1);
	MUST(destroy_ends(&d[2]) && destroy_waits(&d[1]));
	p->cq[1] = NULL;
	ibv_ack_async_event(&event[0]);
	MUST(destroy_ends(&d[1]));
	p->srq = NULL;
	signal(SIGUSR1, SIG_DFL);
	return loops_close(&l) && no_async_event();
}

ON_PAIR(destroys_that_wait, destroy_body, .channel = true, .srq = true)

static struct {
	struct ibv_comp_channel *ch;
	struct loops l;
} come_and_go;

static void *takes_and_exits(void *arg)
{
	if (get_cq(come_and_go.ch))
		return arg;
	pthread_exit(NULL);
}

/* Threads take an event and exit, or are cancelled before they get one. */
static bool thread_comes_and_goes(int i)
{
	struct cancelled c;
	pthread_t thread;
	void *failed;

	MUST(loops_event(&come_and_go.l, 0));
	if (i % 2)
		MUST(cancelled_calls(&c, get_cq, come_and_go.ch) && !c.returned);
	MUST_EQ(pthread_create(&thread, NULL, takes_and_exits, &come_and_go), 0);
	MUST_EQ(pthread_join(thread, &failed), 0);
	return !failed;
}

static bool threads_that_come_and_go(void)
{
	bool good;

	MUST(come_and_go.ch = ibv_create_comp_channel(ctx));
	MUST(loops_open(&come_and_go.l) && loops_add(&come_and_go.l, NULL, come_and_go.ch, 0));
	good = leaves_nothing(thread_comes_and_goes, 1000);
	MUST(loops_close(&come_and_go.l));
	MUST_EQ(ibv_destroy_comp_channel(come_and_go.ch), 0);
	return good;
}

/* ---- limits ---- */

/* Opens a device and makes a QP that sends to itself and gets an event: each kind of object. */
static int make_all(const char *name)
{
	struct ibv_context *const parent = ctx;
	struct ibv_comp_channel *ch = NULL;
	struct ibv_device **list;
	struct ibv_cq *cq = NULL;
	struct ibv_pd *pd = NULL;
	struct ibv_qp *qp = NULL;
	struct ibv_mr *mr = NULL;
	static char buf[4096];
	int err = 0, end = 0;

	errno = 0;
	list = ibv_get_device_list(NULL);
	ctx = NULL;
	for (int i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	err = ctx ? 0 : errno ? errno : -1;
	if (list)
		ibv_free_device_list(list);
	if (ctx && (!(pd = ibv_alloc_pd(ctx)) ||
		    !(mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE)) ||
		    !(ch = ibv_create_comp_channel(ctx)) ||
		    !(cq = ibv_create_cq(ctx, QUEUE, NULL, ch, 0)) ||
		    !(qp = qp_to_itself(pd, cq, cq, NULL))))
		err = errno ? errno : -1;
	if (ctx && !err) {
		bool good = !ibv_req_notify_cq(cq, 0) && ping(qp, 1, 0) && take_cq_event(ch, cq);

		end |= !good;
	}
	end |= qp && ibv_destroy_qp(qp);
	end |= cq && ibv_destroy_cq(cq);
	end |= ch && ibv_destroy_comp_channel(ch);
	end |= mr && ibv_dereg_mr(mr);
	end |= pd && ibv_dealloc_pd(pd);
	end |= ctx && ibv_close_device(ctx);
	ctx = parent;
	if (end)
		printf("# something made does not work, or does not go\n");
	return end ? -2 : err;
}

/* Calls with `room` free descriptors under RLIMIT_NOFILE. */
static int with_room_for(int room, int (*call)(const char *name), const char *name)
{
	int used[FDS], n = 0, err;
	struct rlimit before, few;

	if (getrlimit(RLIMIT_NOFILE, &before))
		return -1;
	few = (struct rlimit){ FDS / 2, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < FDS && (used[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	for (int i = 0; i < room && n; i++)
		close(used[--n]);
	err = call(name);
	while (n)
		close(used[--n]);
	setrlimit(RLIMIT_NOFILE, &before);
	return err;
}

static bool descriptors_end(void *name)
{
	int all, err, worked = -1;

	MUST_EQ(make_all(name), 0);
	all = descriptors();
	/* with each number of free descriptors */
	for (int room = 0; room < 100 && worked < 0; room++) {
		err = with_room_for(room, make_all, name);
		if (err && err != EMFILE)
			printf("# with room for %d: errno %d (%s)\n", room, err, strerror(err));
		MUST(!err || err == EMFILE);
		if (!err)
			worked = room;
		MUST(count_becomes(descriptors, all));
	}
	MUST(worked > 0);
	printf("# descriptors needed: %d\n", worked);
	MUST_EQ(make_all(name), 0);
	return count_becomes(descriptors, all);
}

/* In a child, which shares nothing with this process: its device is not attached yet. */
static bool descriptors_end_in_the_middle(void)
{
	return in_a_child(descriptors_end, (void *)ibv_get_device_name(ctx->device));
}

static long address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (f && fscanf(f, "%ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* RLIMIT_AS: "will fail with the error ENOMEM" */
static bool memory_ends(void *name)
{
	struct rlimit before, few;
	int all, err = -1;

	MUST_EQ(make_all(name), 0);
	all = descriptors();
	MUST_EQ(getrlimit(RLIMIT_AS, &before), 0);
	for (long room = 65536; room < 2l << 30 && err; room += room / 2) {
		few = (struct rlimit){ (rlim_t)(address_space() + room), before.rlim_max };
		MUST_EQ(setrlimit(RLIMIT_AS, &few), 0);
		err = make_all(name);
		MUST_EQ(setrlimit(RLIMIT_AS, &before), 0);
		if (err && err != ENOMEM && err != EAGAIN)
			printf("# with room for %ld bytes: errno %d (%s)\n", room, err,
			       strerror(err));
		MUST(!err || err == ENOMEM || err == EAGAIN);
		MUST(count_becomes(descriptors, all));
	}
	MUST_EQ(err, 0);
	MUST_EQ(make_all(name), 0);
	return count_becomes(descriptors, all);
}

static bool memory_ends_in_the_middle(void)
{
	return in_a_child(memory_ends, (void *)ibv_get_device_name(ctx->device));
}

/* docs/broker.md: "nothing is pinned": a user may register memory with RLIMIT_MEMLOCK of 0. */
static bool drops_root(void *name)
{
	const size_t bytes = 32 << 20;
	struct rlimit none = { 0, 0 };
	struct ibv_comp_channel *ch;
	struct ibv_mr *mr;
	struct loops l;
	char *buf;

	MUST((ctx = open_device(name)) && loops_open(&l) && loops_add(&l, NULL, NULL, 0));
	MUST(!setrlimit(RLIMIT_MEMLOCK, &none) && !setgroups(0, NULL));
	MUST(!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
	MUST(ch = ibv_create_comp_channel(ctx));
	MUST(loops_add(&l, NULL, ch, 0));
	buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(buf != MAP_FAILED);
	for (int i = 0; i < 100; i++) {
		MUST(mr = ibv_reg_mr(l.pd, buf, bytes, IBV_ACCESS_LOCAL_WRITE));
		MUST_EQ(ibv_dereg_mr(mr), 0);
		MUST(loops_event(&l, 1) && take_cq_event(ch, l.cq[1]));
		MUST(loops_event(&l, 0));
	}
	MUST(loops_close(&l));
	MUST_EQ(ibv_destroy_comp_channel(ch), 0);
	MUST_EQ(ibv_close_device(ctx), 0);
	return true;
}

static bool nothing_is_pinned_for_a_user(void)
{
	return in_a_child(drops_root, (void *)ibv_get_device_name(ctx->device));
}

const struct test_case man_cases[] = {
	/* first, before any object is made on the device */
	CASE(descriptors_end_in_the_middle),
	CASE(memory_ends_in_the_middle),
	CASE(nothing_is_pinned_for_a_user),
	CASE(duplicates_of_a_channel),
	CASE(nonblocking_by_a_duplicate),
	CASE(duplicate_outlives_its_channel),
	CASE(duplicates_of_asynchronous_events),
	CASE(nothing_is_kept_over_exec),
	CASE(signals_during_waits),
	CASE(destroys_that_wait),
	CASE(threads_that_come_and_go),
	{ 0 },
};
