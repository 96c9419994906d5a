/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core XROCE_CYCLES=3000 */
/* tier: long long */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * Each object of librdmacm is made and destroyed 10,000 times and leaves nothing (../verbs/held.h).
 * Connections are in stress (no_leak).
 */
#include "../verbs/held.h"
#include "man.h"

static struct rdma_event_channel *channel;

#define TEN_THOUSAND(name, part)                                                                   \
	static bool name(void)                                                                     \
	{                                                                                          \
		MUST(channel = rdma_create_event_channel());                                       \
		MUST(leaves_nothing(name##_cycle, cycles_wanted() / (part)));                      \
		rdma_destroy_event_channel(channel);                                               \
		return true;                                                                       \
	}

static bool event_channels_cycle(int i)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	MUST(ch);
	rdma_destroy_event_channel(ch);
	return true;
}
TEN_THOUSAND(event_channels, 1)

static bool ids_cycle(int i)
{
	static const enum rdma_port_space spaces[] = { RDMA_PS_TCP, RDMA_PS_UDP };
	const int family = i % 3 ? AF_INET : AF_INET6;
	union address at = i % 2 ? own(family, 0) : wild(family, 0);
	struct rdma_cm_id *id;

	MUST_EQ(rdma_create_id(channel, &id, NULL, spaces[i % 2]), 0);
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	if (i % 5 == 0)
		MUST_EQ(rdma_listen(id, 4), 0);
	MUST_EQ(rdma_destroy_id(id), 0);
	/* one with its own channel, for calls that wait */
	MUST_EQ(rdma_create_id(NULL, &id, NULL, spaces[i % 2]), 0);
	MUST_EQ(rdma_destroy_id(id), 0);
	return true;
}
TEN_THOUSAND(ids, 1)

/* The state of a resolution is freed with its id, also its unread event. */
static bool resolutions_cycle(int i)
{
	union address to = own(i % 2 ? AF_INET : AF_INET6, 1);
	struct rdma_cm_id *id;

	MUST_EQ(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_resolve_addr(id, NULL, &to.sa, 2000), 0);
	if (i % 3) {
		MUST(take(channel, id, RDMA_CM_EVENT_ADDR_RESOLVED));
		MUST_EQ(rdma_resolve_route(id, 2000), 0);
		if (i % 3 == 1)
			MUST(take(channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED));
	}
	MUST_EQ(rdma_destroy_id(id), 0);
	MUST(no_event(channel));
	return true;
}
TEN_THOUSAND(resolutions, 1)

/* With a PD and CQs that the library makes, and memory that it registers. */
static bool queue_pairs_cycle(int i)
{
	static struct rdma_cm_id *id;
	char buf[64];
	struct ibv_mr *mr;

	if (i % 50 == 0)
		MUST(id = resolved(channel, RDMA_PS_TCP, own(AF_INET, 1)));
	MUST_EQ(create_qp(id), 0);
	MUST(mr = rdma_reg_msgs(id, buf, sizeof(buf)));
	MUST_EQ(rdma_dereg_mr(mr), 0);
	rdma_destroy_qp(id);
	if (i % 50 == 49)
		MUST_EQ(rdma_destroy_id(id), 0);
	return true;
}
TEN_THOUSAND(queue_pairs, 2)

static bool end_points_cycle(int i)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP,
				       .ai_flags = i % 2 ? RAI_PASSIVE | RAI_NUMERICHOST :
							   RAI_NUMERICHOST };
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	char host[INET_ADDRSTRLEN];
	struct rdma_addrinfo *found;
	union address at = own(AF_INET, 1);
	struct rdma_cm_id *id;

	MUST(inet_ntop(AF_INET, &at.in.sin_addr, host, sizeof(host)));
	MUST_EQ(rdma_getaddrinfo(host, i % 2 ? NULL : "7471", &hints, &found), 0);
	if (i % 5 == 0) {
		MUST_EQ(rdma_create_ep(&id, found, NULL, &attr), 0);
		rdma_destroy_ep(id);
	}
	rdma_freeaddrinfo(found);
	return true;
}
TEN_THOUSAND(end_points, 1)

static bool device_lists_cycle(int i)
{
	struct ibv_context **list;
	int n;

	MUST(list = rdma_get_devices(&n));
	MUST(n > 0);
	rdma_free_devices(list);
	return true;
}
TEN_THOUSAND(device_lists, 1)

const struct test_case man_cases[] = {
	CASE(event_channels),
	CASE(ids),
	CASE(resolutions),
	CASE(queue_pairs),
	CASE(end_points),
	CASE(device_lists),
	{ 0 },
};
