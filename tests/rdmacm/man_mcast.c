/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san XROCE_CYCLES=1000 */
/*
 * rdma_join_multicast(3), rdma_join_multicast_ex(3), rdma_leave_multicast(3). Linux has no IPv6
 * groups on RoCE v2 (errno 524), so for these the pages' word stands alone.
 */
#include "man.h"

static struct rdma_event_channel *ch;

static union address group(int family, uint8_t last)
{
	union address a = wild(family, 0);

	if (family == AF_INET6) {
		inet_pton(AF_INET6, "ff0e::4242", &a.in6.sin6_addr);
		a.in6.sin6_addr.s6_addr[15] = last;
	} else {
		inet_pton(AF_INET, "239.7.7.0", &a.in.sin_addr);
		a.in.sin_addr.s_addr |= htonl(last);
	}
	return a;
}

/* An id bound to the device's address, with its QP. */
static struct rdma_cm_id *member(int family)
{
	union address at = own(family, 0);
	struct rdma_cm_id *id;

	if (rdma_create_id(ch, &id, NULL, RDMA_PS_UDP) || rdma_bind_addr(id, &at.sa) ||
	    create_qp(id))
		return NULL;
	return id;
}

static bool member_close(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	MUST_EQ(rdma_destroy_id(id), 0);
	return true;
}

/* The event: address, number and key of the group, and the context of the join. */
static bool join_fields(int family)
{
	union address to = group(family, 1);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;
	const uint8_t *gid;

	MUST((ch = rdma_create_event_channel()) && (id = member(family)));
	MUST_EQ(rdma_join_multicast(id, &to.sa, &to), 0);
	MUST(e = next_event(ch));
	MUST_EQ(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	MUST(e->id == id && !e->status);
	MUST(e->param.ud.private_data == &to);
	MUST_EQ(e->param.ud.qp_num, 0xffffff);
	MUST_EQ(e->param.ud.qkey, RDMA_UDP_QKEY);
	MUST_EQ(e->param.ud.ah_attr.is_global, 1);
	MUST_EQ(e->param.ud.ah_attr.port_num, 1);
	/* RoCE v2: the GID is the IP address, IPv4's mapped */
	gid = e->param.ud.ah_attr.grh.dgid.raw;
	if (family == AF_INET6)
		MUST(!memcmp(gid, &to.in6.sin6_addr, 16));
	else
		MUST(!memcmp(gid + 12, &to.in.sin_addr, 4));
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST_EQ(rdma_leave_multicast(id, &to.sa), 0);
	MUST(no_event(ch));
	MUST(member_close(id));
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(join_fields)

/* Errors: not bound, not joined, no address, no datagram service. */
static bool errors(int family)
{
	union address to = group(family, 2), at = own(family, 0);
	struct rdma_cm_join_mc_attr_ex ex = { 0 };
	struct rdma_cm_id *id;

	MUST((ch = rdma_create_event_channel()) && (id = member(family)));
	MUST_ERR(rdma_leave_multicast(id, &to.sa), EADDRNOTAVAIL);
	MUST_ERR(rdma_join_multicast_ex(id, &ex, NULL), EINVAL);
	ex.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	ex.addr = &to.sa;
	MUST_ERR(rdma_join_multicast_ex(id, &ex, NULL), EINVAL);
	ex.comp_mask |= RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	ex.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	MUST_ERR(rdma_join_multicast_ex(id, &ex, NULL), EINVAL);
	ex.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	ex.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED | 3;
	MUST_ERR(rdma_join_multicast_ex(id, &ex, NULL), ENOTSUP);
	MUST(no_event(ch));
	MUST(member_close(id));
	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	MUST_ERR(rdma_join_multicast(id, &to.sa, NULL), EINVAL);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(errors)

/* rdma_join_multicast_ex() with both kinds of membership. */
static bool extended(int family)
{
	struct rdma_cm_join_mc_attr_ex ex = { .comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							   RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS };
	union address to = group(family, 3);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	MUST((ch = rdma_create_event_channel()) && (id = member(family)));
	ex.addr = &to.sa;
	for (uint32_t flag = 0; flag < 2; flag++) {
		ex.join_flags = flag;
		MUST_EQ(rdma_join_multicast_ex(id, &ex, &ex), 0);
		MUST(e = next_event(ch));
		MUST_EQ(e->event, RDMA_CM_EVENT_MULTICAST_JOIN);
		MUST_EQ(e->status, 0);
		MUST(e->param.ud.private_data == &ex);
		MUST_EQ(rdma_ack_cm_event(e), 0);
		MUST_EQ(rdma_leave_multicast(id, &to.sa), 0);
	}
	MUST(member_close(id));
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(extended)

/* Several groups of an id; the remaining ones are left when it is destroyed. */
static bool several(int family)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	MUST((ch = rdma_create_event_channel()) && (id = member(family)));
	for (uint8_t i = 0; i < 5; i++) {
		union address to = group(family, (uint8_t)(10 + i));

		MUST_EQ(rdma_join_multicast(id, &to.sa, (void *)(uintptr_t)i), 0);
		MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_MULTICAST_JOIN);
		MUST(e->param.ud.private_data == (void *)(uintptr_t)i);
		MUST_EQ(rdma_ack_cm_event(e), 0);
	}
	for (uint8_t i = 1; i < 3; i++) {
		union address to = group(family, (uint8_t)(10 + i));

		MUST_EQ(rdma_leave_multicast(id, &to.sa), 0);
		MUST_ERR(rdma_leave_multicast(id, &to.sa), EADDRNOTAVAIL);
	}
	MUST(member_close(id));
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(several)

/* "Calling this function before a group has been fully joined results in canceling" */
static bool cancel(int family)
{
	union address to = group(family, 20);
	struct rdma_cm_id *id;

	MUST((ch = rdma_create_event_channel()) && (id = member(family)));
	MUST_EQ(rdma_join_multicast(id, &to.sa, NULL), 0);
	MUST_EQ(rdma_leave_multicast(id, &to.sa), 0);
	MUST(no_event(ch));
	MUST_EQ(rdma_join_multicast(id, &to.sa, NULL), 0);
	MUST(member_close(id));
	MUST(no_event(ch));
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(cancel)

/* Without a QP on the id, "the user is responsible for calling ibv_attach_mcast". */
static bool without_qp(int family)
{
	union address to = group(family, 21), at = own(family, 0);
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	MUST(ch = rdma_create_event_channel());
	MUST_EQ(rdma_create_id(ch, &id, NULL, RDMA_PS_UDP), 0);
	MUST_EQ(rdma_bind_addr(id, &at.sa), 0);
	MUST_EQ(rdma_join_multicast(id, &to.sa, NULL), 0);
	MUST((e = next_event(ch)) && e->event == RDMA_CM_EVENT_MULTICAST_JOIN);
	MUST_EQ(rdma_ack_cm_event(e), 0);
	MUST_EQ(rdma_leave_multicast(id, &to.sa), 0);
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}
BOTH(without_qp)

const struct test_case man_cases[] = {
	CASE(join_fields_v4),
	CASE(join_fields_v6),
	CASE(errors_v4),
	CASE(errors_v6),
	CASE(extended_v4),
	CASE(extended_v6),
	CASE(several_v4),
	CASE(several_v6),
	CASE(cancel_v4),
	CASE(cancel_v6),
	CASE(without_qp_v4),
	CASE(without_qp_v6),
	{ 0 },
};
