/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * Random worlds: hosts with several processes and listeners, programs that connect, accept, reject,
 * delay, disconnect, leave in any state and forget; processes that die and restart; MADs that are
 * lost, duplicated and reordered. In all cases no request is executed twice, a REP belongs to the
 * connection in it, each connection ends once, both ends agree unless one timed out, and in the end
 * nothing is left.
 *
 * XROCE_SIM_SEED=n runs one world, XROCE_SIM_SEEDS=n runs n (10,000).
 */
#include "../unit/unit.h"

#include "net.h"

#define WORLDS	    10000
#define PROGRAMS    192
#define PORTS	    4
#define BUSY_NS	    (10 * NSEC_PER_SEC)  /* new connections until then */
#define QUIET_NS    (600 * NSEC_PER_SEC) /* all is idle by then */

/* One end of a connection. */
struct program {
	struct world *world;
	struct process *process;
	u32 life; /* of its process */
	struct cm_conn *conn; /* NULL: closed, or its process has died */
	bool active, sidr;
	u32 number;
	u32 partner; /* the other end's number */
	u32 requests, ends, rests; /* events */
	u32 request_life;
};

struct world {
	struct net *net;
	struct rng rng; /* of what programs do */
	u32 life[NET_HOSTS][NET_PROCESSES], lives; /* each has its own number */
	struct program program[PROGRAMS];
	u32 programs;
};

static u32 life_of(const struct world *w, const struct process *p)
{
	return w->life[p->host][p->number];
}

static struct program *program_new(struct world *w, struct process *p)
{
	struct program *g = &w->program[w->programs];

	net_check(w->net, w->programs < PROGRAMS);
	*g = (struct program){ .world = w,
			       .process = p,
			       .life = life_of(w, p),
			       .number = w->programs++,
			       .partner = ~0u };
	return g;
}

static bool program_lives(const struct program *g)
{
	return g->conn && g->life == life_of(g->world, g->process);
}

static void program_close(struct program *g)
{
	if (!program_lives(g))
		return;
	cm_close(g->process->cm, g->conn, g->world->net->now_ns);
	g->conn = NULL;
	net_pump(g->process);
}

static u64 soon_ns(struct world *w, u64 most_ns)
{
	return w->net->now_ns + rng_next(&w->rng) % most_ns;
}

/* ---- what programs do ---- */

static void do_close(struct net *net, void *arg)
{
	program_close(arg);
}

static void do_disconnect(struct net *net, void *arg)
{
	struct program *g = arg;

	if (program_lives(g) && cm_conn_state(g->conn) == CM_ESTABLISHED) {
		net_check(net, !cm_disconnect(g->process->cm, g->conn, NULL, 0, net->now_ns));
		net_pump(g->process);
	}
}

/* It accepts or answers, if that is still asked for. */
static void do_accept(struct net *net, void *arg)
{
	struct program *g = arg;
	const struct cm_rep rep = { .qpn = g->number };
	const struct cm_sidr_rep sidr = { .qpn = g->number };
	struct cm *cm = g->process->cm;

	if (!program_lives(g))
		return;
	if (cm_conn_state(g->conn) == CM_REQ_RCVD)
		net_check(net, !cm_accept(cm, g->conn, &rep, NULL, 0, net->now_ns));
	else if (cm_conn_state(g->conn) == CM_SIDR_RCVD)
		net_check(net, !cm_sidr_reply(cm, g->conn, &sidr, NULL, 0, net->now_ns));
	net_pump(g->process);
	if (rng_below(&g->world->rng, 4) == 0)
		net_at(net, soon_ns(g->world, NSEC_PER_SEC), do_close, g);
	else if (rng_below(&g->world->rng, 4) == 0)
		net_at(net, soon_ns(g->world, 3 * NSEC_PER_SEC), do_disconnect, g);
}

static void do_ready(struct net *net, void *arg)
{
	struct program *g = arg;

	if (!program_lives(g) || cm_conn_state(g->conn) != CM_REP_RCVD)
		return;
	net_check(net, !cm_ready(g->process->cm, g->conn, NULL, 0, net->now_ns));
	net_pump(g->process);
	if (rng_below(&g->world->rng, 2))
		net_at(net, soon_ns(g->world, 3 * NSEC_PER_SEC), do_disconnect, g);
}

static void do_reject(struct program *g)
{
	const struct cm_rej rej = { .reason = CM_REJ_CONSUMER_DEFINED };

	if (cm_conn_state(g->conn) == CM_SIDR_RCVD)
		cm_sidr_reply(g->process->cm, g->conn,
			      &(struct cm_sidr_rep){ .status = CM_SIDR_REJECTED }, NULL, 0,
			      g->world->net->now_ns);
	else
		net_check(g->world->net, !cm_reject(g->process->cm, g->conn, &rej, NULL, 0,
						    g->world->net->now_ns));
	if (rng_below(&g->world->rng, 2))
		program_close(g);
}

/* Now, later, with a MRA, not at all, or not even an answer. */
static void decide(struct program *g, void (*go_on)(struct net *net, void *arg))
{
	struct world *w = g->world;

	switch (rng_below(&w->rng, 10)) {
	case 0:
		do_reject(g);
		break;
	case 1:
		program_close(g);
		break;
	case 2:
		break; /* it forgets */
	case 3:
		if (cm_conn_state(g->conn) != CM_SIDR_RCVD)
			cm_delay(g->process->cm, g->conn, (u8)rng_below(&w->rng, 32), NULL, 0,
				 w->net->now_ns);
		net_at(w->net, soon_ns(w, 4 * NSEC_PER_SEC), go_on, g);
		break;
	case 4:
		cm_prepare_delay(g->process->cm, g->conn, (u8)rng_below(&w->rng, 32));
		net_at(w->net, soon_ns(w, 4 * NSEC_PER_SEC), go_on, g);
		break;
	default:
		go_on(w->net, g);
		break;
	}
}

static void do_connect(struct net *net, void *arg)
{
	struct world *w = arg;
	const u32 host = rng_below(&w->rng, NET_HOSTS), number = rng_below(&w->rng, NET_PROCESSES);
	struct process *p = &net->process[host][number];
	const u32 to = rng_below(&w->rng, NET_HOSTS);
	const bool v6 = rng_below(&w->rng, 2), sidr = rng_below(&w->rng, 4) == 0;
	const struct cm_path path = net_path(p->host, to, v6);
	const u16 port = (u16)rng_below(&w->rng, PORTS);
	const struct cm_times times = { 17, (u8)rng_below(&w->rng, 16) };
	struct cm_ip_header ip = { 1, path.local, path.remote };
	struct program *g;
	u8 data[CM_IP_HEADER_BYTES + 4];
	int err;

	if (!p->cm || w->programs + 20 > PROGRAMS)
		return;
	g = program_new(w, p);
	g->active = true;
	g->sidr = sidr;
	cm_ip_header_put(data, &ip);
	memcpy(data + CM_IP_HEADER_BYTES, &g->number, 4);
	if (sidr) {
		const struct cm_sidr_req req = { cm_service_id(CM_PS_UDP, port), 0xffff };

		err = cm_sidr_request(p->cm, &path, &req, &times, data, sizeof(data), g,
				      net->now_ns, &g->conn);
	} else {
		const struct cm_req req = { .service_id = cm_service_id(CM_PS_TCP, port),
					    .qpn = g->number,
					    .remote_response_timeout = 17,
					    .local_response_timeout = 17,
					    .max_retries = times.max_retries,
					    .mtu = 5,
					    .pkey = 0xffff,
					    .primary.ack_timeout = 19 };

		err = cm_connect(p->cm, &path, &req, data, sizeof(data), g, net->now_ns, &g->conn);
	}
	net_check(net, !err || err == -ENOBUFS);
	net_pump(p);
	if (rng_below(&w->rng, 8) == 0)
		net_at(net, soon_ns(w, NSEC_PER_SEC / 2), do_close, g);
}

static void start_process(struct world *w, u32 host, u32 number)
{
	struct process *p = net_start(w->net, host, number);

	w->life[host][number] = ++w->lives;
	for (u16 port = 0; port < PORTS; port++) {
		const bool tcp = rng_below(&w->rng, 2);
		const u8 families = (u8)(1 + rng_below(&w->rng, 3));
		const struct cm_service service = {
			.id = cm_service_id(tcp ? CM_PS_TCP : CM_PS_UDP, port),
			.families = families,
			.backlog = rng_below(&w->rng, 4),
		};
		u32 used = 0;

		for (u32 i = 0; i < NET_LISTENERS; i++)
			used += w->net->listener[i].process != NULL;
		if (rng_below(&w->rng, 2) && used < NET_LISTENERS)
			net_listen(p, &service);
	}
}

static void do_die(struct net *net, void *arg)
{
	struct world *w = arg;
	const u32 h = rng_below(&w->rng, NET_HOSTS), n = rng_below(&w->rng, NET_PROCESSES);
	struct process *p = &net->process[h][n];

	if (!p->cm)
		return;
	net_kill(p);
	w->life[h][n] = 0;
	if (rng_below(&w->rng, 2))
		start_process(w, h, n);
}

/* ---- events of programs ---- */

static void on_request(struct process *p, struct world *w, const struct cm_event *e)
{
	struct program *g = program_new(w, p), *from;

	g->conn = e->conn;
	g->sidr = e->kind == CM_EVENT_SIDR_REQUEST;
	cm_conn_set_context(e->conn, g);
	memcpy(&g->partner, e->mad.data, 4);
	net_check(w->net, g->partner < w->programs);
	from = &w->program[g->partner];
	net_check(w->net, from->active && from->sidr == g->sidr);
	/* executed once, unless the process has restarted, or had no room to know it */
	net_check(w->net, !from->requests || from->request_life != life_of(w, p) ||
				  cm_stats(p->cm)->made_room);
	from->requests++;
	from->request_life = life_of(w, p);
	if (rng_below(&w->rng, 2))
		cm_take(p->cm, e->conn);
	decide(g, do_accept);
}

static void on_end(struct program *g)
{
	net_check(g->world->net, g->ends++ == 0);
}

static void on_answer(struct program *g, u32 qpn)
{
	const struct program *from = &g->world->program[qpn];

	net_check(g->world->net, g->active && qpn < g->world->programs);
	net_check(g->world->net, !from->active && from->partner == g->number);
	g->partner = qpn;
}

static void event(struct process *p, const struct cm_event *e, void *arg)
{
	struct world *w = arg;
	struct program *g = e->context;

	if (e->kind == CM_EVENT_REQUEST || e->kind == CM_EVENT_SIDR_REQUEST) {
		on_request(p, w, e);
		return;
	}
	net_check(w->net, program_lives(g) && g->conn == e->conn && g->process == p);
	switch (e->kind) {
	case CM_EVENT_REPLY:
		on_answer(g, e->mad.rep.qpn);
		decide(g, do_ready);
		break;
	case CM_EVENT_SIDR_REPLY:
		if (e->mad.sidr_rep.status == CM_SIDR_VALID)
			on_answer(g, e->mad.sidr_rep.qpn);
		on_end(g);
		break;
	case CM_EVENT_ESTABLISHED:
		net_check(w->net, !g->active && !g->ends);
		break;
	case CM_EVENT_REJECTED:
	case CM_EVENT_UNREACHABLE:
	case CM_EVENT_DISCONNECTED:
		on_end(g);
		break;
	case CM_EVENT_DISCONNECT:
		on_end(g);
		if (rng_below(&w->rng, 4))
			net_check(w->net,
				  !cm_disconnect(p->cm, e->conn, NULL, 0, w->net->now_ns));
		else
			net_at(w->net, soon_ns(w, NSEC_PER_SEC), do_close, g);
		break;
	case CM_EVENT_TIMEWAIT_EXIT:
		net_check(w->net, g->ends == 1 && g->rests++ == 0);
		break;
	default:
		break;
	}
	if (g->ends && rng_below(&w->rng, 2))
		program_close(g);
}

/* ---- worlds ---- */

/* Both ends, alive, of a connection that neither has left: nothing is under way any more. */
static void check_agreement(struct world *w)
{
	for (u32 i = 0; i < w->programs; i++) {
		const struct program *g = &w->program[i], *o;

		if (g->sidr || g->partner >= w->programs || !program_lives(g))
			continue;
		o = &w->program[g->partner];
		if (!program_lives(o) || o->partner != g->number ||
		    cm_stats(g->process->cm)->gave_up || cm_stats(o->process->cm)->gave_up)
			continue;
		net_check(w->net, (cm_conn_state(g->conn) == CM_ESTABLISHED) ==
					  (cm_conn_state(o->conn) == CM_ESTABLISHED));
	}
}

static u32 established;

static void run_world(u64 seed)
{
	static struct world world;
	struct world *w = &world;
	u64 jitter_ns;

	memset(w, 0, sizeof(*w));
	w->net = net_create(seed);
	w->rng.state = seed * 977;
	net_label(w->net, "XROCE_SIM_SEED=%llu", (unsigned long long)seed);
	w->net->event = event;
	w->net->event_arg = w;
	w->net->capacity = 4 + rng_below(&w->rng, 60);
	w->net->half_open = rng_below(&w->rng, 8);
	w->net->drop_rate = rng_below(&w->rng, 3) ? rng_below(&w->rng, 65536 / 3) : 0;
	w->net->duplicate_rate = rng_below(&w->rng, 2) ? rng_below(&w->rng, 65536 / 4) : 0;
	jitter_ns = rng_below(&w->rng, 2) ? NSEC_PER_MSEC : 500 * NSEC_PER_MSEC;
	w->net->jitter_ns = 1 + rng_next(&w->rng) % jitter_ns;
	for (u32 h = 0; h < NET_HOSTS; h++)
		for (u32 i = 0; i < NET_PROCESSES; i++)
			if (rng_below(&w->rng, 3))
				start_process(w, h, i);
	for (u32 i = 3 + rng_below(&w->rng, 30); i--;)
		net_at(w->net, soon_ns(w, BUSY_NS), do_connect, w);
	for (u32 i = rng_below(&w->rng, 4); i--;)
		net_at(w->net, soon_ns(w, BUSY_NS), do_die, w);
	net_run(w->net, QUIET_NS);
	check_agreement(w);
	for (u32 i = 0; i < w->programs; i++) {
		struct program *g = &w->program[i];

		established += program_lives(g) && cm_conn_state(g->conn) == CM_ESTABLISHED;
		program_close(g);
	}
	net_run(w->net, NSEC_NEVER - 1);
	net_check_empty(w->net);
	net_destroy(w->net);
}

static u64 from_environment(const char *name, u64 otherwise)
{
	const char *v = getenv(name);

	return v ? strtoull(v, NULL, 0) : otherwise;
}

static void worlds__random(void **state)
{
	const u64 worlds = from_environment("XROCE_SIM_SEEDS", WORLDS);

	established = 0;
	if (getenv("XROCE_SIM_SEED")) {
		run_world(from_environment("XROCE_SIM_SEED", 0));
		return;
	}
	for (u64 seed = 0; seed < worlds; seed++)
		run_world(seed);
	/* they do connect */
	assert_true(established > worlds / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(worlds__random),
	};

	return cmocka_run_group_tests_name("worlds", tests, NULL, NULL);
}
