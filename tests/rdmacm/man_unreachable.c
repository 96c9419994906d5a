/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: long */
/*
 * RDMA_CM_EVENT_UNREACHABLE, "the remote server is not reachable": of both services, to an address
 * whose packets reach no host. It takes the CM's 15 repetitions, a minute or more: so all of it at
 * once, and no other test waits for it.
 */
#include "man.h"

#define PATIENCE_MS (150 * 1000)

static bool unreachable(void)
{
	static const struct {
		int family;
		enum rdma_port_space ps;
	} row[] = { { AF_INET, RDMA_PS_TCP },
		    { AF_INET6, RDMA_PS_TCP },
		    { AF_INET, RDMA_PS_UDP },
		    { AF_INET6, RDMA_PS_UDP } };
	enum { N = sizeof(row) / sizeof(*row) };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id[N], *idle;
	bool seen[N] = { false };
	struct link l = { 0 };
	struct rdma_cm_event *e;

	MUST(ch);
	for (int i = 0; i < N; i++) {
		MUST(id[i] = resolved(ch, row[i].ps, other(row[i].family, SILENT, 7471)));
		MUST_EQ(create_qp(id[i]), 0);
		MUST_EQ(rdma_connect(id[i], NULL), 0);
	}
	/* One destroyed in that time is freed at once. */
	MUST(idle = resolved(ch, RDMA_PS_TCP, other(AF_INET, SILENT, 7471)));
	MUST_EQ(create_qp(idle), 0);
	MUST_EQ(rdma_connect(idle, NULL), 0);
	rdma_destroy_qp(idle);
	MUST_EQ(rdma_destroy_id(idle), 0);
	/* Others connect. */
	MUST(link_up(&l, AF_INET) && link_close(&l));
	for (int n = 0; n < N; n++) {
		MUST(readable(ch->fd, PATIENCE_MS));
		MUST_EQ(rdma_get_cm_event(ch, &e), 0);
		MUST_EQ(e->event, RDMA_CM_EVENT_UNREACHABLE);
		MUST_EQ(e->status, -ETIMEDOUT);
		for (int i = 0; i < N; i++) {
			MUST(e->id != id[i] || !seen[i]);
			seen[i] |= e->id == id[i];
		}
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	for (int i = 0; i < N; i++) {
		MUST(seen[i]);
		rdma_destroy_qp(id[i]);
		MUST_EQ(rdma_destroy_id(id[i]), 0);
	}
	rdma_destroy_event_channel(ch);
	return true;
}

const struct test_case man_cases[] = {
	CASE(unreachable),
	{ 0 },
};
