/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A scripted client of a broker, well-behaved or not (broker.sh):
 *
 *	asker SOCKET COMMAND...
 *
 * one after the other, on one connection, each with a line on standard output: the command and the
 * answer's error (0, or its name), or `end` if the broker has hung up.
 *
 *	hello			a port: with its numbers, and how many descriptors came
 *	claim N, release N	a QP number
 *	bind ID FAMILIES, unbind ID FAMILIES	a service, at all addresses
 *	claims FIRST N		N numbers: how many were granted, and the first other answer
 *	draws N			N numbers, all different: how many, and the first other answer
 *	ring, list N, stop
 *	maps N FIRST		of the nth client: how many came, how many could be written to, and
 *				mapped for that, and their names
 *	rings N			until one is refused: how many were given
 *	freeze			a port, and BPF_MAP_FREEZE of each of its descriptors: how many
 *				that is done to, and the error of xroce_engine
 *	raw N HEX		a message of N bytes that begins with these
 *	rights N		a claim that brings N descriptors
 *	unread N		a port and N rings, all asked for before the first answer is
 *				read: how many of each came, and the last error
 *	hoard N			N connections of user 65534 that ask for a port and do not read: how
 *				many are answered before this user's next port; what another process
 *				of root may pass meanwhile; of how many the port came once they read
 *	hoard_shut N		one after the other, N connections of user 65534 that ask for a
 *				port and are shut down with the answer unread: how many have
 *				descriptors, and the first other answer; what another process of
 *				root may pass meanwhile; a port of user 65533; a port of user 65534
 *				once all are closed
 *	hoard_users N		connections of N users that ask for a port and do not read: how
 *				many have descriptors; when these are shut down, how many of all
 *				have, the first other answer, and what another process of root may
 *				pass; a port of root; one of user 65533, and again once all are
 *				closed
 *	silent N		such N connections of user 65534: how many are ended, and refused,
 *				and how many messages that a question is in progress came
 *	flood N			N asks, of which no answer is read; `full` when no more go in
 *	floods N		N connections, each with asks whose answers are not read, until it
 *				is ended: how many have answers
 *	halves			half an ask, and the other half
 *	again N			N connections, one after the other, that get a port and end
 *	keeps N			N connections, one after the other, that get a port and end, while
 *				its ring's descriptor stays: how many got one, the first other
 *				answer, and that of one more once all descriptors are closed
 *	traces N		a port, N observers' rings of it, whose descriptors stay when each
 *				observation ends: how many were given, and the first other answer;
 *				that of one more once all descriptors are closed
 *	crowd N			N connections of user 65534 that ask for a port; then a claim here,
 *				then a port for a further connection of this user: how many of the
 *				crowd were answered before each of the two
 *	times N			a port, and its end, N times, a moment apart: shortest, median and
 *				longest time to the answer, in us
 *	orphan			make the TAP device persistent, hang up, keep its descriptor: `gone`
 *				when the device is
 *	hold			until the broker hangs up
 *
 *	asker SOCKET notified: the states reported to systemd by that socket, up to the last
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/asked.h"

static const char *path;
static int sock;
static int given[ASK_FDS];
static u32 num_given;
static u32 told; /* messages that a question is in progress */

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static int reach(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strncpy(at.sun_path, path, sizeof(at.sun_path) - 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)))
		die(path);
	/* a rejected client learns that at its first question */
	asked_prove(fd);
	return fd;
}

/* Returns false if the broker has hung up. Descriptors that came are in given[]. */
static bool hear(struct ask_answer *answer)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(given))];
	} control;
	struct iovec iov = { answer, sizeof(*answer) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

	num_given = 0;
	if (n <= 0)
		return false;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		num_given = (u32)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(given, CMSG_DATA(c), num_given * sizeof(int));
	}
	if (n != sizeof(*answer) || answer->version != ASK_VERSION ||
	    answer->num_fds != num_given) {
		printf("not an answer\n");
		exit(1);
	}
	if (answer->err != -EINPROGRESS)
		return true;
	told++;
	return hear(answer);
}

/* The answer that waits at a connection, which stays there: none after a hang-up without one. */
static struct ask_answer peeked(int fd)
{
	struct ask_answer a = { .err = -EPIPE };

	while (recv(fd, &a, sizeof(a), MSG_PEEK | MSG_DONTWAIT) == sizeof(a) &&
	       a.err == -EINPROGRESS) {
		recv(fd, &a, sizeof(a), 0);
		a.err = -EPIPE;
		told++;
	}
	return a;
}

static const char *error_name(s32 err)
{
	return err ? strerrorname_np(-err) : "0";
}

static void say_end(const char *command)
{
	printf("%s end\n", command);
	exit(0);
}

static bool tell(u32 what, u32 number)
{
	const struct ask ask = { .version = ASK_VERSION, .what = what, .number = number };

	return send(sock, &ask, sizeof(ask), MSG_NOSIGNAL) == sizeof(ask);
}

static struct ask_answer answer_of(const char *command, u32 what)
{
	struct ask_answer answer;

	if (!hear(&answer))
		say_end(command);
	if (answer.what != what) {
		printf("%s: the answer of another ask\n", command);
		exit(1);
	}
	return answer;
}

static struct ask_answer ask(const char *command, u32 what, u32 number)
{
	if (!tell(what, number))
		say_end(command);
	return answer_of(command, what);
}

static void of_service(const char *command, u32 what, u64 id, u32 families)
{
	const struct ask ask = { .version = ASK_VERSION,
				 .what = what,
				 .service = { .id = id, .families = families } };

	if (send(sock, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask))
		say_end(command);
	printf("%s %s\n", command, error_name(answer_of(command, what).err));
}

static void let_go(void)
{
	while (num_given)
		close(given[--num_given]);
}

static void hello(void)
{
	const struct ask_answer a = ask("hello", ASK_HELLO, 0);

	if (a.err)
		printf("hello %s\n", error_name(a.err));
	else
		printf("hello 0 client %u ifindex %u prog %u ring %u native %u privileged %u "
		       "fds %u\n",
		       a.port.client, a.port.ifindex, a.port.prog_id, a.port.ring_bytes,
		       a.port.native, a.port.privileged, num_given);
}

static void claims(u32 first, u32 n)
{
	s32 err = 0;
	u32 got = 0;

	for (u32 i = 0; i < n; i++) {
		const struct ask_answer a = ask("claims", ASK_CLAIM, first + i);

		got += !a.err;
		if (!err)
			err = a.err;
	}
	printf("claims %u %s\n", got, error_name(err));
}

static int order_numbers(const void *a, const void *b)
{
	const u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static void draws(u32 n)
{
	u32 *number = calloc(n + 1, sizeof(*number)), got = 0;
	s32 err = 0;

	for (u32 i = 0; i < n; i++) {
		const struct ask_answer a = ask("draws", ASK_DRAW, 0);

		if (!a.err)
			number[got++] = a.number;
		if (!err)
			err = a.err;
	}
	qsort(number, got, sizeof(*number), order_numbers);
	for (u32 i = 0; i < got; i++)
		if (number[i] <= 1 || number[i] >= 0xffffff || (i && number[i] == number[i - 1])) {
			printf("draws: %#x\n", number[i]);
			exit(1);
		}
	printf("draws %u %s\n", got, error_name(err));
	free(number);
}

static void rings(u32 n)
{
	struct ask_answer a = { 0 };
	u32 got = 0;

	while (got < n && !a.err) {
		a = ask("rings", ASK_RING, 0);
		got += !a.err;
		let_go();
	}
	printf("rings %u %s\n", got, error_name(a.err));
}

/* The broker's answer of the nth client of its list, from 0. */
static struct ask_answer ask_nth(u32 nth)
{
	struct ask_answer a = { 0 };
	u32 from = 0;

	for (u32 i = 0; i <= nth && !a.err; i++) {
		a = ask("list", ASK_LIST, from);
		from = a.client.client + 1;
	}
	return a;
}

static void list(u32 n)
{
	const struct ask_answer a = ask_nth(n);

	if (a.err)
		printf("list %s\n", error_name(a.err));
	else
		printf("list 0 client %u pid %u uid %u qps %u %.16s\n", a.client.client,
		       a.client.pid, a.client.uid, a.client.qps, a.client.command);
}

/* Like a client that got read-only descriptors and tries to gain more access. */
static bool may_write(int fd)
{
	static unsigned char key[64], value[65536];
	union bpf_attr attr = { .map_fd = (u32)fd,
				.key = (uintptr_t)key,
				.value = (uintptr_t)value };

	return !syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr));
}

static bool may_map_to_write(int fd)
{
	void *area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (area == MAP_FAILED)
		return false;
	munmap(area, 4096);
	return true;
}

static void maps(u32 nth, u32 first)
{
	const struct ask_answer of = ask_nth(nth);
	const u32 number = of.err ? XROCE_MAX_CLIENT : of.client.client;
	const struct ask_answer a = ask("maps", ASK_MAPS, ASK_MAPS_OF(number, first));
	u32 written = 0, mapped = 0;

	if (a.err) {
		printf("maps %s\n", error_name(a.err));
		return;
	}
	for (u32 i = 0; i < num_given; i++) {
		written += may_write(given[i]);
		mapped += may_map_to_write(given[i]);
	}
	printf("maps 0 fds %u written %u mapped %u names", num_given, written, mapped);
	for (u32 i = 0; i < num_given; i++) {
		struct bpf_map_info info = { 0 };
		union bpf_attr attr = { .info = { .bpf_fd = (u32)given[i],
						  .info_len = sizeof(info),
						  .info = (uintptr_t)&info } };

		if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)))
			die("bpf");
		printf(" %s", info.name);
	}
	putchar('\n');
	let_go();
}

static void freeze(void)
{
	u32 frozen = 0;
	int engine = 0;

	if (ask("freeze", ASK_HELLO, 0).err)
		die("freeze");
	for (u32 i = 0; i < num_given; i++) {
		union bpf_attr attr = { .map_fd = (u32)given[i] };
		const int err = syscall(SYS_bpf, BPF_MAP_FREEZE, &attr, sizeof(attr)) ? -errno : 0;

		frozen += !err;
		if (i == ASK_FD_ENGINE)
			engine = err;
	}
	printf("freeze %u engine %s\n", frozen, error_name(engine));
}

static void raw(u32 n, const char *hex)
{
	unsigned char *bytes = calloc(1, n + 1);
	struct ask_answer a;
	unsigned int x;

	for (u32 i = 0; i < n && sscanf(hex + 2 * i, "%2x", &x) == 1; i++)
		bytes[i] = (unsigned char)x;
	if (send(sock, bytes, n, MSG_NOSIGNAL) != (ssize_t)n || !hear(&a))
		say_end("raw");
	printf("raw %s\n", error_name(a.err));
	free(bytes);
}

static void rights(u32 n)
{
	const struct ask message = { .version = ASK_VERSION, .what = ASK_CLAIM, .number = 77 };
	struct iovec iov = { (void *)&message, sizeof(message) };
	char control[CMSG_SPACE(253 * sizeof(int))] = { 0 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	struct ask_answer a;

	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(n * sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS };
	for (u32 i = 0; i < n; i++)
		((int *)CMSG_DATA(c))[i] = 1;
	if (sendmsg(sock, &msg, MSG_NOSIGNAL) < 0) {
		printf("rights %s\n", strerrorname_np(errno));
		return;
	}
	if (!hear(&a))
		say_end("rights");
	printf("rights %s\n", error_name(a.err));
}

static void unread(u32 n)
{
	struct ask_answer a = { 0 };
	u32 ports = 0, got = 0;

	tell(ASK_HELLO, 0);
	for (u32 i = 0; i < n; i++)
		tell(ASK_RING, 0);
	tell(ASK_LIST, 1 << 30);
	poll(&(struct pollfd){ .fd = sock, .events = POLLIN }, 1, -1);
	for (u32 i = 0; i < n + 2; i++) {
		struct ask_answer next;

		if (!hear(&next))
			say_end("unread");
		ports += next.what == ASK_HELLO && !next.err;
		got += next.what == ASK_RING && !next.err;
		if (next.what == ASK_RING)
			a = next;
		let_go();
	}
	printf("unread %u %u %s\n", ports, got, error_name(a.err));
}

static void flood(u32 n)
{
	const struct ask message = { .version = ASK_VERSION, .what = ASK_LIST, .number = 1 << 30 };

	for (u32 i = 0; i < n; i++) {
		if (send(sock, &message, sizeof(message), MSG_NOSIGNAL) == sizeof(message))
			continue;
		printf("flood %s\n", errno == EPIPE || errno == ECONNRESET ? "end" : "full");
		return;
	}
	printf("flood taken\n");
}

static void floods(u32 n)
{
	const struct ask message = { .version = ASK_VERSION, .what = ASK_LIST, .number = 1 << 30 };
	struct ask_answer a;
	u32 flooded = 0;

	for (u32 i = 0; i < n; i++) {
		const int fd = reach();

		while (send(fd, &message, sizeof(message), MSG_NOSIGNAL) == sizeof(message))
			;
		flooded += recv(fd, &a, sizeof(a), MSG_PEEK | MSG_DONTWAIT) == sizeof(a);
	}
	printf("floods %u\n", flooded);
}

static void halves(void)
{
	const struct ask message = { .version = ASK_VERSION, .what = ASK_LIST };
	struct ask_answer a;

	send(sock, &message, 8, MSG_NOSIGNAL);
	send(sock, (const char *)&message + 8, 8, MSG_NOSIGNAL);
	if (!hear(&a))
		say_end("halves");
	printf("halves %s\n", error_name(a.err));
}

static u64 now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000 + (u64)t.tv_nsec / 1000;
}

static void again(u32 n)
{
	u32 got = 0;

	for (u32 i = 0; i < n; i++) {
		sock = reach();
		got += !ask("again", ASK_HELLO, 0).err;
		let_go();
		close(sock);
	}
	printf("again %u\n", got);
}

static void keeps(u32 n)
{
	int *kept = calloc(n, sizeof(*kept));
	u32 got = 0;
	s32 err = 0;

	if (!kept)
		die("keeps");
	while (got < n && !err) {
		sock = reach();
		err = ask("keeps", ASK_HELLO, 0).err;
		if (!err)
			kept[got++] = fcntl(given[ASK_FD_RX], F_DUPFD_CLOEXEC, 0);
		let_go();
		close(sock);
	}
	printf("keeps %u %s", got, error_name(err));
	while (got)
		close(kept[--got]);
	free(kept);
	sock = reach();
	printf(" %s\n", error_name(ask("keeps", ASK_HELLO, 0).err));
	let_go();
}

static s32 trace_own(u32 client)
{
	const struct ask ask = { .version = ASK_VERSION,
				 .what = ASK_TRACE,
				 .number = client,
				 .trace = { .bytes = 64, .ring_bytes = 1 << 24, .what = 1 } };

	if (send(sock, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask))
		say_end("traces");
	return answer_of("traces", ASK_TRACE).err;
}

static void traces(u32 n)
{
	const struct ask_answer port = ask("traces", ASK_HELLO, 0);
	int *kept = calloc(n, sizeof(*kept));
	u32 got = 0;
	s32 err = port.err;

	if (!kept)
		die("traces");
	let_go();
	while (got < n && !err) {
		err = trace_own(port.port.client);
		if (err)
			break;
		kept[got++] = fcntl(given[ASK_TRACE_RING], F_DUPFD_CLOEXEC, 0);
		let_go();
		err = ask("traces", ASK_UNTRACE, port.port.prog_id).err;
	}
	printf("traces %u %s", got, error_name(err));
	while (got)
		close(kept[--got]);
	free(kept);
	for (u32 i = 0; (err = trace_own(port.port.client)) && i < 300; i++)
		usleep(10000);
	let_go();
	printf(" %s\n", error_name(err));
}

static u32 answered(const int *fd, u32 n)
{
	u32 count = 0;

	for (u32 i = 0; i < n; i++) {
		struct pollfd p = { .fd = fd[i], .events = POLLIN };

		peeked(fd[i]);
		count += poll(&p, 1, 0) == 1;
	}
	return count;
}

/* A connection of a user: whose it is the kernel notes when it is made. */
static int reach_as(uid_t uid)
{
	int fd;

	if (seteuid(uid))
		die("seteuid");
	fd = reach();
	if (seteuid(0))
		die("seteuid");
	return fd;
}

/*
 * Connections that have asked for a port, all at once: of user 65534, or of as many users. The
 * caller's, by free().
 */
static int *reach_many(u32 n, bool of_users)
{
	int *fd = calloc(n, sizeof(*fd));
	const int own = sock;

	if (!fd)
		die("reach_many");
	for (u32 i = 0; i < n; i++)
		fd[i] = reach_as(of_users ? 60000 + i : 65534);
	/* each has proved its permissions by now */
	for (u32 i = 0; i < n; i++) {
		sock = fd[i];
		tell(ASK_HELLO, 0);
	}
	sock = own;
	return fd;
}

/*
 * What a process of root without capabilities finds when it passes descriptors, of which it may
 * have `most`: 0 or an errno.
 */
static int passes(u32 most)
{
	const struct rlimit lim = { most, most };
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { 0 };
	int status = 0, pair[2];
	const pid_t pid = fork();

	if (!pid) {
		union {
			struct cmsghdr header;
			char room[CMSG_SPACE(sizeof(int))];
		} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
		struct iovec iov = { .iov_base = &status, .iov_len = 1 };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				      .msg_controllen = sizeof(control) };

		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) || setrlimit(RLIMIT_NOFILE, &lim) ||
		    syscall(SYS_capset, &head, none))
			_exit(255);
		memcpy(CMSG_DATA(&control.header), &pair[1], sizeof(int));
		_exit(sendmsg(pair[0], &msg, 0) == 1 ? 0 : errno);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		die("passes");
	return WEXITSTATUS(status);
}

static void hoard(u32 n)
{
	int *fd = reach_many(n, false), passed;
	const int own = sock;
	u32 before, got = 0;

	if (ask("hoard", ASK_HELLO, 0).err)
		die("hello");
	let_go();
	/* longer than it takes to make as many */
	usleep(n * 30000);
	before = answered(fd, n);
	passed = passes(100);
	for (u32 left = n; left; left--) {
		struct ask_answer a;
		u32 at = 0;

		while (at < n && (fd[at] < 0 || !answered(fd + at, 1)))
			at = (at + 1) % n;
		sock = fd[at];
		if (!hear(&a))
			die("hoard");
		got += !a.err && a.num_fds == ASK_FDS;
		let_go();
		close(fd[at]);
		fd[at] = -1;
	}
	sock = own;
	printf("hoard %u %s %u\n", before, error_name(-passed), got);
	free(fd);
}

/* How many answers with descriptors wait, and the first other answer's error. */
static u32 unread_of(const int *fd, u32 n, s32 *err)
{
	u32 count = 0;

	*err = 0;
	for (u32 i = 0; i < n; i++) {
		const struct ask_answer a = peeked(fd[i]);

		count += !a.err && a.num_fds;
		if (!*err)
			*err = a.err;
	}
	return count;
}

/* Asks for a port on a further connection: the error of the answer, which is read. */
static s32 port_of(uid_t uid)
{
	const int own = sock;
	s32 err;

	sock = reach_as(uid);
	err = ask("port", ASK_HELLO, 0).err;
	let_go();
	close(sock);
	sock = own;
	return err;
}

/* The same, until there is a port or two seconds have passed. */
static s32 port_at_last(uid_t uid)
{
	s32 err = port_of(uid);

	for (u32 i = 0; err && i < 200; i++) {
		usleep(10000);
		err = port_of(uid);
	}
	return err;
}

static void close_all(int *fd, u32 n)
{
	for (u32 i = 0; i < n; i++)
		close(fd[i]);
	free(fd);
}

static void hoard_shut(u32 n)
{
	int *fd = calloc(n, sizeof(*fd)), passed;
	const int own = sock;
	s32 refused, other;
	u32 got;

	if (!fd)
		die("hoard_shut");
	for (u32 i = 0; i < n; i++) {
		struct pollfd p = { .events = POLLIN };

		p.fd = sock = fd[i] = reach_as(65534);
		tell(ASK_HELLO, 0);
		poll(&p, 1, -1);
		shutdown(sock, SHUT_RDWR);
	}
	sock = own;
	got = unread_of(fd, n, &refused);
	passed = passes(100);
	other = port_of(65533);
	close_all(fd, n);
	printf("hoard_shut %u %s %s %s", got, error_name(refused), error_name(-passed),
	       error_name(other));
	printf(" %s\n", error_name(port_at_last(65534)));
}

static void hoard_users(u32 n)
{
	int *fd = reach_many(n, true), passed;
	u32 before, got, left = n;
	s32 refused, root, other;

	/* longer than it takes to make as many */
	usleep(n * 30000);
	before = answered(fd, n);
	for (u32 i = 0; i < n; i++)
		if (answered(fd + i, 1))
			shutdown(fd[i], SHUT_RDWR);
	for (u32 i = 0; i < 1000 && left; i++) {
		usleep(10000);
		left = n - answered(fd, n);
	}
	got = unread_of(fd, n, &refused);
	passed = passes(1024);
	root = port_of(0);
	other = port_of(65533);
	close_all(fd, n);
	printf("hoard_users %u %u %s %s", before, got, error_name(refused), error_name(-passed));
	printf(" %s %s", error_name(root), error_name(other));
	printf(" %s\n", error_name(port_at_last(65533)));
}

/* A client that never reads is ended after five seconds, and its user gets no more. */
static void silent(u32 n)
{
	int *fd = reach_many(n, false);
	u32 ended = 0, refused = 0;

	for (u32 i = 0; i < n; i++) {
		struct pollfd p = { .fd = fd[i] };

		while (!poll(&p, 1, 10) && peeked(fd[i]).err != -EDQUOT)
			;
		ended += !!(p.revents & POLLHUP);
		refused += !p.revents;
	}
	printf("silent %u %u told %u\n", ended, refused, told);
	free(fd);
}

static void crowd(u32 n)
{
	const int other = reach();
	int *fd = reach_many(n, false);
	u32 before;

	if (ask("crowd", ASK_CLAIM, 12345).err)
		die("claim");
	before = answered(fd, n);
	sock = other;
	if (ask("crowd", ASK_HELLO, 0).err)
		die("hello");
	printf("crowd %u %u\n", before, answered(fd, n));
	free(fd);
}

static int order(const void *a, const void *b)
{
	const u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static void times(u32 n)
{
	u64 *us = calloc(n, sizeof(*us));

	for (u32 i = 0; i < n; i++) {
		const u64 begun = now_us();

		sock = reach();
		if (ask("times", ASK_HELLO, 0).err)
			die("hello");
		us[i] = now_us() - begun;
		let_go();
		close(sock);
		usleep(100000);
	}
	qsort(us, n, sizeof(*us), order);
	printf("times %llu %llu %llu\n", (unsigned long long)us[0], (unsigned long long)us[n / 2],
	       (unsigned long long)us[n - 1]);
	free(us);
}

/* Like a client that tries to keep a borrowed resource. */
static void orphan(void)
{
	static const enum ask_fd which[] = { ASK_FD_TAP, ASK_FD_SINGLE };
	bool gone = true;

	if (ask("orphan", ASK_HELLO, 0).err || ioctl(given[ASK_FD_TAP], TUNSETPERSIST, 1) ||
	    ioctl(given[ASK_FD_SINGLE], TUNSETPERSIST, 1))
		die("orphan");
	close(sock);
	for (u32 i = 0; i < ARRAY_SIZE(which); i++) {
		struct pollfd tap = { .fd = given[which[i]], .events = POLLIN };

		poll(&tap, 1, -1);
		gone &= !!(tap.revents & POLLERR);
	}
	printf("orphan %s\n", gone ? "gone" : "stays");
}

static int notified(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char text[64];
	ssize_t n;

	strncpy(at.sun_path, path, sizeof(at.sun_path) - 1);
	sock = socket(AF_UNIX, SOCK_DGRAM, 0);
	if (bind(sock, (struct sockaddr *)&at, sizeof(at)))
		die(path);
	do {
		n = recv(sock, text, sizeof(text) - 1, 0);
		text[n < 0 ? 0 : n] = 0;
		printf("%s\n", text);
	} while (n > 0 && strcmp(text, "STOPPING=1"));
	return 0;
}

static void hold(void)
{
	struct pollfd fd = { .fd = sock };

	printf("hold\n");
	poll(&fd, 1, -1);
	say_end("hold");
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: asker SOCKET COMMAND...\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	path = argv[1];
	if (!strcmp(argv[2], "notified"))
		return notified();
	sock = reach();
	for (int i = 2; i < argc; i++) {
		const char *what = argv[i];
		const u32 n = i + 1 < argc ? (u32)strtoul(argv[i + 1], NULL, 0) : 0;

		if (!strcmp(what, "hello")) {
			hello();
		} else if (!strcmp(what, "ring")) {
			printf("ring %s", error_name(ask("ring", ASK_RING, 0).err));
			printf(" fds %u\n", num_given);
		} else if (!strcmp(what, "stop")) {
			printf("stop %s\n", error_name(ask("stop", ASK_STOP, 0).err));
		} else if (!strcmp(what, "halves")) {
			halves();
		} else if (!strcmp(what, "orphan")) {
			orphan();
		} else if (!strcmp(what, "freeze")) {
			freeze();
		} else if (!strcmp(what, "hold")) {
			hold();
		} else {
			i++;
			if (!strcmp(what, "claim"))
				printf("claim %s\n", error_name(ask("claim", ASK_CLAIM, n).err));
			else if (!strcmp(what, "release"))
				printf("release %s\n",
				       error_name(ask("release", ASK_RELEASE, n).err));
			else if (!strcmp(what, "bind"))
				of_service(what, ASK_BIND, n, (u32)atoi(argv[++i]));
			else if (!strcmp(what, "unbind"))
				of_service(what, ASK_UNBIND, n, (u32)atoi(argv[++i]));
			else if (!strcmp(what, "claims"))
				claims(n, (u32)strtoul(argv[++i], NULL, 0));
			else if (!strcmp(what, "draws"))
				draws(n);
			else if (!strcmp(what, "rings"))
				rings(n);
			else if (!strcmp(what, "list"))
				list(n);
			else if (!strcmp(what, "maps"))
				maps(n, (u32)strtoul(argv[++i], NULL, 0));
			else if (!strcmp(what, "raw"))
				raw(n, argv[++i]);
			else if (!strcmp(what, "rights"))
				rights(n);
			else if (!strcmp(what, "unread"))
				unread(n);
			else if (!strcmp(what, "flood"))
				flood(n);
			else if (!strcmp(what, "floods"))
				floods(n);
			else if (!strcmp(what, "again"))
				again(n);
			else if (!strcmp(what, "keeps"))
				keeps(n);
			else if (!strcmp(what, "traces"))
				traces(n);
			else if (!strcmp(what, "crowd"))
				crowd(n);
			else if (!strcmp(what, "hoard"))
				hoard(n);
			else if (!strcmp(what, "hoard_shut"))
				hoard_shut(n);
			else if (!strcmp(what, "hoard_users"))
				hoard_users(n);
			else if (!strcmp(what, "silent"))
				silent(n);
			else if (!strcmp(what, "times"))
				times(n);
			else
				return 2;
		}
	}
	return 0;
}
