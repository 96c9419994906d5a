/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: long san */
/*
 * Two CMs and a whole connection between them: connect, transfer, disconnect, in every possible
 * way, with every mask of lost MADs among the first ones, and with masks of MADs that are lost,
 * duplicate or late. Both ends must see the same, each event once, and nothing may be left.
 *
 * XROCE_CM_MASK=HOW:DROP[:DUPLICATE:LATE] runs one alone.
 */
#include "../unit/unit.h"

#include "net.h"

#define SERVICE cm_service_id(CM_PS_TCP, 7174)
#define LOST_MADS 13 /* all masks of this many */
#define MIXED	  20000

enum how {
	ACTIVE_ENDS,
	PASSIVE_ENDS,
	BOTH_END,
	ENDS_AT_ONCE, /* the active side, before its RTU has arrived */
	REJECTED,
	ACTIVE_REJECTS,
	PASSIVE_LEAVES, /* after its REP */
	ACTIVE_LEAVES,	/* after its REQ */
	DELAYED,
	SIDR,
	SIDR_REJECTED,
	HOWS
};
static const char *const how_name[HOWS] = {
	"active_ends",	 "passive_ends",   "both_end",	    "ends_at_once", "rejected",
	"active_rejects", "passive_leaves", "active_leaves", "delayed",	    "sidr",
	"sidr_rejected",
};

enum { ACTIVE, PASSIVE };

struct end {
	struct process *process;
	struct cm_conn *conn;
	u32 seen[CM_EVENT_SIDR_REPLY + 1];
	u32 qpn;
};

struct run {
	struct net *net;
	enum how how;
	struct end end[2];
	bool transferred;
};

static void say(u8 *data, u32 len, u8 first)
{
	for (u32 i = 0; i < len; i++)
		data[i] = (u8)(first + i);
}

static void heard(struct run *r, const struct cm_event *e, u32 len, u8 first)
{
	u8 data[CM_DATA_MAX];

	say(data, len, first);
	net_check(r->net, !memcmp(e->mad.data, data, len));
}

static void end_close(struct run *r, struct end *e)
{
	if (!e->conn)
		return;
	cm_close(e->process->cm, e->conn, r->net->now_ns);
	e->conn = NULL;
}

/* ---- what both do when connected ---- */

static void end_disconnect(struct run *r, struct end *e)
{
	u8 data[220];

	say(data, sizeof(data), 40);
	if (e->conn && cm_conn_state(e->conn) == CM_ESTABLISHED)
		net_check(r->net, !cm_disconnect(e->process->cm, e->conn, data, sizeof(data),
						 r->net->now_ns));
	net_pump(e->process);
}

static void transfer(struct net *net, void *arg)
{
	struct run *r = arg;
	struct end *p = &r->end[PASSIVE];
	enum cm_state state = p->conn ? cm_conn_state(p->conn) : CM_IDLE;

	/* what a reliable connection does: it repeats the packet until the other QP takes it */
	if (state == CM_REP_SENT) {
		net_check(net, !cm_establish(p->process->cm, p->conn, net->now_ns));
		net_pump(p->process);
	}
	net_check(net, state == CM_REP_SENT || state == CM_ESTABLISHED);
	r->transferred = true;
	if (r->how != PASSIVE_ENDS)
		end_disconnect(r, &r->end[ACTIVE]);
	if (r->how == PASSIVE_ENDS || r->how == BOTH_END)
		end_disconnect(r, &r->end[PASSIVE]);
}

static void leave(struct net *net, void *arg)
{
	struct end *e = arg;

	if (!e->conn)
		return;
	cm_close(e->process->cm, e->conn, net->now_ns);
	e->conn = NULL;
	net_pump(e->process);
}

/* A program whose peer has left without notice finds out by its own disconnect. */
static void end_at_last(struct net *net, void *arg)
{
	end_disconnect(arg, &((struct run *)arg)->end[ACTIVE]);
}

/* ---- active side ---- */

static void ready(struct net *net, void *arg)
{
	struct run *r = arg;
	struct end *a = &r->end[ACTIVE];
	u8 data[224];

	if (!a->conn || cm_conn_state(a->conn) != CM_REP_RCVD)
		return;
	say(data, sizeof(data), 30);
	net_check(net, !cm_ready(a->process->cm, a->conn, data, sizeof(data), net->now_ns));
	net_pump(a->process);
	if (r->how == ENDS_AT_ONCE)
		end_disconnect(r, a);
	else if (r->how == PASSIVE_LEAVES)
		net_at(net, net->now_ns + 200 * NSEC_PER_SEC, end_at_last, r);
	else
		net_at(net, net->now_ns + NSEC_PER_MSEC, transfer, r);
}

static void active_replied(struct run *r, const struct cm_event *e)
{
	struct end *a = &r->end[ACTIVE];

	heard(r, e, 196, 20);
	net_check(r->net, e->mad.rep.qpn == r->end[PASSIVE].qpn);
	net_check(r->net, e->mad.rep.responder_resources == 3);
	switch (r->how) {
	case ACTIVE_REJECTS:
		net_check(r->net, !cm_reject(a->process->cm, a->conn,
					     &(struct cm_rej){ .reason = CM_REJ_NO_RESOURCES },
					     NULL, 0, r->net->now_ns));
		end_close(r, a);
		break;
	case DELAYED:
		net_check(r->net, !cm_delay(a->process->cm, a->conn, 20, NULL, 0, r->net->now_ns));
		net_at(r->net, r->net->now_ns + 3 * NSEC_PER_SEC, ready, r);
		break;
	default:
		ready(r->net, r);
		break;
	}
}

static void active_event(struct run *r, const struct cm_event *e)
{
	struct end *a = &r->end[ACTIVE];

	net_check(r->net, e->context == a && e->conn == a->conn);
	switch (e->kind) {
	case CM_EVENT_REPLY:
		active_replied(r, e);
		break;
	case CM_EVENT_REJECTED:
		net_check(r->net, r->how == REJECTED || r->how == PASSIVE_LEAVES);
		net_check(r->net, e->mad.rej.reason == CM_REJ_CONSUMER_DEFINED);
		if (r->how == REJECTED)
			heard(r, e, 148, 50);
		if (cm_conn_state(a->conn) == CM_IDLE)
			end_close(r, a);
		break;
	case CM_EVENT_SIDR_REPLY:
		net_check(r->net, e->mad.sidr_rep.status ==
					  (r->how == SIDR ? CM_SIDR_VALID : CM_SIDR_NO_QP));
		net_check(r->net, e->mad.sidr_rep.qpn == 0x77 && e->mad.sidr_rep.qkey == 0x1234567);
		heard(r, e, 136, 60);
		end_close(r, a);
		break;
	default:
		break;
	}
}

static void active_begin(struct run *r)
{
	struct end *a = &r->end[ACTIVE];
	const struct cm_path path = net_path(0, 1, false);
	const struct cm_ip_header ip = { 0x8001, path.local, path.remote };
	const struct cm_req req = {
		.service_id = SERVICE,
		.qpn = a->qpn,
		.starting_psn = 5,
		.responder_resources = 1,
		.initiator_depth = 2,
		.remote_response_timeout = 18,
		.local_response_timeout = 18,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.pkey = 0xffff,
		.mtu = 3,
		.max_retries = 15,
		.primary.ack_timeout = 20,
	};
	const struct cm_sidr_req sidr = { .service_id = SERVICE, .pkey = 0xffff };
	u8 data[216];
	int err;

	cm_ip_header_put(data, &ip);
	say(data + CM_IP_HEADER_BYTES, sizeof(data) - CM_IP_HEADER_BYTES, 10);
	if (r->how == SIDR || r->how == SIDR_REJECTED)
		err = cm_sidr_request(a->process->cm, &path, &sidr, &(struct cm_times){ 18, 15 },
				      data, 216, a, r->net->now_ns, &a->conn);
	else
		err = cm_connect(a->process->cm, &path, &req, data, 92, a, r->net->now_ns,
				 &a->conn);
	net_check(r->net, !err);
	net_pump(a->process);
	if (r->how == ACTIVE_LEAVES)
		net_at(r->net, r->net->now_ns + 15 * NSEC_PER_USEC, leave, a);
}

/* ---- passive side ---- */

static void accept_it(struct net *net, void *arg)
{
	struct run *r = arg;
	struct end *p = &r->end[PASSIVE];
	const struct cm_rep rep = { .qpn = p->qpn, .starting_psn = 9, .responder_resources = 3 };
	u8 data[196];

	if (!p->conn || cm_conn_state(p->conn) != CM_REQ_RCVD)
		return;
	say(data, sizeof(data), 20);
	net_check(net, !cm_accept(p->process->cm, p->conn, &rep, data, sizeof(data), net->now_ns));
	net_pump(p->process);
	if (r->how == PASSIVE_LEAVES)
		net_at(net, net->now_ns + 15 * NSEC_PER_USEC, leave, p);
}

static void passive_requested(struct run *r, const struct cm_event *e)
{
	struct end *p = &r->end[PASSIVE];
	struct cm *cm = p->process->cm;
	u8 data[148];

	p->conn = e->conn;
	cm_conn_set_context(p->conn, p);
	net_check(r->net, e->ip.source_port == 0x8001);
	net_check(r->net, gid_equal(&e->ip.destination, &e->path.local));
	net_check(r->net, e->mad.req.qpn == r->end[ACTIVE].qpn && e->mad.req.initiator_depth == 2);
	heard(r, e, 56, 10);
	say(data, sizeof(data), 50);
	switch (r->how) {
	case REJECTED:
		net_check(r->net, !cm_reject(cm, p->conn,
					     &(struct cm_rej){ .reason = CM_REJ_CONSUMER_DEFINED },
					     data, sizeof(data), r->net->now_ns));
		end_close(r, p);
		break;
	case DELAYED:
		net_check(r->net, !cm_delay(cm, p->conn, 20, NULL, 0, r->net->now_ns));
		net_at(r->net, r->net->now_ns + 3 * NSEC_PER_SEC, accept_it, r);
		break;
	default:
		accept_it(r->net, r);
		break;
	}
}

static void passive_resolves(struct run *r, const struct cm_event *e)
{
	const struct cm_sidr_rep rep = { .qpn = 0x77,
					 .qkey = 0x1234567,
					 .status = r->how == SIDR ? CM_SIDR_VALID : CM_SIDR_NO_QP };
	u8 data[136];

	heard(r, e, 180, 10);
	say(data, sizeof(data), 60);
	net_check(r->net, !cm_sidr_reply(r->end[PASSIVE].process->cm, e->conn, &rep, data,
					 sizeof(data), r->net->now_ns));
	cm_close(r->end[PASSIVE].process->cm, e->conn, r->net->now_ns);
}

static void passive_event(struct run *r, const struct cm_event *e)
{
	struct end *p = &r->end[PASSIVE];

	switch (e->kind) {
	case CM_EVENT_REQUEST:
		passive_requested(r, e);
		break;
	case CM_EVENT_SIDR_REQUEST:
		passive_resolves(r, e);
		break;
	case CM_EVENT_ESTABLISHED:
		if (e->mad.kind)
			heard(r, e, 224, 30);
		break;
	case CM_EVENT_REJECTED:
		net_check(r->net, r->how == ACTIVE_REJECTS || r->how == ACTIVE_LEAVES);
		net_check(r->net, r->how == ACTIVE_LEAVES ||
					  e->mad.rej.reason == CM_REJ_NO_RESOURCES);
		end_close(r, p);
		break;
	default:
		break;
	}
}

static void event(struct process *process, const struct cm_event *e, void *arg)
{
	struct run *r = arg;
	struct end *end = &r->end[process == r->end[ACTIVE].process ? ACTIVE : PASSIVE];

	end->seen[e->kind]++;
	if (end == &r->end[ACTIVE])
		active_event(r, e);
	else
		passive_event(r, e);
	if (e->kind == CM_EVENT_DISCONNECT) {
		heard(r, e, 220, 40);
		net_check(r->net, !cm_disconnect(process->cm, e->conn, NULL, 0, r->net->now_ns));
	} else if (e->kind == CM_EVENT_TIMEWAIT_EXIT) {
		end_close(r, end);
	} else if (e->kind == CM_EVENT_DISCONNECTED) {
		net_check(r->net, e->mad.kind == CM_DREP || e->mad.kind == CM_DREQ);
	}
}

/* ---- expected results ---- */

static bool saw(const struct end *e, enum cm_event_kind kind, u32 least, u32 most)
{
	return e->seen[kind] >= least && e->seen[kind] <= most;
}

static void check_ended(struct run *r, u32 least_established)
{
	const struct end *a = &r->end[ACTIVE], *p = &r->end[PASSIVE];

	for (u32 i = 0; i < 2; i++) {
		net_check(r->net, r->end[i].seen[CM_EVENT_DISCONNECT] +
						  r->end[i].seen[CM_EVENT_DISCONNECTED] ==
					  1);
		net_check(r->net, saw(&r->end[i], CM_EVENT_TIMEWAIT_EXIT, 1, 1));
		net_check(r->net, saw(&r->end[i], CM_EVENT_REJECTED, 0, 0));
	}
	net_check(r->net, saw(a, CM_EVENT_REPLY, 1, 1) && saw(p, CM_EVENT_REQUEST, 1, 1));
	net_check(r->net, saw(p, CM_EVENT_ESTABLISHED, least_established, 1));
	if (r->how == ACTIVE_ENDS || r->how == ENDS_AT_ONCE || r->how == DELAYED)
		net_check(r->net, saw(p, CM_EVENT_DISCONNECT, 1, 1));
	if (r->how == PASSIVE_ENDS)
		net_check(r->net, saw(a, CM_EVENT_DISCONNECT, 1, 1));
}

static void check_run(struct run *r)
{
	const struct end *a = &r->end[ACTIVE], *p = &r->end[PASSIVE];
	u32 ended;

	net_check(r->net, !a->seen[CM_EVENT_UNREACHABLE] && !p->seen[CM_EVENT_UNREACHABLE]);
	switch (r->how) {
	case ACTIVE_ENDS:
	case PASSIVE_ENDS:
	case BOTH_END:
	case DELAYED:
		net_check(r->net, r->transferred);
		check_ended(r, 1);
		break;
	case ENDS_AT_ONCE:
		check_ended(r, 0);
		break;
	case REJECTED:
		net_check(r->net, saw(a, CM_EVENT_REJECTED, 1, 1) && saw(a, CM_EVENT_REPLY, 0, 0));
		net_check(r->net, saw(p, CM_EVENT_REQUEST, 1, 1));
		break;
	case ACTIVE_REJECTS:
		net_check(r->net, saw(a, CM_EVENT_REPLY, 1, 1) && saw(a, CM_EVENT_REJECTED, 0, 0));
		net_check(r->net, saw(p, CM_EVENT_REQUEST, 1, 1));
		net_check(r->net, saw(p, CM_EVENT_REJECTED, 1, 1));
		break;
	case PASSIVE_LEAVES:
		ended = a->seen[CM_EVENT_REJECTED] + a->seen[CM_EVENT_DISCONNECT] +
			a->seen[CM_EVENT_DISCONNECTED];
		net_check(r->net, saw(p, CM_EVENT_REQUEST, 1, 1) && ended == 1);
		break;
	case ACTIVE_LEAVES:
		net_check(r->net, saw(p, CM_EVENT_REQUEST, 0, 1));
		net_check(r->net, p->seen[CM_EVENT_REJECTED] == p->seen[CM_EVENT_REQUEST]);
		break;
	default:
		net_check(r->net, saw(p, CM_EVENT_SIDR_REQUEST, 1, 1));
		net_check(r->net, saw(a, CM_EVENT_SIDR_REPLY, 1, 1));
		break;
	}
}

static void run_one(enum how how, u64 drop, u64 duplicate, u64 late, u32 *sent)
{
	struct run r = { .how = how, .net = net_create(drop ^ duplicate << 20 ^ late << 40) };
	const struct cm_service service = { .id = SERVICE, .families = CM_IPV4, .backlog = 1 };

	net_label(r.net, "XROCE_CM_MASK=%u:%llx:%llx:%llx (%s)", how, (unsigned long long)drop,
		  (unsigned long long)duplicate, (unsigned long long)late, how_name[how]);
	r.net->capacity = 4;
	r.net->drop = drop;
	r.net->duplicate = duplicate;
	r.net->late = late;
	r.net->late_ns = 2 * NSEC_PER_SEC;
	r.net->event = event;
	r.net->event_arg = &r;
	for (u32 i = 0; i < 2; i++) {
		r.end[i].process = net_start(r.net, i, 0);
		r.end[i].qpn = 0x100 + i;
	}
	net_listen(r.end[PASSIVE].process, &service);
	active_begin(&r);
	net_run(r.net, NSEC_NEVER - 1);
	check_run(&r);
	net_check(r.net, !r.end[ACTIVE].conn);
	net_check(r.net, !r.end[PASSIVE].conn);
	net_check_empty(r.net);
	if (sent)
		*sent = r.net->sent;
	net_destroy(r.net);
}

static void masks__of_one_way(enum how how)
{
	for (u64 drop = 0; drop < 1ull << LOST_MADS; drop++)
		run_one(how, drop, 0, 0, NULL);
}

#define MASKS(name, how)                                                                 \
	static void name(void **state)                                                   \
	{                                                                                \
		masks__of_one_way(how);                                                  \
	}
MASKS(masks__active_ends, ACTIVE_ENDS)
MASKS(masks__passive_ends, PASSIVE_ENDS)
MASKS(masks__both_end, BOTH_END)
MASKS(masks__ends_at_once, ENDS_AT_ONCE)
MASKS(masks__rejected, REJECTED)
MASKS(masks__active_rejects, ACTIVE_REJECTS)
MASKS(masks__passive_leaves, PASSIVE_LEAVES)
MASKS(masks__active_leaves, ACTIVE_LEAVES)
MASKS(masks__delayed, DELAYED)
MASKS(masks__sidr, SIDR)
MASKS(masks__sidr_rejected, SIDR_REJECTED)

static void masks__lost_twice_and_late(void **state)
{
	struct rng rng = { 42 };

	for (u32 i = 0; i < MIXED; i++) {
		const u64 r = rng_next(&rng);
		const u64 drop = r & rng_next(&rng) & 0xfffff, duplicate = r >> 20 & 0xfffff,
			  late = r >> 40 & rng_next(&rng) & 0xfffff;

		run_one(i % HOWS, drop & 0xfff, duplicate, late, NULL);
	}
}

/* Nothing is lost: no MAD more than it takes. */
static void masks__none_lost(void **state)
{
	static const u32 mads[HOWS] = {
		[ACTIVE_ENDS] = 5,   [PASSIVE_ENDS] = 5, [BOTH_END] = 7, [ENDS_AT_ONCE] = 5,
		[REJECTED] = 2,	     [ACTIVE_REJECTS] = 3, [PASSIVE_LEAVES] = 5,
		[ACTIVE_LEAVES] = 4, [DELAYED] = 7,	 [SIDR] = 2,	 [SIDR_REJECTED] = 2,
	};
	u32 sent;

	for (u32 how = 0; how < HOWS; how++) {
		run_one(how, 0, 0, 0, &sent);
		if (sent != mads[how])
			fail_msg("%s took %u MADs", how_name[how], sent);
	}
}

static int run_named(const char *mask)
{
	unsigned long long drop = 0, duplicate = 0, late = 0;
	unsigned how;

	if (sscanf(mask, "%u:%llx:%llx:%llx", &how, &drop, &duplicate, &late) < 2 || how >= HOWS)
		return 2;
	run_one(how, drop, duplicate, late, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks__none_lost),
		cmocka_unit_test(masks__active_ends),
		cmocka_unit_test(masks__passive_ends),
		cmocka_unit_test(masks__both_end),
		cmocka_unit_test(masks__ends_at_once),
		cmocka_unit_test(masks__rejected),
		cmocka_unit_test(masks__active_rejects),
		cmocka_unit_test(masks__passive_leaves),
		cmocka_unit_test(masks__active_leaves),
		cmocka_unit_test(masks__delayed),
		cmocka_unit_test(masks__sidr),
		cmocka_unit_test(masks__sidr_rejected),
		cmocka_unit_test(masks__lost_twice_and_late),
	};
	const char *mask = getenv("XROCE_CM_MASK");

	if (mask)
		return run_named(mask);
	return cmocka_run_group_tests_name("masks", tests, NULL, NULL);
}
