/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdarg.h>

#include "net.h"

#include "../unit/unit.h"

#define LATENCY_NS (10 * NSEC_PER_USEC)

/* Each process has its own range. */
static u32 id_first(u32 host, u32 number)
{
	return (host * NET_PROCESSES + number + 1) << 20;
}
#define ID_COUNT (1u << 20)

static u64 draw(void *arg)
{
	return rng_next(arg);
}

struct net *net_create(u64 seed)
{
	struct net *net = calloc(1, sizeof(*net));

	assert_non_null(net);
	net->rng.state = seed;
	net->now_ns = NSEC_PER_SEC;
	net->capacity = 64;
	net->trace = getenv("XROCE_SIM_TRACE") != NULL;
	return net;
}

void net_label(struct net *net, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(net->label, sizeof(net->label), format, args);
	va_end(args);
}

void net_fail(const struct net *net, const char *file, int line, const char *what)
{
	fail_msg("%s:%d: %s\n  %s, at %llu ns", file, line, what, net->label,
		 (unsigned long long)net->now_ns);
	abort();
}

struct process *net_start(struct net *net, u32 host, u32 number)
{
	struct process *p = &net->process[host][number];

	*p = (struct process){
		.net = net,
		.host = host,
		.number = number,
		.options = { .random = draw,
			     .random_arg = &net->rng,
			     .id_first = id_first(host, number),
			     .id_count = ID_COUNT,
			     .ca_guid = 0x1000 + host,
			     .capacity = net->capacity,
			     .half_open = net->half_open,
			     .listeners = 8 },
	};
	assert_int_equal(cm_create(&p->options, &p->cm), 0);
	return p;
}

static void listeners_forget(struct process *p)
{
	for (u32 i = 0; i < NET_LISTENERS; i++)
		if (p->net->listener[i].process == p)
			p->net->listener[i].process = NULL;
}

void net_kill(struct process *p)
{
	if (!p->cm)
		return;
	listeners_forget(p);
	cm_destroy(p->cm);
	p->cm = NULL;
}

void net_destroy(struct net *net)
{
	for (u32 h = 0; h < NET_HOSTS; h++)
		for (u32 i = 0; i < NET_PROCESSES; i++)
			net_kill(&net->process[h][i]);
	free(net);
}

void net_listen(struct process *p, const struct cm_service *service)
{
	for (u32 i = 0; i < NET_LISTENERS; i++) {
		struct net_listener *l = &p->net->listener[i];

		if (l->process)
			continue;
		*l = (struct net_listener){ .process = p, .service = *service };
		assert_int_equal(cm_listen(p->cm, service, &l->listener), 0);
		return;
	}
	fail_msg("no listener is left");
}

void net_unlisten(struct process *p, u64 service_id)
{
	for (u32 i = 0; i < NET_LISTENERS; i++) {
		struct net_listener *l = &p->net->listener[i];

		if (l->process != p || l->service.id != service_id)
			continue;
		l->process = NULL;
		cm_unlisten(p->cm, l->listener, p->net->now_ns);
		net_pump(p);
	}
}

static struct gid host_gid(u32 host, bool v6)
{
	return v6 ? (struct gid){ { 0xfd, [15] = (u8)(host + 1) } } :
		    (struct gid){ { [10] = 0xff, 0xff, 10, 0, 0, (u8)(host + 1) } };
}

struct cm_path net_path(u32 from, u32 to, bool v6)
{
	return (struct cm_path){ .local = host_gid(from, v6),
				 .remote = host_gid(to, v6),
				 .hop_limit = 64,
				 .life = 14 };
}

void net_at(struct net *net, u64 at_ns, void (*run)(struct net *net, void *arg), void *arg)
{
	assert_true(net->timers < NET_TIMERS);
	net->timer[net->timers++] = (struct net_timer){ at_ns, run, arg };
}

/* ---- the wire ---- */

static void fly(struct net *net, u64 at_ns, const struct cm_send *s)
{
	struct flight *f = &net->flight[net->flights];

	if (net->flights == NET_FLIGHTS)
		return;
	net->flights++;
	*f = (struct flight){ .at_ns = at_ns,
			      .host = (u32)s->path.remote.raw[15] - 1,
			      .path = s->path };
	f->path.local = s->path.remote;
	f->path.remote = s->path.local;
	memcpy(f->mad, s->mad, sizeof(f->mad));
}

static bool in_mask(u64 mask, u32 n)
{
	return n < 64 && mask >> n & 1;
}

static void net_send(struct net *net, const struct cm_send *s)
{
	const u32 n = net->sent++;
	u64 at_ns = net->now_ns + LATENCY_NS;
	struct cm_mad m;

	/* sent MADs are always valid, and have no other sender */
	net_check(net, cm_mad_decode(&m, s->mad, sizeof(s->mad)) == CM_DROP_none);
	net->sent_of[m.kind]++;
	if (net->trace)
		printf("%10llu us %2u > %2u %#x tid %016llx ids %08x %08x\n",
		       (unsigned long long)(net->now_ns / NSEC_PER_USEC),
		       s->path.local.raw[15], s->path.remote.raw[15], m.kind,
		       (unsigned long long)m.tid, m.local_id, m.remote_id);
	if (net->tap)
		net->tap(net, &m);
	if (net->jitter_ns)
		at_ns += rng_next(&net->rng) % net->jitter_ns;
	if (in_mask(net->late, n))
		at_ns += net->late_ns;
	if (net->dead || in_mask(net->drop, n) || rng_chance(&net->rng, net->drop_rate))
		return;
	fly(net, at_ns, s);
	if (in_mask(net->duplicate, n) || rng_chance(&net->rng, net->duplicate_rate))
		fly(net, at_ns + LATENCY_NS / 2 + (net->jitter_ns ? rng_next(&net->rng) %
			net->jitter_ns : 0), s);
}

void net_pump(struct process *p)
{
	struct cm_event event;
	struct cm_send send;

	while (p->cm && cm_next_event(p->cm, &event))
		if (p->net->event)
			p->net->event(p, &event, p->net->event_arg);
	while (p->cm && cm_output(p->cm, &send))
		net_send(p->net, &send);
}

static void host_input(struct process *p, const struct flight *f)
{
	cm_input(p->cm, &f->path, f->mad, sizeof(f->mad), p->net->now_ns);
	net_pump(p);
}

static struct process *net_listening(struct net *net, u32 host, u64 service_id, bool v6)
{
	for (u32 i = 0; i < NET_LISTENERS; i++) {
		const struct net_listener *l = &net->listener[i];

		if (l->process && l->process->host == host && l->service.id == service_id &&
		    l->service.families & (v6 ? CM_IPV6 : CM_IPV4))
			return l->process;
	}
	return NULL;
}

static void host_refuse(struct net *net, const struct flight *f, const struct cm_mad *m)
{
	struct cm_send send = { .path = f->path };
	struct cm_mad reply;

	if (!cm_refuse(m, &reply))
		return;
	cm_mad_encode(send.mad, &reply);
	net_send(net, &send);
}

/* What a broker does. */
static void host_receive(struct net *net, const struct flight *f)
{
	struct process *processes = net->process[f->host], *to = NULL;
	struct cm_mad m;
	u64 service_id;
	u32 id;

	net_check(net, !cm_mad_decode(&m, f->mad, sizeof(f->mad)));
	switch (cm_mad_names(&m, &id, &service_id)) {
	case CM_NAMES_PEER:
		for (u32 i = 0; i < NET_PROCESSES; i++)
			if (processes[i].cm)
				host_input(&processes[i], f);
		return;
	case CM_NAMES_SERVICE:
		to = net_listening(net, f->host, service_id, !gid_is_ipv4(&f->path.local));
		break;
	case CM_NAMES_ID:
		for (u32 i = 0; i < NET_PROCESSES; i++)
			if (processes[i].cm && id - processes[i].options.id_first < ID_COUNT)
				to = &processes[i];
		break;
	}
	if (to)
		host_input(to, f);
	else
		host_refuse(net, f, &m);
}

/* ---- time ---- */

static bool run_flight(struct net *net, u64 until_ns)
{
	struct flight f;
	u32 first = 0;

	if (!net->flights)
		return false;
	for (u32 i = 1; i < net->flights; i++)
		if (net->flight[i].at_ns < net->flight[first].at_ns)
			first = i;
	if (net->flight[first].at_ns > until_ns)
		return false;
	f = net->flight[first];
	/* their order is kept */
	net->flights--;
	memmove(&net->flight[first], &net->flight[first + 1],
		(net->flights - first) * sizeof(f));
	net->now_ns = f.at_ns;
	host_receive(net, &f);
	return true;
}

static bool run_timer(struct net *net, u64 until_ns)
{
	struct net_timer t;
	u32 first = 0;

	if (!net->timers)
		return false;
	for (u32 i = 1; i < net->timers; i++)
		if (net->timer[i].at_ns < net->timer[first].at_ns)
			first = i;
	t = net->timer[first];
	if (t.at_ns > until_ns)
		return false;
	net->timer[first] = net->timer[--net->timers];
	if (t.at_ns > net->now_ns)
		net->now_ns = t.at_ns;
	t.run(net, t.arg);
	return true;
}

static struct process *next_due(struct net *net, u64 *at_ns)
{
	struct process *first = NULL;

	*at_ns = NSEC_NEVER;
	for (u32 h = 0; h < NET_HOSTS; h++)
		for (u32 i = 0; i < NET_PROCESSES; i++) {
			struct process *p = &net->process[h][i];

			if (p->cm && cm_deadline_ns(p->cm) < *at_ns) {
				*at_ns = cm_deadline_ns(p->cm);
				first = p;
			}
		}
	return first;
}

void net_run(struct net *net, u64 until_ns)
{
	for (;;) {
		u64 due_ns;
		struct process *p = next_due(net, &due_ns);
		const u64 limit_ns = min_u64(due_ns, until_ns);
		u64 timer_ns = NSEC_NEVER;

		for (u32 i = 0; i < net->timers; i++)
			timer_ns = min_u64(timer_ns, net->timer[i].at_ns);
		if (run_flight(net, min_u64(limit_ns, timer_ns)))
			continue;
		if (run_timer(net, limit_ns))
			continue;
		if (!p || due_ns > until_ns)
			return;
		net->now_ns = max_u64(net->now_ns, due_ns);
		cm_expire(p->cm, net->now_ns);
		net_pump(p);
	}
}

void net_check_empty(const struct net *net)
{
	for (u32 h = 0; h < NET_HOSTS; h++)
		for (u32 i = 0; i < NET_PROCESSES; i++) {
			const struct cm *cm = net->process[h][i].cm;

			if (!cm)
				continue;
			net_check(net, cm_stats(cm)->in_use == 0);
			net_check(net, cm_stats(cm)->closed == 0);
			net_check(net, cm_stats(cm)->incoming == 0);
			net_check(net, cm_stats(cm)->half_open == 0);
			net_check(net, cm_stats(cm)->peers == 0);
			net_check(net, cm_deadline_ns(cm) == NSEC_NEVER);
		}
}
