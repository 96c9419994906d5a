/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Listeners: which of them a request is for, and how many requests wait there. */
#include "internal.h"

static const struct gid no_address;

static bool service_equal(const struct cm_service *a, const struct cm_service *b)
{
	return a->id == b->id && a->families == b->families && gid_equal(&a->address, &b->address);
}

int cm_listen(struct cm *cm, const struct cm_service *service, struct cm_listener **out)
{
	struct cm_listener *unused = NULL;

	if (!service->families || service->families & ~(CM_IPV4 | CM_IPV6))
		return -EINVAL;
	for (u32 i = 0; i < cm->options.listeners; i++) {
		struct cm_listener *l = &cm->listener[i];

		if (!l->used)
			unused = unused ? unused : l;
		else if (service_equal(&l->service, service))
			return -EADDRINUSE;
	}
	if (!unused)
		return -ENOBUFS;
	*unused = (struct cm_listener){ .service = *service, .used = true };
	*out = unused;
	return 0;
}

void cm_unlisten(struct cm *cm, struct cm_listener *l, u64 now_ns)
{
	for (u32 i = 0; i < cm->num_conns; i++) {
		struct cm_conn *c = &cm->conn[i];

		if (c->listener != l)
			continue;
		if (c->events)
			cm_close(cm, c, now_ns);
		else
			conn_taken(c);
	}
	l->used = false;
}

void cm_take(struct cm *cm, struct cm_conn *c)
{
	conn_taken(c);
}

/* How well it fits: 0 not at all. */
static u32 listener_rank(const struct cm_listener *l, u64 service_id, const struct gid *address)
{
	const u8 family = gid_is_ipv4(address) ? CM_IPV4 : CM_IPV6;

	if (!l->used || l->service.id != service_id)
		return 0;
	if (!gid_equal(&l->service.address, &no_address))
		return gid_equal(&l->service.address, address) ? 3 : 0;
	if (!(l->service.families & family))
		return 0;
	return l->service.families == family ? 2 : 1;
}

struct cm_listener *listener_find(struct cm *cm, u64 service_id, const struct gid *address)
{
	struct cm_listener *best = NULL;
	u32 best_rank = 0;

	for (u32 i = 0; i < cm->options.listeners; i++) {
		const u32 rank = listener_rank(&cm->listener[i], service_id, address);

		if (rank > best_rank) {
			best = &cm->listener[i];
			best_rank = rank;
		}
	}
	return best;
}

bool listener_is_full(const struct cm_listener *l)
{
	return l->service.backlog && l->waiting >= l->service.backlog;
}
