/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: long */
/*
 * RLIMIT_NOFILE reached in the middle of each call, with each number of free descriptors: the call
 * fails with EMFILE and leaves nothing; with more descriptors it works, in the same process.
 */
#include <fcntl.h>
#include <rdma/rsocket.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "man.h"

/* On failure of a call of rdma_cm's convention, sets err to errno and goes to out. */
#define TRY(call)                                                                                  \
	do {                                                                                       \
		errno = 0;                                                                         \
		if (call) {                                                                        \
			err = errno;                                                               \
			goto out;                                                                  \
		}                                                                                  \
	} while (0)

/* Acknowledges the next event, which must be of this type; else returns its error. */
static int event_error(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e = next_event(ch);
	int err = -1;

	if (!e)
		return -1;
	if (e->event == type)
		err = 0;
	else if (e->status < 0)
		err = -e->status;
	else
		printf("# %s, status %d\n", rdma_event_str(e->event), e->status);
	rdma_ack_cm_event(e);
	return err;
}

#define EVENT(ch, type)                                                                            \
	do {                                                                                       \
		if ((err = event_error(ch, type)))                                                 \
			goto out;                                                                  \
	} while (0)

static int make_connection(void)
{
	union address at = own(AF_INET, 0);
	struct link l = { 0 };
	int err = 0;

	for (int i = 0; i < 2; i++)
		TRY(!(l.ch[i] = rdma_create_event_channel()));
	TRY(rdma_create_id(l.ch[1], &l.listen, NULL, RDMA_PS_TCP));
	TRY(rdma_bind_addr(l.listen, &at.sa));
	TRY(rdma_listen(l.listen, 4));
	at = own(AF_INET, ntohs(rdma_get_src_port(l.listen)));
	TRY(rdma_create_id(l.ch[0], &l.id[0], NULL, RDMA_PS_TCP));
	TRY(rdma_resolve_addr(l.id[0], NULL, &at.sa, WAIT_MS));
	EVENT(l.ch[0], RDMA_CM_EVENT_ADDR_RESOLVED);
	TRY(rdma_resolve_route(l.id[0], WAIT_MS));
	EVENT(l.ch[0], RDMA_CM_EVENT_ROUTE_RESOLVED);
	TRY(create_qp(l.id[0]));
	TRY(!link_request(&l, NULL));
	TRY(create_qp(l.id[1]));
	l.own_qp = true;
	TRY(!link_accept(&l, NULL));
	TRY(!link_established(&l));
out:
	return link_close(&l) ? err : -2;
}

/* Makes the endpoints of a client and of a listening server. */
static int make_endpoints(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_addrinfo *ai[2] = { own_info(AF_INET, 0, RAI_PASSIVE, RDMA_PS_TCP, 0),
					own_info(AF_INET, 7471, 0, RDMA_PS_TCP, 0) };
	struct rdma_cm_id *id[2] = { 0 };
	int err = 0;

	for (int i = 0; i < 2; i++)
		TRY(!ai[i]);
	TRY(rdma_create_ep(&id[0], ai[0], NULL, &attr));
	TRY(rdma_listen(id[0], 4));
	TRY(rdma_create_ep(&id[1], ai[1], NULL, &attr));
out:
	for (int i = 0; i < 2; i++) {
		if (id[i])
			rdma_destroy_ep(id[i]);
		if (ai[i])
			rdma_freeaddrinfo(ai[i]);
	}
	return err;
}

static int make_streams(void)
{
	int listen = -1, client = -1, server = -1, err = 0;
	union address at = own(AF_INET, 0);
	socklen_t n = sizeof(at);
	struct pollfd p;

	TRY((listen = rsocket(AF_INET, SOCK_STREAM, 0)) < 0);
	TRY(rbind(listen, &at.sa, sizeof(at.in)));
	TRY(rlisten(listen, 4));
	TRY(rgetsockname(listen, &at.sa, &n));
	TRY((client = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) < 0);
	TRY(rconnect(client, &at.sa, sizeof(at.in)) && errno != EINPROGRESS);
	/* the listener gets a connection, or the client learns of the failure */
	do {
		p = (struct pollfd){ .fd = listen, .events = POLLIN };
		TRY(rpoll(&p, 1, 10) < 0);
		if (p.revents)
			break;
		p = (struct pollfd){ .fd = client, .events = POLLOUT };
		TRY(rpoll(&p, 1, 0) < 0);
	} while (!p.revents);
	if (p.fd == client) {
		n = sizeof(err);
		if (rgetsockopt(client, SOL_SOCKET, SO_ERROR, &err, &n) || !err)
			err = -3;
		/* the other end, in the same process, had no descriptor either */
		if (err == ECONNREFUSED || err == ECONNRESET)
			err = EMFILE;
		goto out;
	}
	TRY((server = raccept(listen, NULL, NULL)) < 0);
	p = (struct pollfd){ .fd = client, .events = POLLOUT };
	TRY(rpoll(&p, 1, WAIT_MS) != 1);
	TRY(rsend(client, "7", 1, 0) != 1);
	TRY(rrecv(server, &(char){ 0 }, 1, 0) != 1);
out:
	for (int i = 0; i < 3; i++) {
		const int fd = (int[]){ client, server, listen }[i];

		if (fd >= 0 && rclose(fd) && !err)
			err = errno;
	}
	return err;
}

/* Calls with `room` free descriptors under RLIMIT_NOFILE. */
static int with_room_for(int room, int (*call)(void))
{
	enum { MOST = 512 };
	int used[MOST], n = 0, err;
	struct rlimit before, few;

	getrlimit(RLIMIT_NOFILE, &before);
	few = (struct rlimit){ MOST, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	while (n < MOST && (used[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	for (int i = 0; i < room && n; i++)
		close(used[--n]);
	err = call();
	while (n)
		close(used[--n]);
	setrlimit(RLIMIT_NOFILE, &before);
	return err;
}

/*
 * With each number of free descriptors: EMFILE, and everything made is destroyed; then it works. In
 * the first round no device is open yet.
 */
static bool descriptors_end(int (*make)(void))
{
	int before = -1, err, worked = 0;

	for (int round = 0; round < 2; round++) {
		err = -1;
		for (int room = 0; room < 120 && err; room++) {
			err = with_room_for(room, make);
			if (err && err != EMFILE)
				printf("# room for %d: errno %d (%s)\n", room, err, strerror(err));
			MUST(!err || err == EMFILE);
			MUST(round == 0 || count_becomes(open_fds, before));
			worked = room;
		}
		MUST_EQ(err, 0);
		printf("# descriptors needed: %d\n", worked);
		MUST_EQ(make(), 0);
		if (round == 0) {
			usleep(100000);
			before = open_fds();
		}
	}
	for (int i = 0; i < 100; i++)
		MUST(with_room_for(i % worked, make) == EMFILE);
	MUST_EQ(make(), 0);
	return count_becomes(open_fds, before);
}

static bool in_a_fresh_child(int (*make)(void))
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	MUST(child >= 0);
	if (!child) {
		const bool good = descriptors_end(make);

		fflush(stdout);
		_exit(!good);
	}
	MUST_EQ(waitpid(child, &status, 0), child);
	MUST_EQ(status, 0);
	return true;
}

static bool connections(void)
{
	return in_a_fresh_child(make_connection);
}

static bool endpoints(void)
{
	return in_a_fresh_child(make_endpoints);
}

static bool streams(void)
{
	return in_a_fresh_child(make_streams);
}

const struct test_case man_cases[] = {
	/* one process each, as no library call has been made in this one */
	CASE(connections),
	CASE(endpoints),
	CASE(streams),
	{ 0 },
};
