/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * user/client/attach.c, with a broker of the test's own that hands over real maps and a real TAP
 * device, or something else in place of one of them. In a network namespace of the test's own;
 * needs root.
 */
#define _GNU_SOURCE
#include "../unit/unit.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../user/client/attach.h"
#include "../common/open_fds.h"

#define RING_BYTES (1u << 20)
#define PROG_ID	   4711u

/* What a broker gives, and how it answers after that. */
struct broker {
	struct ask_port port;
	int fd[ASK_FDS];
	s32 hello_err, draw_err;
	u32 version;
	u32 ring_slot;
	bool hangs_up; /* in place of an answer */
	bool is_silent;
	/* the question */
	_Atomic u32 hellos, draws, releases, rings;
	_Atomic u32 last_number, last_hello;
	int listener;
	pthread_t thread;
	char path[108];
};

static struct netdev dev;

/* ---- what a port is made of ---- */

static int map(enum bpf_map_type type, u32 key, u32 value, u32 n)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts,
		    .map_flags = type == BPF_MAP_TYPE_ARRAY ? BPF_F_MMAPABLE : 0);
	int fd = bpf_map_create(type, "test", key, value, n, &opts);

	assert_true(fd >= 0);
	return fd;
}

static int tap(short flags)
{
	struct ifreq ifr = { .ifr_flags = flags };
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ioctl(fd, TUNSETIFF, &ifr), 0);
	return fd;
}

static void broker_init(struct broker *b)
{
	*b = (struct broker){ .port = { .client = 1, .ifindex = dev.ifindex, .prog_id = PROG_ID,
					.ring_bytes = RING_BYTES, .native = 1,
					.pkeys = { 2, { 0xffff, 0x8001 } } },
			      .version = ASK_VERSION,
			      .ring_slot = XROCE_MAX_CHANNEL - 1 };
	b->fd[ASK_FD_QP] = map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_qp), XROCE_MAX_QP);
	b->fd[ASK_FD_CQ] = map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_cq), XROCE_MAX_CQ);
	b->fd[ASK_FD_EXPECT] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_expect), XROCE_MAX_QP);
	b->fd[ASK_FD_ENGINE] = map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_engine), 1);
	b->fd[ASK_FD_VECTOR] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_vector), XROCE_MAX_QUEUE);
	b->fd[ASK_FD_SOCK] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_sock), XROCE_MAX_QUEUE);
	b->fd[ASK_FD_STATS] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_engine_stats), XROCE_MAX_SHARD);
	b->fd[ASK_FD_DROPS] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_drops), XROCE_MAX_SHARD);
	b->fd[ASK_FD_RX] = map(BPF_MAP_TYPE_RINGBUF, 0, 0, RING_BYTES);
	b->fd[ASK_FD_WAKE] = map(BPF_MAP_TYPE_RINGBUF, 0, 0, XROCE_RING_BYTES);
	b->fd[ASK_FD_TAP] = tap(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR);
	b->fd[ASK_FD_SINGLE] = tap(IFF_TAP | IFF_NO_PI);
	b->fd[ASK_FD_QP_STAT] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_qp_stat), XROCE_QP_STATS);
	b->fd[ASK_FD_CQ_STAT] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_cq_stat), XROCE_CQ_STATS);
	b->fd[ASK_FD_SRQ_STAT] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_srq_stat), XROCE_SRQ_STATS);
	b->fd[ASK_FD_MR_STAT] =
		map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_mr_stat), XROCE_MR_STATS);
	/* a program, which is run only for observers */
	b->fd[ASK_FD_TRACE] = map(BPF_MAP_TYPE_ARRAY, 4, 4, 1);
}

static void broker_replace(struct broker *b, enum ask_fd which, int fd)
{
	close(b->fd[which]);
	b->fd[which] = fd;
}

/* ---- a broker of one client at a time ---- */

static void broker_answer(struct broker *b, int client, const struct ask *ask)
{
	struct ask_answer a = { .version = b->version, .what = ask->what };
	const int ring = b->fd[ASK_FD_WAKE], *fds = NULL;
	union {
		char room[CMSG_SPACE(ASK_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = &a, .iov_len = sizeof(a) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	atomic_store(&b->last_number, ask->number);
	switch (ask->what) {
	case ASK_HELLO:
		atomic_fetch_add(&b->hellos, 1);
		atomic_store(&b->last_hello, ask->number);
		a.err = b->hello_err;
		a.num_fds = a.err ? 0 : ASK_FDS;
		a.port = b->port;
		fds = b->fd;
		break;
	case ASK_DRAW:
		a.number = 0x1234 + atomic_fetch_add(&b->draws, 1);
		a.err = b->draw_err;
		break;
	case ASK_RELEASE:
		atomic_fetch_add(&b->releases, 1);
		break;
	case ASK_RING:
		atomic_fetch_add(&b->rings, 1);
		a.num_fds = 1;
		a.number = b->ring_slot;
		fds = &ring;
		break;
	}
	if (a.num_fds) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(a.num_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
				       .cmsg_len = CMSG_LEN(a.num_fds * sizeof(int)) };
		memcpy(CMSG_DATA(c), fds, a.num_fds * sizeof(int));
	}
	sendmsg(client, &msg, MSG_NOSIGNAL);
}

static void *broker_main(void *arg)
{
	struct broker *b = arg;
	struct ask ask;
	int client;

	while ((client = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		while (!b->hangs_up && recv(client, &ask, sizeof(ask), 0) == sizeof(ask))
			if (!b->is_silent)
				broker_answer(b, client, &ask);
		close(client);
	}
	return NULL;
}

static void broker_start(struct broker *b)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	snprintf(b->path, sizeof(b->path), ASK_PATH, (unsigned long long)netdev_netns(),
		 dev.ifindex);
	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", b->path);
	assert_true(mkdir(ASK_DIR, 0755) == 0 || errno == EEXIST);
	unlink(b->path);
	b->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(b->listener >= 0);
	assert_int_equal(bind(b->listener, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(listen(b->listener, 4), 0);
	assert_int_equal(pthread_create(&b->thread, NULL, broker_main, b), 0);
}

static void broker_end(struct broker *b)
{
	shutdown(b->listener, SHUT_RDWR);
	pthread_join(b->thread, NULL);
	close(b->listener);
	unlink(b->path);
	for (u32 i = 0; i < ASK_FDS; i++)
		close(b->fd[i]);
}

/* ---- the tests ---- */

static int setup(void **state)
{
	struct broker *b = calloc(1, sizeof(*b));

	setenv("XROCE_SHARE", "always", 1);
	broker_init(b);
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

/* No port of that broker, and none of its resources is left. */
static void is_refused(struct broker *b, int want)
{
	struct attachment m;
	u32 before;

	broker_start(b);
	before = open_fds();
	assert_int_equal(attach_make(&dev, &m), want);
	/* but for the broker's own end of the conversation, until it sees the end */
	assert_in_range(open_fds(), before, before + 1);
	broker_end(b);
}

static void attach_make__is_by_the_broker(void **state)
{
	struct broker *b = *state;
	const u32 before = open_fds(); /* with the broker's */
	struct attachment m;
	struct xroce_cq cq;
	struct ring_slot ring;
	u32 qpn;

	broker_start(b);
	assert_int_equal(attach_make(&dev, &m), 0);
	assert_true(m.info.shared && m.info.native && m.info.multibuffer);
	assert_int_equal(m.info.queues, 1);
	assert_int_equal(m.info.shards, 1);
	assert_int_equal(m.info.prog_id, PROG_ID);
	assert_int_equal(m.maps.engine->pid, getpid());
	/* the maps are the broker's */
	m.maps.cq[7].channel = 5;
	assert_int_equal(bpf_map_lookup_elem(b->fd[ASK_FD_CQ], &(u32){ 7 }, &cq), 0);
	assert_int_equal(cq.channel, 5);
	assert_int_equal(m.io[0].xsks.count, 1);
	assert_non_null(m.io[0].tx);
	assert_int_equal(m.info.pkeys.num, 2);
	assert_int_equal(m.info.pkeys.key[1], 0x8001);
	/* questions */
	assert_int_equal(attach_draw(&m, &qpn), 0);
	assert_int_equal(qpn, 0x1234);
	attach_release(&m, qpn);
	assert_int_equal(atomic_load(&b->releases), 1);
	assert_int_equal(atomic_load(&b->last_number), 0x1234);
	b->draw_err = -EDQUOT;
	assert_int_equal(attach_draw(&m, &qpn), -EDQUOT);
	assert_int_equal(attach_ring(&m, &ring), 0);
	assert_true(ring.fd >= 0);
	assert_int_equal(ring.slot, XROCE_MAX_CHANNEL - 1);
	close(ring.fd);
	attach_detach(&m);
	assert_true(attach_lifeline(&m) >= 0);
	attach_unmake(&m);
	broker_end(b);
	assert_int_equal(open_fds(), before - ASK_FDS);
}

static void attach_make__is_over_with_the_broker(void **state)
{
	struct broker *b = *state;
	struct ring_slot ring;
	struct attachment m;
	u32 qpn;

	broker_start(b);
	assert_int_equal(attach_make(&dev, &m), 0);
	shutdown(attach_lifeline(&m), SHUT_RDWR);
	assert_int_equal(attach_draw(&m, &qpn), -EIO);
	assert_int_equal(attach_ring(&m, &ring), -EIO);
	attach_release(&m, 7);
	attach_unmake(&m);
	broker_end(b);
}

/* A release does not report whether it was heard. */
static void draw(struct attachment *m)
{
	u32 qpn;

	assert_int_equal(attach_draw(m, &qpn), -EIO);
}
static void release(struct attachment *m) { attach_release(m, 7); }
static void unbind(struct attachment *m) { attach_unbind(m, &(struct ask_service){ 0 }); }
static void leave_group(struct attachment *m) { attach_leave_group(m, &(struct gid){ 0 }); }

/* The standard error of a failing release, in a buffer of n bytes. */
static void in_vain(void (*ask)(struct attachment *), struct attachment *m, char *said, size_t n)
{
	const int err = dup(STDERR_FILENO), file = memfd_create("said", MFD_CLOEXEC);
	ssize_t len;

	assert_true(err >= 0 && file >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
	ask(m);
	assert_true(dup2(err, STDERR_FILENO) == STDERR_FILENO && !close(err));
	len = pread(file, said, n - 1, 0);
	assert_true(len >= 0);
	said[len] = '\0';
	close(file);
}

/* A broker that does not answer: the process has lost the device, with the reason, once. */
static void attach__tells_of_a_broker_that_is_not_heard(void **state)
{
	void (*const asks[])(struct attachment *) = { draw, release, unbind, leave_group };
	struct broker *b = *state;
	struct attachment m;
	char said[200];

	broker_start(b);
	for (size_t i = 0; i < ARRAY_SIZE(asks); i++) {
		assert_int_equal(attach_make(&dev, &m), 0);
		m.asker.max_ns = 1 * NSEC_PER_SEC;
		b->is_silent = true;
		in_vain(asks[i], &m, said, sizeof(said));
		assert_string_equal(said, "xroce: shared0: the broker has not answered for 1 s; "
					  "this process has lost the device\n");
		in_vain(asks[i], &m, said, sizeof(said));
		assert_string_equal(said, "");
		attach_unmake(&m);
		b->is_silent = false;
	}
	broker_end(b);
}

static void attach_draw__tells_of_an_answer_that_is_none(void **state)
{
	struct broker *b = *state;
	struct attachment m;
	char said[200];

	broker_start(b);
	assert_int_equal(attach_make(&dev, &m), 0);
	b->draw_err = 1;
	in_vain(draw, &m, said, sizeof(said));
	assert_string_equal(said, "xroce: shared0: the broker sent an invalid answer; "
				  "this process has lost the device\n");
	in_vain(draw, &m, said, sizeof(said));
	assert_string_equal(said, "");
	attach_unmake(&m);
	broker_end(b);
}

static void attach_make__says_what_the_broker_says(void **state)
{
	struct broker *b = *state;

	b->hello_err = -ENOSPC;
	is_refused(b, -ENOSPC);
}

/* A user's limit is like the total limit, except for the message. */
static void attach_make__says_that_the_user_has_enough(void **state)
{
	struct broker *b = *state;

	b->hello_err = -EDQUOT;
	is_refused(b, -ENOSPC);
}

static void attach_make__refuses_another_version(void **state)
{
	struct broker *b = *state;

	b->version++;
	is_refused(b, -EPROTONOSUPPORT);
}

static void attach_make__refuses_another_interface(void **state)
{
	struct broker *b = *state;

	b->port.ifindex++;
	is_refused(b, -EPROTO);
}

/* The place of its communication ids would be another's, or the first one's. */
static void attach_make__refuses_a_number_of_no_client(void **state)
{
	struct broker *b = *state;

	b->port.client = XROCE_MAX_CLIENT;
	is_refused(b, -EPROTO);
}

/* A mapping of it would be longer than the map. */
static void attach_make__refuses_a_map_of_fewer_entries(void **state)
{
	struct broker *b = *state;

	broker_replace(b, ASK_FD_EXPECT, map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_expect),
					     XROCE_MAX_QP / 2));
	is_refused(b, -EPROTO);
}

static void attach_make__refuses_a_map_of_smaller_values(void **state)
{
	struct broker *b = *state;

	broker_replace(b, ASK_FD_QP, map(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct xroce_qp) - 8,
					 XROCE_MAX_QP));
	is_refused(b, -EPROTO);
}

static void attach_make__refuses_a_map_of_another_type(void **state)
{
	struct broker *b = *state;

	broker_replace(b, ASK_FD_QP, map(BPF_MAP_TYPE_HASH, 4, sizeof(struct xroce_qp),
					 XROCE_MAX_QP));
	is_refused(b, -EPROTO);
}

static void attach_make__refuses_what_is_no_map(void **state)
{
	struct broker *b = *state;

	broker_replace(b, ASK_FD_CQ, eventfd(0, EFD_CLOEXEC));
	is_refused(b, -EPROTO);
}

/* As the default profiles of containers have it: bpf() is EPERM, for this thread alone. */
static void *make_without_bpf(void *err)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { ARRAY_SIZE(filter), filter };
	struct attachment m;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return NULL;
	*(int *)err = attach_make(&dev, &m);
	if (!*(int *)err)
		attach_unmake(&m);
	return NULL;
}

static void attach_make__calls_no_bpf(void **state)
{
	struct broker *b = *state;
	pthread_t thread;
	int err = -1;

	broker_start(b);
	assert_int_equal(pthread_create(&thread, NULL, make_without_bpf, &err), 0);
	pthread_join(thread, NULL);
	assert_int_equal(err, 0);
	broker_end(b);
}

/* XDP would find no ring by that key, or that of a worker. */
static void attach_ring__refuses_a_key_of_no_channel(void **state)
{
	static const u32 keys[] = { 0, XROCE_MAX_QUEUE - 1, XROCE_MAX_CHANNEL };
	struct broker *b = *state;
	struct ring_slot ring;
	struct attachment m;

	broker_start(b);
	for (u32 i = 0; i < ARRAY_SIZE(keys); i++) {
		b->ring_slot = keys[i];
		assert_int_equal(attach_make(&dev, &m), 0);
		assert_int_equal(attach_ring(&m, &ring), -EIO);
		attach_unmake(&m);
	}
	broker_end(b);
}

static void attach_make__refuses_a_ring_of_another_size(void **state)
{
	struct broker *b = *state;

	b->port.ring_bytes *= 2;
	is_refused(b, -EPROTO);
}

static void attach_make__refuses_what_is_no_tap(void **state)
{
	struct broker *b = *state;

	broker_replace(b, ASK_FD_TAP, eventfd(0, EFD_CLOEXEC));
	is_refused(b, -EPROTO);
}

static void attach_make__refuses_a_tap_without_headers(void **state)
{
	struct broker *b = *state;

	broker_replace(b, ASK_FD_TAP, tap(IFF_TAP | IFF_NO_PI));
	is_refused(b, -EPROTO);
}

static void attach_make__refuses_single_frames_with_headers(void **state)
{
	struct broker *b = *state;

	broker_replace(b, ASK_FD_SINGLE, tap(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR));
	is_refused(b, -EPROTO);
}

/* An exited broker is like none: always means with one. */
static void attach_make__needs_a_broker_for_always(void **state)
{
	struct broker *b = *state;
	struct attachment m;

	assert_int_equal(attach_make(&dev, &m), -ENODEV);
	b->hangs_up = true;
	is_refused(b, -ENODEV);
}

/* Alone or not at all: the broker decides. */
static void attach_make__asks_to_be_alone_for_never(void **state)
{
	struct broker *b = *state;

	setenv("XROCE_SHARE", "never", 1);
	b->hello_err = -EBUSY;
	is_refused(b, -EBUSY);
	assert_int_equal(atomic_load(&b->last_hello) & ASK_TO_BE_ALONE, ASK_TO_BE_ALONE);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(attach_make__is_by_the_broker),
		TEST(attach_make__is_over_with_the_broker),
		TEST(attach__tells_of_a_broker_that_is_not_heard),
		TEST(attach_draw__tells_of_an_answer_that_is_none),
		TEST(attach_make__says_what_the_broker_says),
		TEST(attach_make__says_that_the_user_has_enough),
		TEST(attach_make__refuses_another_version),
		TEST(attach_make__refuses_another_interface),
		TEST(attach_make__refuses_a_number_of_no_client),
		TEST(attach_make__refuses_a_map_of_fewer_entries),
		TEST(attach_make__refuses_a_map_of_smaller_values),
		TEST(attach_make__refuses_a_map_of_another_type),
		TEST(attach_make__refuses_what_is_no_map),
		TEST(attach_make__calls_no_bpf),
		TEST(attach_ring__refuses_a_key_of_no_channel),
		TEST(attach_make__refuses_a_ring_of_another_size),
		TEST(attach_make__refuses_what_is_no_tap),
		TEST(attach_make__refuses_a_tap_without_headers),
		TEST(attach_make__refuses_single_frames_with_headers),
		TEST(attach_make__needs_a_broker_for_always),
		TEST(attach_make__asks_to_be_alone_for_never),
	};

	if (unshare(CLONE_NEWNET) ||
	    system("ip link add shared0 mtu 4500 type veth peer shared1 && "
		   "ip link set shared0 up && ip link set shared1 up"))
		return 1;
	dev.ifindex = if_nametoindex("shared0");
	if (netdev_refresh(&dev))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
