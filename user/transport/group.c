/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "group.h"

#include <stdlib.h>

#include "internal.h"

/* ---- the table ---- */

/* Where a group hangs or would hang. Groups of one sender often differ in their last bytes. */
static struct group **group_place(struct engine_tables *t, const struct gid *address)
{
	const u8 *raw = address->raw;
	struct group **p = &t->group[(raw[15] ^ raw[14] * 7u ^ raw[13] * 31u) % GROUP_BUCKETS];

	while (*p && !gid_equal(&(*p)->address, address))
		p = &(*p)->next;
	return p;
}

static struct group *group_find(const struct engine *e, const struct gid *address)
{
	return *group_place(e->tables, address);
}

/* A QP's place among the members; their number if it is none. */
static u32 group_index(const struct group *g, const struct qp *qp)
{
	u32 i = 0;

	while (i < g->num && g->member[i] != qp)
		i++;
	return i;
}

static struct group *group_found(struct engine_tables *t, struct group **place,
				 const struct gid *address)
{
	struct group *g = t->num_groups < GROUP_MAX ? calloc(1, sizeof(*g)) : NULL;

	if (!g)
		return NULL;
	g->address = *address;
	t->num_groups++;
	return *place = g;
}

/* The member at index i leaves, and the group with its last one: then it returns true. */
static bool group_drop(struct engine_tables *t, struct group **place, u32 i)
{
	struct group *g = *place;

	g->member[i]->groups--;
	g->member[i] = g->member[--g->num];
	if (g->num)
		return false;
	*place = g->next;
	t->num_groups--;
	free(g);
	return true;
}

int group_attach(struct engine *e, struct qp *qp, const struct gid *address, u64 now_ns)
{
	struct engine_tables *t = e->tables;
	struct group **place, *g;

	if (qp->transport != XROCE_UD || !group_is_address(address))
		return -EINVAL;
	place = group_place(t, address);
	g = *place ? *place : group_found(t, place, address);
	if (!g)
		return -ENOMEM;
	if (group_index(g, qp) < g->num)
		return 0;
	if (g->num == GROUP_MEMBERS_MAX)
		return -ENOMEM;
	g->member[g->num++] = qp;
	qp->groups++;
	engine_move_qp(t->engine[0], qp, now_ns);
	return 0;
}

int group_detach(struct engine *e, struct qp *qp, const struct gid *address)
{
	struct group **place = group_place(e->tables, address);
	const u32 i = *place ? group_index(*place, qp) : 0;

	if (!*place || i == (*place)->num)
		return -EINVAL;
	group_drop(e->tables, place, i);
	return 0;
}

void group_detach_all(struct engine *e, struct qp *qp)
{
	for (u32 b = 0; qp->groups && b < GROUP_BUCKETS; b++)
		for (struct group **p = &e->tables->group[b]; *p;) {
			const u32 i = group_index(*p, qp);

			if (i == (*p)->num || !group_drop(e->tables, p, i))
				p = &(*p)->next;
		}
}

u32 group_members(const struct engine *e, const struct gid *address)
{
	const struct group *g = group_find(e, address);

	return g ? g->num : 0;
}

bool group_any(const struct engine *e)
{
	return e->tables->num_groups;
}

bool group_takes_frame(const struct engine *e, const struct rx_frame *frame)
{
	struct packet p;

	return group_any(e) && packet_parse(&p, frame) == XROCE_DROP_none &&
	       p.dest_qpn == ROCE_MULTICAST_QPN && group_find(e, &p.dst);
}

/* ---- a packet ---- */

/* Each member takes its copy or not, for reasons of its own. */
static enum xroce_drop group_deliver(struct engine *e, const struct group *g,
				     const struct packet *p, const struct rx_frame *frame,
				     const struct xroce_rx_cqe *hint, u64 now_ns)
{
	struct copies copies = { .refused = XROCE_DROP_none };
	enum xroce_drop drop;

	for (u32 i = 0; i < g->num; i++) {
		struct qp *qp = g->member[i];

		drop = engine_check_copy(qp, p);
		stat_input(qp, frame->len + frame->frag_len);
		if (drop == XROCE_DROP_none)
			drop = datagram_input(e, qp, p, hint, now_ns);
		if (drop != XROCE_DROP_none)
			stat_drop_of(qp, drop);
		copies_count(e, &copies, drop);
	}
	return copies_end(e, &copies);
}

enum xroce_drop group_input(struct engine *e, const struct packet *p,
			    const struct rx_frame *frame, const struct xroce_rx_cqe *hint,
			    u64 now_ns)
{
	const struct group *g =
		p->dest_qpn == ROCE_MULTICAST_QPN ? group_find(e, &p->dst) : NULL;

	if (!g)
		return XROCE_DROP_qp_unknown;
	if (e->number)
		return XROCE_DROP_not_handed;
	if (OPCODE_TRANSPORT(p->opcode) != XROCE_UD)
		return XROCE_DROP_qp_transport;
	return packet_icrc_ok(p) ? group_deliver(e, g, p, frame, hint, now_ns) : XROCE_DROP_icrc;
}
