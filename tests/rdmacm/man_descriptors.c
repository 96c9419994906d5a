/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/*
 * How many descriptors each object takes, to the number (docs/limits.md has them), and how many
 * endpoints of rdma_create_ep() a process has at `ulimit -n 1024`: 400, where rdma-core has 339.
 */
#include <sys/resource.h>
#include <sys/wait.h>

#include "man.h"

#define LIMIT	  1024
#define ENDPOINTS 400
#define RINGS	  (LIMIT / 32) /* channels that have a ring each; */
#define SYNC_OWN  (LIMIT / 16)

static bool limit_descriptors(struct rlimit *before)
{
	struct rlimit limit;

	MUST_EQ(getrlimit(RLIMIT_NOFILE, before), 0);
	limit = (struct rlimit){ LIMIT, before->rlim_max };
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return true;
}

/* ---- endpoints ---- */

static struct rdma_cm_id *end[ENDPOINTS];

static bool endpoint(struct rdma_cm_id **id, uint16_t port, int flags)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_addrinfo *ai = own_info(AF_INET, port, flags, RDMA_PS_TCP, 0);
	int err;

	MUST(ai);
	err = rdma_create_ep(id, ai, NULL, &attr);
	rdma_freeaddrinfo(ai);
	MUST_EQ(err, 0);
	return true;
}

static bool listening(struct rdma_cm_id **listen)
{
	MUST(endpoint(listen, 0, RAI_PASSIVE));
	MUST_EQ(rdma_listen(*listen, 16), 0);
	return true;
}

static bool accept_all(struct rdma_cm_id *listen, int n)
{
	for (int i = 0; i < n; i++) {
		MUST_EQ(rdma_get_request(listen, &end[i]), 0);
		MUST_EQ(rdma_accept(end[i], NULL), 0);
		/* what an endpoint has: descriptors that can be waited for */
		MUST(end[i]->recv_cq_channel->fd >= 0 && end[i]->send_cq_channel->fd >= 0);
		MUST(end[i]->channel->fd >= 0);
	}
	return true;
}

static void *accepting(void *listen)
{
	return accept_all(listen, ENDPOINTS / 2) ? listen : NULL;
}

static bool connect_all(struct rdma_cm_id **to, int n, uint16_t port)
{
	for (int i = 0; i < n; i++) {
		MUST(endpoint(&to[i], port, 0));
		MUST_EQ(rdma_connect(to[i], NULL), 0);
	}
	return true;
}

static bool destroy_all(struct rdma_cm_id **of, int n)
{
	for (int i = 0; i < n; i++)
		rdma_destroy_ep(of[i]);
	return true;
}

static bool accepts(int out, int in)
{
	struct rdma_cm_id *listen;
	struct rlimit before;
	uint16_t port;
	char go;

	MUST(limit_descriptors(&before) && listening(&listen));
	port = ntohs(rdma_get_src_port(listen));
	MUST_EQ(write(out, &port, sizeof(port)), sizeof(port));
	MUST(accept_all(listen, ENDPOINTS));
	MUST_EQ(write(out, &port, sizeof(port)), sizeof(port));
	MUST_EQ(read(in, &go, 1), 0);
	MUST(destroy_all(end, ENDPOINTS));
	rdma_destroy_ep(listen);
	return true;
}

/* As many in each process, connected to the other's. */
static bool endpoints_of_two_processes(void)
{
	int to[2], from[2], status;
	struct rlimit before;
	uint16_t port;
	pid_t child;

	MUST(!pipe(to) && !pipe(from));
	child = fork();
	MUST(child >= 0);
	if (!child) {
		close(to[1]);
		_exit(accepts(from[1], to[0]) ? 0 : 1);
	}
	close(from[1]);
	close(to[0]);
	MUST_EQ(read(from[0], &port, sizeof(port)), sizeof(port));
	MUST(limit_descriptors(&before) && connect_all(end, ENDPOINTS, port));
	MUST_EQ(read(from[0], &port, sizeof(port)), sizeof(port));
	close(to[1]);
	MUST(destroy_all(end, ENDPOINTS));
	MUST_EQ(waitpid(child, &status, 0), child);
	MUST_EQ(status, 0);
	close(from[0]);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	return true;
}

/* Both ends of each connection are this process's. */
static bool endpoints_of_one_process(void)
{
	struct rdma_cm_id *listen;
	struct rlimit before;
	pthread_t thread;
	void *done;

	MUST(limit_descriptors(&before) && listening(&listen));
	MUST_EQ(pthread_create(&thread, NULL, accepting, listen), 0);
	MUST(connect_all(end + ENDPOINTS / 2, ENDPOINTS / 2,
			 ntohs(rdma_get_src_port(listen))));
	pthread_join(thread, &done);
	MUST(done);
	printf("# %d descriptors of %d with %d endpoints\n", open_fds(), LIMIT, ENDPOINTS);
	MUST(destroy_all(end, ENDPOINTS));
	rdma_destroy_ep(listen);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	return true;
}

/* ---- objects ---- */

static int counted;

/* The growth, or decrease, since the last call. */
static bool took(const char *what, int want)
{
	const int before = counted;

	counted = open_fds();
	if (counted - before == want)
		return true;
	printf("# %s: %d descriptors, not %d\n", what, counted - before, want);
	return false;
}

/* The first QP, which attaches the device to its interface; alone there. */
#define CONTEXT	   7
#define PORT	   20

static bool objects_to_the_number(void)
{
	enum { N = RINGS + 8 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_comp_channel *ch[N];
	struct rdma_event_channel *events;
	struct ibv_context *verbs[2];
	struct ibv_device **list;
	struct rlimit before;
	struct rdma_cm_id *id;
	struct ibv_cq *cq[N];
	struct ibv_qp *qp[N];
	struct ibv_pd *pd;
	bool good = true;

	MUST(limit_descriptors(&before));
	counted = open_fds();
	MUST(list = ibv_get_device_list(NULL));
	good &= took("a list of devices", 0);
	MUST(verbs[0] = ibv_open_device(list[0]));
	good &= took("the first context", CONTEXT);
	MUST(verbs[1] = ibv_open_device(list[0]));
	good &= took("a second context", 4);
	MUST(pd = ibv_alloc_pd(verbs[0]));
	MUST(cq[0] = ibv_create_cq(verbs[0], 4, NULL, NULL, 0));
	good &= took("a PD and a CQ", 0);
	init.send_cq = init.recv_cq = cq[0];
	MUST(qp[0] = ibv_create_qp(pd, &init));
	good &= took("the port", PORT);
	MUST(!ibv_destroy_qp(qp[0]) && !ibv_destroy_cq(cq[0]));
	good &= took("ends of a QP and a CQ", 0);
	for (int i = 0; i < N; i++) {
		MUST(ch[i] = ibv_create_comp_channel(verbs[0]));
		good &= took("a completion channel", i < RINGS ? 2 : 1);
		MUST(cq[i] = ibv_create_cq(verbs[0], 4, NULL, ch[i], 0));
		init.send_cq = init.recv_cq = cq[i];
		MUST(qp[i] = ibv_create_qp(pd, &init));
		good &= took("its first CQ, with a QP", i < RINGS);
	}
	for (int i = 0; i < N; i++)
		MUST(!ibv_destroy_qp(qp[i]) && !ibv_destroy_cq(cq[i]) &&
		     !ibv_destroy_comp_channel(ch[i]));
	good &= took("ends of channels", -RINGS - N);
	MUST(events = rdma_create_event_channel());
	good &= took("an event channel", 1);
	MUST_EQ(rdma_create_id(events, &id, NULL, RDMA_PS_TCP), 0);
	good &= took("an id", 0);
	MUST(!rdma_destroy_id(id));
	rdma_destroy_event_channel(events);
	counted = open_fds();
	MUST(!ibv_dealloc_pd(pd) && !ibv_close_device(verbs[0]) && !ibv_close_device(verbs[1]));
	good &= took("the end", -PORT - RINGS - CONTEXT - 4);
	ibv_free_device_list(list);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	return good;
}

/* Synchronous ids have a channel each; of many the channels share a descriptor. */
static bool synchronous_ids(void)
{
	static struct rdma_cm_id *id[2 * SYNC_OWN];
	struct rlimit before;
	bool good = true;

	MUST(limit_descriptors(&before));
	counted = open_fds();
	for (int i = 0; i < 2 * SYNC_OWN; i++) {
		MUST_EQ(rdma_create_id(NULL, &id[i], NULL, RDMA_PS_TCP), 0);
		good &= took("a synchronous id", i <= SYNC_OWN);
		MUST(id[i]->channel->fd >= 0);
	}
	MUST_EQ(id[SYNC_OWN]->channel->fd, id[2 * SYNC_OWN - 1]->channel->fd);
	for (int i = 0; i < 2 * SYNC_OWN; i++)
		MUST_EQ(rdma_destroy_id(id[i]), 0);
	good &= took("their ends", -SYNC_OWN - 1);
	MUST_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
	return good;
}

const struct test_case man_cases[] = {
	CASE(objects_to_the_number),
	CASE(endpoints_of_two_processes),
	CASE(synchronous_ids),
	CASE(endpoints_of_one_process),
	{ 0 },
};
