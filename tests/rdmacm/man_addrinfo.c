/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/* rdma_resolve_addrinfo(3), rdma_query_addrinfo(3), rdma_write_cm_event(3). */
#define _GNU_SOURCE
#include <netdb.h>

#include "man.h"
#include "newer.h"

static char host[INET6_ADDRSTRLEN];

static struct rdma_event_channel *ch;
static struct rdma_cm_id *id;

static bool begin(void)
{
	MUST(!newer_missing);
	MUST(ch = rdma_create_event_channel());
	MUST_EQ(rdma_create_id(ch, &id, &host, RDMA_PS_TCP), 0);
	return true;
}

static bool end(void)
{
	MUST(no_event(ch));
	MUST_EQ(rdma_destroy_id(id), 0);
	rdma_destroy_event_channel(ch);
	return true;
}

/* "similar to rdma_getaddrinfo()": the same result as that one's. */
static bool same_info(const struct rdma_addrinfo *a, const struct rdma_addrinfo *b)
{
	MUST(a->ai_flags == b->ai_flags && a->ai_family == b->ai_family);
	MUST(a->ai_qp_type == b->ai_qp_type && a->ai_port_space == b->ai_port_space);
	MUST(a->ai_src_len == b->ai_src_len && a->ai_dst_len == b->ai_dst_len);
	MUST(!a->ai_src_len || !memcmp(a->ai_src_addr, b->ai_src_addr, a->ai_src_len));
	MUST(!a->ai_dst_len || !memcmp(a->ai_dst_addr, b->ai_dst_addr, a->ai_dst_len));
	return true;
}

/* "generating an event on the RDMA CM event channel", then the result, once. */
static bool answers(int family, const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *want, *got = NULL;

	MUST(begin());
	MUST_EQ(rdma_getaddrinfo(own_text(family, host), "7471", hints, &want), 0);
	MUST_EQ(v_resolve_addrinfo(id, own_text(family, host), "7471", hints), 0);
	MUST(take(ch, id, ADDRINFO_RESOLVED));
	MUST_EQ(v_query_addrinfo(id, &got), 0);
	MUST(same_info(got, want));
	rdma_freeaddrinfo(got);
	rdma_freeaddrinfo(want);
	MUST_EQ(v_query_addrinfo(id, &got), -1);
	MUST_EQ(errno, ENOENT);
	return end();
}

static bool without_hints(int family)
{
	return answers(family, NULL);
}
BOTH(without_hints)

/* Hints with a source address, of which the call keeps copies. */
static bool with_hints(int family)
{
	union address from = own(family, 0);
	struct rdma_addrinfo hints = { .ai_flags = FLAG_DNS | RAI_NUMERICHOST,
				       .ai_port_space = RDMA_PS_UDP,
				       .ai_src_addr = &from.sa,
				       .ai_src_len = sizeof(from.in6) };

	return answers(family, &hints);
}
BOTH(with_hints)

static bool passive(int family)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_family = family,
				       .ai_qp_type = IBV_QPT_RC };

	return answers(family, &hints);
}
BOTH(passive)

/* "RDMA_CM_EVENT_ADDRINFO_ERROR (on failure)"; then the id can ask again. */
static bool failures(void)
{
	struct rdma_addrinfo numeric = { .ai_flags = RAI_NUMERICHOST }, *got;

	MUST(begin());
	for (int i = 0; i < 2; i++) {
		MUST_EQ(v_resolve_addrinfo(id, "no-number", "7471", &numeric), 0);
		MUST(take_status(ch, id, ADDRINFO_ERROR, -ENOENT));
		MUST_EQ(v_query_addrinfo(id, &got), -1);
		MUST_EQ(errno, ENOENT);
	}
	MUST_EQ(v_resolve_addrinfo(id, own_text(AF_INET, host), "7471", NULL), 0);
	MUST(take(ch, id, ADDRINFO_RESOLVED));
	return end(); /* with the result, which was never queried */
}

/* "no event will be generated on the event channel" */
static bool refusals(void)
{
	struct rdma_addrinfo sa = { .ai_flags = FLAG_SA }, *got;
	struct rdma_addrinfo both = { .ai_flags = FLAG_SA | FLAG_DNS };

	MUST(begin());
	MUST_EQ(v_resolve_addrinfo(id, NULL, NULL, NULL), -1);
	MUST_EQ(errno, EINVAL);
	MUST_EQ(v_resolve_addrinfo(id, NULL, "1", &sa), -1);
	MUST_EQ(errno, EOPNOTSUPP);
	MUST_EQ(v_resolve_addrinfo(id, NULL, "1", &both), -1);
	MUST_EQ(errno, EOPNOTSUPP);
	MUST_EQ(v_query_addrinfo(id, NULL), -1);
	MUST_EQ(errno, EINVAL);
	/* rdma_getaddrinfo(3): "Non-Infiniband ports will be skipped." */
	MUST_EQ(rdma_getaddrinfo(NULL, "1", &sa, &got), -1);
	MUST_EQ(errno, ENOENT);
	MUST_EQ(rdma_getaddrinfo(own_text(AF_INET, host), "1", &sa, &got), -1);
	MUST_EQ(errno, EOPNOTSUPP);
	MUST_EQ(rdma_getaddrinfo(NULL, "1", &both, &got), -1);
	MUST_EQ(errno, EOPNOTSUPP);
	return end();
}

/* One question at a time, until its result is queried. */
static bool busy(void)
{
	struct rdma_addrinfo *got;

	MUST(begin());
	MUST_EQ(v_resolve_addrinfo(id, own_text(AF_INET, host), "7471", NULL), 0);
	MUST_EQ(v_resolve_addrinfo(id, host, "7471", NULL), -1);
	MUST_EQ(errno, EBUSY);
	MUST(take(ch, id, ADDRINFO_RESOLVED));
	MUST_EQ(v_resolve_addrinfo(id, host, "7471", NULL), -1);
	MUST_EQ(errno, EBUSY);
	MUST_EQ(v_query_addrinfo(id, &got), 0);
	rdma_freeaddrinfo(got);
	MUST_EQ(v_resolve_addrinfo(id, host, "7472", NULL), 0);
	MUST(take(ch, id, ADDRINFO_RESOLVED));
	MUST_EQ(v_query_addrinfo(id, &got), 0);
	MUST_EQ(port_of(got->ai_dst_addr), 7472);
	rdma_freeaddrinfo(got);
	return end();
}

/* An id that is destroyed with its question running. */
static bool destroyed(void)
{
	for (int i = 0; i < 200; i++) {
		MUST(begin());
		MUST_EQ(v_resolve_addrinfo(id, own_text(AF_INET, host), "7471", NULL), 0);
		MUST_EQ(rdma_destroy_id(id), 0);
		rdma_destroy_event_channel(ch);
	}
	return true;
}

/* A synchronous id: the result is there on return. */
static bool synchronous(void)
{
	struct rdma_addrinfo numeric = { .ai_flags = RAI_NUMERICHOST }, *got;

	MUST_EQ(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	MUST_EQ(v_resolve_addrinfo(id, "no-number", "7471", &numeric), -1);
	MUST_EQ(errno, ENOENT);
	MUST_EQ(v_resolve_addrinfo(id, own_text(AF_INET, host), "7471", NULL), 0);
	MUST_EQ(v_query_addrinfo(id, &got), 0);
	MUST_EQ(port_of(got->ai_dst_addr), 7471);
	rdma_freeaddrinfo(got);
	MUST_EQ(rdma_destroy_id(id), 0);
	return true;
}

/* ---- events of the program ---- */

/* "status: The status value", "arg: A user-specified value": both arrive, in order. */
static bool user_events(void)
{
	struct rdma_cm_event *ev;
	uint64_t arg;

	MUST(begin());
	for (uint64_t i = 0; i < 3; i++)
		MUST_EQ(v_write_cm_event(id, USER, (int)i - 1, UINT64_MAX - i), 0);
	for (uint64_t i = 0; i < 3; i++) {
		MUST(ev = next_event(ch));
		MUST_EQ(ev->event, USER);
		MUST(ev->id == id && !ev->listen_id);
		MUST_EQ(ev->status, (int)i - 1);
		memcpy(&arg, &ev->param, sizeof(arg));
		MUST_EQ(arg, UINT64_MAX - i);
		MUST_EQ(rdma_ack_cm_event(ev), 0);
	}
	return end();
}

/* "This should be set to RDMA_CM_EVENT_USER." */
static bool other_events(void)
{
	MUST(begin());
	for (int type = -1; type <= (int)INTERNAL + 1; type++)
		if (type != (int)USER) {
			MUST_EQ(v_write_cm_event(id, type, 0, 0), -1);
			MUST_EQ(errno, EINVAL);
		}
	return end();
}

static void *writes(void *arg)
{
	return v_write_cm_event(arg, USER, 0, 1) ? "failed" : NULL;
}

/* "waking a thread blocked on the event channel" */
static bool wakes(void)
{
	pthread_t thread;
	void *result;

	MUST(begin());
	MUST(!pthread_create(&thread, NULL, writes, id));
	MUST(take(ch, id, USER));
	MUST(!pthread_join(thread, &result) && !result);
	return end();
}

static bool names(void)
{
	return !strcmp(rdma_event_str(ADDRINFO_RESOLVED), "RDMA_CM_EVENT_ADDRINFO_RESOLVED") &&
	       !strcmp(rdma_event_str(ADDRINFO_ERROR), "RDMA_CM_EVENT_ADDRINFO_ERROR") &&
	       !strcmp(rdma_event_str(USER), "RDMA_CM_EVENT_USER") &&
	       !strcmp(rdma_event_str(INTERNAL), "UNKNOWN EVENT");
}

const struct test_case man_cases[] = {
	CASE(without_hints_v4),
	CASE(without_hints_v6),
	CASE(with_hints_v4),
	CASE(with_hints_v6),
	CASE(passive_v4),
	CASE(passive_v6),
	CASE(failures),
	CASE(refusals),
	CASE(busy),
	CASE(destroyed),
	CASE(synchronous),
	CASE(user_events),
	CASE(other_events),
	CASE(wakes),
	CASE(names),
	{ 0 },
};
