/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../cli.h"
#include "../output.h"
#include "lab_endpoint.h"

/* Most processes of a host whose results count. */
enum { PROCESSES = 1024 };

static bool is_of_host(const struct lab_rule *r, u32 number)
{
	return r->text[0] && lab_rule_place(r) != LAB_AT_CABLE && (!r->host || r->host == number);
}

static u32 count_rules(const struct lab *lab, u32 number)
{
	u32 n = 0;

	for (u32 i = 0; i < lab->cable->wire.num_rules; i++)
		n += is_of_host(&lab->cable->wire.rules[i], number);
	return n;
}

bool lab_endpoint_any(const struct lab *lab)
{
	for (u32 i = 0; i < lab->cable->wire.num_rules; i++)
		if (lab_rule_place(&lab->cable->wire.rules[i]) != LAB_AT_CABLE)
			return true;
	return false;
}

/* ---- the sockets ---- */

/* Returns a listening socket at the abstract address, or -errno. */
static int listen_here(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const socklen_t len = offsetof(struct sockaddr_un, sun_path) + sizeof(FAULT_SOCKET);
	int err = fd < 0 ? -errno : 0;

	memcpy(address.sun_path + 1, FAULT_SOCKET, sizeof(FAULT_SOCKET) - 1);

	if (!err && (bind(fd, (const struct sockaddr *)&address, len) || listen(fd, PROCESSES)))
		err = -errno;
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

int lab_endpoint_open(struct lab *lab)
{
	const int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int err = own < 0 ? -errno : 0;

	for (u32 i = 0; i < LAB_HOSTS; i++)
		lab->fault_fd[i] = -1;
	for (u32 i = 0; !err && i < lab->num_hosts; i++) {
		if (!count_rules(lab, i + 1))
			continue;
		err = lab_net_enter(&lab->hosts[i]);
		if (!err)
			lab->fault_fd[i] = listen_here();
		if (setns(own, CLONE_NEWNET))
			err = -errno;
		if (!err && lab->fault_fd[i] < 0)
			err = lab->fault_fd[i];
	}
	if (own >= 0)
		close(own);
	return err ? lab_failed("make a socket for the programs' results", err) : EXIT_OK;
}

void lab_endpoint_environment(const struct lab *lab, u32 number)
{
	static char text[LAB_RULES * LAB_RULE_TEXT];
	const struct lab_wire *w = &lab->cable->wire;
	char seed[32];
	size_t len = 0;

	if (!count_rules(lab, number))
		return;
	for (u32 i = 0; i < w->num_rules; i++)
		if (is_of_host(&w->rules[i], number))
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s;",
						w->rules[i].text);
	/* each host's own */
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)(w->seed ^ (u64)number << 48));
	setenv("XROCE_FAULT", text, 1);
	setenv("XROCE_FAULT_SEED", seed, 1);
	setenv("XROCE_FAULT_REPORT", FAULT_SOCKET, 1);
}

/* ---- the results, of hostile processes ---- */

/* Returns the descriptor that a connection has brought, or -1. */
static int take_descriptor(int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec data = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &data,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *head;
	int found = -1;

	if (recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) != 1)
		return -1;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&found, CMSG_DATA(head), sizeof(found));
	return found;
}

/* Reads the results. Returns whether they are whole. */
static bool read_results(int fd, struct fault_results *r)
{
	struct stat st;

	/* a regular file: reading it does not wait */
	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size == sizeof(*r) &&
	       pread(fd, r, sizeof(*r), 0) == sizeof(*r) && r->magic == FAULT_RESULTS_MAGIC &&
	       r->num <= FAULT_RULES;
}

static u32 add_up(u32 a, u32 b)
{
	return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static void add_result(struct lab *lab, u32 number, u32 at, struct fault_result *result)
{
	struct lab_rule *r = &lab->cable->wire.rules[at];
	struct lab_endpoint_hits *h = &lab->shown->endpoint[at];

	r->matched[number][number] = add_up(r->matched[number][number], result->matched);
	r->hits = add_up(r->hits, result->hits);
	for (u32 i = 0; i < result->num_shown && i < LAB_RULE_SHOWN; i++) {
		if (h->num == LAB_RULE_SHOWN)
			return;
		result->shown[i][FAULT_SHOWN_TEXT - 1] = 0;
		output_clean(result->shown[i]);
		h->host[h->num] = (u8)number;
		memcpy(h->text[h->num++], result->shown[i], FAULT_SHOWN_TEXT);
	}
}

/* The process's rules are the host's, in their order. */
static void add_results(struct lab *lab, u32 number, struct fault_results *results)
{
	const struct lab_wire *w = &lab->cable->wire;
	u32 next = 0;

	for (u32 i = 0; i < w->num_rules; i++) {
		if (!is_of_host(&w->rules[i], number))
			continue;
		if (next == results->num ||
		    strncmp(results->rule[next], w->rules[i].text, LAB_RULE_TEXT))
			return;
		add_result(lab, number, i, &results->result[next++]);
	}
}

static void collect_host(struct lab *lab, u32 number, struct fault_results *results)
{
	for (u32 n = 0; n < PROCESSES; n++) {
		const int connection =
			accept4(lab->fault_fd[number - 1], NULL, NULL, SOCK_CLOEXEC);
		const int fd = connection < 0 ? -1 : take_descriptor(connection);

		if (connection < 0)
			return;
		if (fd >= 0 && read_results(fd, results))
			add_results(lab, number, results);
		if (fd >= 0)
			close(fd);
		close(connection);
	}
}

void lab_endpoint_collect(struct lab *lab)
{
	struct fault_results *results = malloc(sizeof(*results));

	for (u32 i = 0; results && i < lab->num_hosts; i++)
		if (lab->fault_fd[i] >= 0)
			collect_host(lab, i + 1, results);
	free(results);
}
