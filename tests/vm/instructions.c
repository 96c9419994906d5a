/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Instructions that an operation takes at both of its ends together. Both ends are in this process,
 * on one processor, with a veth between them; QEMU counts (-icount shift=0: the time stamp counter
 * goes up by one with each instruction of the guest, the kernel's and its threads' included).
 *
 *	instructions verbs DEVICE,GID-INDEX DEVICE,GID-INDEX OPERATION BYTES PATH-MTU COUNT DEPTH
 *	instructions tcp ADDRESS ADDRESS OPERATION BYTES 0 COUNT DEPTH
 *
 * OPERATION: send, write, read, atomic. By TCP a message, a message, a request of 16 bytes and its
 * answer, a request of 28 bytes and an answer of 8. DEPTH are started together; the output, for one
 * of them, is the least, the median and the most of COUNT repetitions, and the empty polls.
 * Soft-RoCE of 6.12 works in a kernel thread, to which a program that only polls would leave
 * nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../netns/lib/ctl.h"
#include "lib/end.h"

#define WARM_UP	  20
#define PATIENCE  20 /* empty polls in a row before the processor is given to another thread */
#define DEPTH_MAX 32
#define COUNT_MAX 10000

enum operation { SEND, WRITE, READ, ATOMIC, OPERATIONS };
static const char *const operation_names[OPERATIONS] = { "send", "write", "read", "atomic" };

static uint64_t samples[COUNT_MAX];
static uint64_t empty_polls;

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void report(unsigned int count, unsigned int depth)
{
	qsort(samples, count, sizeof(*samples), compare);
	printf("instructions: min %llu median %llu max %llu empty polls %.1f\n",
	       (unsigned long long)samples[0] / depth,
	       (unsigned long long)samples[count / 2] / depth,
	       (unsigned long long)samples[count - 1] / depth,
	       (double)empty_polls / (count + WARM_UP) / depth);
}

/* ---- verbs ---- */

struct verbs {
	struct end_options o[2];
	struct end e[2];
};

static void verbs_open(struct verbs *v, char *const *names, uint32_t path_mtu)
{
	for (unsigned int i = 0; i < 2; i++) {
		char *comma = strchr(names[i], ',');

		must(comma, "instructions: DEVICE,GID-INDEX");
		*comma = 0;
		v->o[i] = (struct end_options){ .device = names[i], .gid_index = atoi(comma + 1),
						.path_mtu = path_mtu, .psn = 100, .timeout = 20,
						.retry_cnt = 6, .rnr_retry = 7 };
		end_open(&v->e[i], &v->o[i], IBV_QPT_RC);
	}
	for (unsigned int i = 0; i < 2; i++)
		v->e[i].peer = v->e[!i].own;
	end_connect(&v->e[0]);
	end_connect(&v->e[1]);
}

static bool verbs_take(struct end *e, unsigned int *left, bool is_receiver, uint32_t bytes)
{
	struct ibv_wc wc;

	if (!end_poll(e, &wc)) {
		empty_polls++;
		return false;
	}
	must(wc.status == IBV_WC_SUCCESS && *left, "a completion: %s",
	     ibv_wc_status_str(wc.status));
	--*left;
	if (is_receiver)
		end_receive(e, 1, bytes);
	return true;
}

static uint64_t verbs_once(struct verbs *v, enum operation op, uint32_t bytes, unsigned int depth)
{
	static const enum ibv_wr_opcode opcodes[OPERATIONS] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
								IBV_WR_RDMA_READ,
								IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct end_request r = { .opcode = opcodes[op], .len = bytes, .compare_add = 1,
				 .remote = (uint64_t)END_TARGET * END_AREA };
	unsigned int requests = depth, receives = op == SEND ? depth : 0, empty = 0, i;
	uint64_t begin = __rdtsc();

	for (i = 0; i < depth; i++)
		end_post(&v->e[0], &r);
	while (requests || receives) {
		bool some = verbs_take(&v->e[1], &receives, true, bytes);

		some |= verbs_take(&v->e[0], &requests, false, bytes);
		empty = some ? 0 : empty + 1;
		if (empty % PATIENCE == PATIENCE - 1)
			sched_yield();
	}
	return __rdtsc() - begin;
}

static void verbs_run(char *const *names, enum operation op, uint32_t bytes, uint32_t path_mtu,
		      unsigned int count, unsigned int depth)
{
	static struct verbs v;
	unsigned int i;

	verbs_open(&v, names, path_mtu);
	for (i = 0; op == SEND && i < DEPTH_MAX; i++)
		end_receive(&v.e[1], 1, bytes);
	for (i = 0; i < count + WARM_UP; i++) {
		uint64_t n = verbs_once(&v, op, bytes, depth);

		if (i >= WARM_UP)
			samples[i - WARM_UP] = n;
	}
}

/* ---- TCP: two sockets of this process ---- */

static void tcp_open(char *const *names, int fd[2])
{
	struct sockaddr_in at[2] = { { .sin_family = AF_INET }, { .sin_family = AF_INET } };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	socklen_t len = sizeof(at[1]);

	for (unsigned int i = 0; i < 2; i++)
		must(inet_pton(AF_INET, names[i], &at[i].sin_addr) == 1, "address %s", names[i]);
	must(bind(listener, (struct sockaddr *)&at[1], len) == 0 && listen(listener, 1) == 0,
	     "listen: %s", strerror(errno));
	getsockname(listener, (struct sockaddr *)&at[1], &len);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	must(bind(fd[0], (struct sockaddr *)&at[0], len) == 0, "bind: %s", strerror(errno));
	must(connect(fd[0], (struct sockaddr *)&at[1], len) == 0, "connect: %s", strerror(errno));
	fd[1] = accept(listener, NULL, NULL);
	must(fd[1] >= 0, "accept: %s", strerror(errno));
	for (unsigned int i = 0; i < 2; i++) {
		setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		fcntl(fd[i], F_SETFL, O_NONBLOCK);
	}
}

/* Bytes from one socket into the other, by turns where a buffer is full. */
static void tcp_move(int from, int to, size_t bytes)
{
	static uint8_t out[DEPTH_MAX * END_AREA], in[DEPTH_MAX * END_AREA];
	size_t sent = 0, got = 0;
	ssize_t n;

	while (got < bytes) {
		if (sent < bytes) {
			n = send(from, out + sent, bytes - sent, MSG_NOSIGNAL);
			must(n >= 0 || errno == EAGAIN, "send: %s", strerror(errno));
			sent += n > 0 ? n : 0;
		}
		n = recv(to, in + got, bytes - got, 0);
		must(n > 0 || (n < 0 && errno == EAGAIN), "recv: %s", strerror(errno));
		empty_polls += n < 0;
		got += n > 0 ? n : 0;
	}
}

static void tcp_run(char *const *names, enum operation op, uint32_t bytes, unsigned int count,
		    unsigned int depth)
{
	static const size_t requests[OPERATIONS] = { 0, 0, 16, 28 };
	int fd[2];

	tcp_open(names, fd);
	for (unsigned int i = 0; i < count + WARM_UP; i++) {
		uint64_t begin = __rdtsc();

		if (op == SEND || op == WRITE) {
			tcp_move(fd[0], fd[1], (size_t)bytes * depth);
		} else {
			tcp_move(fd[0], fd[1], requests[op] * depth);
			tcp_move(fd[1], fd[0], (size_t)bytes * depth);
		}
		if (i >= WARM_UP)
			samples[i - WARM_UP] = __rdtsc() - begin;
	}
}

int main(int argc, char **argv)
{
	unsigned int op, bytes, mtu, count, depth;

	must(argc == 9, "instructions verbs|tcp A B OPERATION BYTES PATH-MTU COUNT DEPTH");
	for (op = 0; op < OPERATIONS && strcmp(argv[4], operation_names[op]) != 0; op++)
		;
	bytes = atoi(argv[5]), mtu = atoi(argv[6]), count = atoi(argv[7]), depth = atoi(argv[8]);
	must(op < OPERATIONS && bytes <= END_AREA && count && count <= COUNT_MAX && depth &&
		     depth <= DEPTH_MAX,
	     "instructions: an argument is out of range");
	if (strcmp(argv[1], "tcp") == 0)
		tcp_run(argv + 2, op, bytes, count, depth);
	else
		verbs_run(argv + 2, op, bytes, mtu, count, depth);
	report(count, depth);
	return 0;
}
