/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "../cli.h"
#include "lab_keep.h"
#include "lab_report.h"
#include "lab_space.h"

enum {
	ASK_MS = 1000,	  /* longest wait for a request, and for its reader */
	CHANGE_MS = 2000, /* longest wait for the cable */
	BACKLOG = 64,
};

/* ---- names ---- */

bool lab_name_is_good(const char *name)
{
	const size_t len = strlen(name);

	return len && len < LAB_NAME &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
		       len;
}

socklen_t lab_address(const char *name, struct sockaddr_un *address)
{
	int n;

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "xroce-lab/%u/%s",
		     geteuid(), name);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* ---- answers ---- */

static void send_text(int fd, struct lab_answer *a, const char *text)
{
	do {
		snprintf(a->text, sizeof(a->text), "%s", text);
		if (send(fd, a, sizeof(*a), MSG_NOSIGNAL) != sizeof(*a))
			return;
		text += strlen(a->text);
	} while (*text);
	a->text[0] = 0;
	send(fd, a, sizeof(*a), MSG_NOSIGNAL);
}

static void answer_rules(const struct lab *lab, int fd, struct lab_answer *a)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (out) {
		lab_report_rules(lab, out);
		fclose(out);
	}
	send_text(fd, a, text ? text : "");
	free(text);
}

/* Sends the descriptors of the namespaces of a host. */
static void answer_enter(const struct lab *lab, int fd, u32 host, struct lab_answer *a)
{
	static const char *const names[] = {
		[LAB_NS_USER] = "user", [LAB_NS_MOUNT] = "mnt", [LAB_NS_PID] = "pid"
	};
	char control[CMSG_SPACE(LAB_NS_COUNT * sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec part = { a, sizeof(*a) };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	int fds[LAB_NS_COUNT];

	for (u32 i = 0; i < LAB_NS_COUNT; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i] ? names[i] : "net");
		fds[i] = i == LAB_NS_NET ? lab->hosts[host - 1].ns_fd :
					   open(path, O_RDONLY | O_CLOEXEC);
	}
	*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fds)),
				  .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(head), fds, sizeof(fds));
	sendmsg(fd, &msg, MSG_NOSIGNAL);
	for (u32 i = 0; i < LAB_NS_COUNT; i++)
		if (i != LAB_NS_NET && fds[i] >= 0)
			close(fds[i]);
}

/* ---- rules ---- */

/* Has the cable put the changed rule at a place. Returns whether it has. */
static bool change_rule(struct lab *lab, const struct cable_process *process, u32 at)
{
	struct cable *c = lab->cable;
	const u32 before = atomic_load_explicit(&c->changes, memory_order_relaxed);
	const u64 until_ns = clock_now_ns() + CHANGE_MS * (u64)NSEC_PER_MSEC;

	c->change_at = at;
	if (write(process->control_fd, "", 1) != 1)
		return false;
	/* acquire: pairs with the cable's release; after it the rule is the cable's alone */
	while (atomic_load_explicit(&c->changes, memory_order_acquire) == before) {
		if (clock_now_ns() >= until_ns)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

static void answer_add(struct lab *lab, const struct cable_process *process, int fd,
		       const char *text, struct lab_answer *a)
{
	const struct lab_wire *w = &lab->cable->wire;
	struct lab_error error;
	char why[300] = "";
	u32 at = 0;

	while (at < w->num_rules && w->rules[at].text[0])
		at++;
	a->status = EXIT_USAGE;
	if (at == LAB_RULES)
		snprintf(why, sizeof(why), "more than %d rules", LAB_RULES);
	else if (!lab_rule_parse(text, lab->num_hosts, &lab->cable->change, &error))
		snprintf(why, sizeof(why), "'%.*s' in the rule: %s",
			 (int)min_u32(error.len, LAB_RULE_TEXT), text + error.at, error.why);
	else if (lab_rule_place(&lab->cable->change) != LAB_AT_CABLE)
		snprintf(why, sizeof(why),
			 "a rule of an endpoint: run the program with XROCE_FAULT instead");
	else {
		output_clean(lab->cable->change.text);
		a->status = change_rule(lab, process, at) ? EXIT_OK : EXIT_FAILED;
		if (a->status)
			snprintf(why, sizeof(why), "the cable does not answer");
	}
	output_clean(why);
	send_text(fd, a, why);
}

/* Removes the rules of that text, or all. */
static void answer_clear(struct lab *lab, const struct cable_process *process, int fd,
			 const char *text, struct lab_answer *a)
{
	const struct lab_wire *w = &lab->cable->wire;
	u32 n = 0;

	for (u32 i = 0; i < w->num_rules; i++) {
		if (!w->rules[i].text[0] || (*text && strcmp(w->rules[i].text, text)))
			continue;
		memset(&lab->cable->change, 0, sizeof(lab->cable->change));
		n += change_rule(lab, process, i);
	}
	a->status = n || !*text ? EXIT_OK : EXIT_FAILED;
	send_text(fd, a, a->status ? "there is no such rule" : "");
}

/* ---- requests ---- */

/* Returns whether the peer is this user; in the lab's user namespace both are root. */
static bool is_own(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == geteuid();
}

/* Answers a request. Returns false if it ends the lab. */
static bool answer(struct lab *lab, const struct cable_process *cable, int fd)
{
	struct lab_answer a = { .num_hosts = lab->num_hosts,
				.is_shared = lab->is_shared,
				.is_plain = lab->is_plain };
	const struct timeval limit = clock_timeval(ASK_MS * (u64)NSEC_PER_MSEC);
	struct lab_request q;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!is_own(fd) || recv(fd, &q, sizeof(q), 0) != sizeof(q))
		return true;
	q.text[sizeof(q.text) - 1] = 0;
	switch (q.op) {
	case LAB_OP_ENTER:
		if (q.host && q.host <= lab->num_hosts) {
			answer_enter(lab, fd, q.host, &a);
			return true;
		}
		a.status = EXIT_USAGE;
		send_text(fd, &a, "there is no such host");
		return true;
	case LAB_OP_ADD:
		answer_add(lab, cable, fd, q.text, &a);
		return true;
	case LAB_OP_CLEAR:
		answer_clear(lab, cable, fd, q.text, &a);
		return true;
	case LAB_OP_LIST:
	case LAB_OP_DOWN:
		answer_rules(lab, fd, &a);
		return q.op != LAB_OP_DOWN;
	}
	return true;
}

int lab_keep(struct lab *lab, const struct cable_process *cable, int signal_fd)
{
	struct pollfd fds[] = { { .fd = signal_fd, .events = POLLIN },
				{ .fd = lab->listen_fd, .events = POLLIN } };
	struct signalfd_siginfo info;
	bool goes_on = true;
	int fd;

	lab->shown->began = true;
	/* the end of messages to the command that waits */
	if (write(STDERR_FILENO, "", 1) != 1)
		return EXIT_FAILED;
	while (goes_on) {
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			continue;
		if (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
			/* orphans of programs, and the cable, without which there is no lab */
			while (info.ssi_signo == SIGCHLD && (fd = waitpid(-1, NULL, WNOHANG)) > 0)
				goes_on &= fd != cable->pid;
			goes_on &= info.ssi_signo == SIGCHLD;
		}
		if (!goes_on || !fds[1].revents)
			continue;
		fd = accept4(lab->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		goes_on = answer(lab, cable, fd);
		close(fd);
	}
	return EXIT_OK;
}

/* ---- the keeper ---- */

/* Returns a socket at the lab's address, or -errno. */
static int bind_to(const char *name)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address;
	const socklen_t len = lab_address(name, &address);

	int err;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (const struct sockaddr *)&address, len))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Closes what the keeper has inherited, as a lock of flock(1) or the end of a pipe. */
static void close_inherited(const struct lab *lab)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		const int fd = atoi(e->d_name);

		if (fd > STDERR_FILENO && fd != lab->listen_fd && fd != lab->capture_fd &&
		    fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/* The keeper: a session of its own, whose messages go to the command that started it. */
static int keeper(struct lab *lab, int messages)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	signal(SIGPIPE, SIG_IGN);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(messages, STDERR_FILENO) < 0 || chdir("/"))
		return EXIT_FAILED;
	close_inherited(lab);
	/* the kernel gives this process's PID to those that connect */
	if (listen(lab->listen_fd, BACKLOG))
		return lab_failed("listen", -errno);
	return lab_space_run(lab);
}

/* Prints the keeper's messages up to a zero byte. Returns whether that came. */
static bool pass_messages(int fd)
{
	char piece[512];
	ssize_t n;

	while ((n = read(fd, piece, sizeof(piece))) > 0) {
		const char *zero = memchr(piece, 0, (size_t)n);

		fwrite(piece, 1, zero ? (size_t)(zero - piece) : (size_t)n, stderr);
		if (zero)
			return true;
	}
	return false;
}

int lab_keep_start(struct lab *lab, const char *name)
{
	int messages[2], status;
	bool good;
	pid_t pid;

	lab->listen_fd = bind_to(name);
	if (lab->listen_fd == -EADDRINUSE) {
		fprintf(stderr, "xroce lab: there is a lab '%s' ('xroce lab down %s' ends it)\n",
			name, name);
		return EXIT_FAILED;
	}
	if (lab->listen_fd < 0)
		return lab_failed("make a socket", lab->listen_fd);
	if (pipe2(messages, O_CLOEXEC))
		return lab_failed("make a pipe", -errno);
	lab->is_kept = true;
	pid = fork();
	if (pid < 0)
		return lab_failed("start a process", -errno);
	if (!pid) {
		close(messages[0]);
		_exit(keeper(lab, messages[1]));
	}
	close(messages[1]);
	close(lab->listen_fd);
	good = pass_messages(messages[0]);
	close(messages[0]);
	if (good)
		return EXIT_OK;
	return waitpid(pid, &status, 0) == pid ? lab_exit_status(status) : EXIT_FAILED;
}
