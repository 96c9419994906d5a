/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Applies the rules and sorts their findings; has the rules for a process on an interface: faults
 * that affect all of its queue pairs. Pure, like all rules.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../counters.h"
#include "../memory.h"
#include "explain_rule.h"

#define MS(ns) ((double)(ns) / 1e6)

/* ---- for either end ---- */

bool port_is_stopped(const struct explain_port *p)
{
	return p->process.is_known && p->process.threads &&
	       p->process.stopped == p->process.threads;
}

static u64 port_ran(const struct explain_end *e)
{
	return grown(e->port[0]->process.ran_ns, e->port[1]->process.ran_ns);
}

static u64 port_waited(const struct explain_end *e)
{
	return grown(e->port[0]->process.waited_ns, e->port[1]->process.waited_ns);
}

bool port_is_starved(const struct explain_end *e, double seconds)
{
	const double ran = (double)port_ran(e) / 1e9, waited = (double)port_waited(e) / 1e9;

	if (!e->port[0]->process.is_known || !e->port[1]->process.is_known)
		return false;
	/* the kernel adds to waited_ns when a wait ends, so a wait in progress does not show */
	return (waited > seconds / 2 && ran < waited / 10) ||
	       (e->port[0]->process.ready && e->port[1]->process.ready && ran < seconds / 50);
}

u64 port_backlog(const struct explain_port *p)
{
	const struct xroce_sock *s = &p->sums.sock;

	return grown(s->rx_frames + s->rx_ring_full + s->rx_dropped + s->rx_left,
		     p->sums.rx.redirected);
}

/* Short frames that the ring of a receive queue holds (docs/congestion.md); fewer long ones. */
#define PORT_RING_FRAMES 1024u

bool port_ring_overflows(const struct explain_end *e)
{
	const u64 room = PORT_RING_FRAMES * (u64)(e->port[1]->queues ? e->port[1]->queues : 1);

	/* a stopped process does not read the loss counters of its sockets */
	return SUM_GROWN(*e, sock.rx_ring_full) || SUM_GROWN(*e, xdp.ring_full) ||
	       (port_backlog(e->port[0]) > room && port_backlog(e->port[1]) > room);
}

/* Drops that concern a QP and do not result from lost packets. */
static const enum xroce_drop drops_of_qp[] = {
	XROCE_DROP_peer,	 XROCE_DROP_pkey,	  XROCE_DROP_qkey,	XROCE_DROP_qp_state,
	XROCE_DROP_qp_transport, XROCE_DROP_qp_unknown,	  XROCE_DROP_ext_short, XROCE_DROP_pad,
	XROCE_DROP_opcode,	 XROCE_DROP_payload_long,
};

static u64 port_drops(const struct explain_port *p, enum xroce_drop drop)
{
	return ((const u64 *)&p->sums.xdp)[XROCE_DROP_INDEX(drop)];
}

enum xroce_drop port_drop_grown(const struct explain_end *e, u64 *num)
{
	enum xroce_drop most = XROCE_DROP_none;

	*num = 0;
	for (u32 i = 0; i < ARRAY_SIZE(drops_of_qp); i++) {
		const u64 n = grown(port_drops(e->port[0], drops_of_qp[i]),
				    port_drops(e->port[1], drops_of_qp[i]));

		if (n > *num) {
			*num = n;
			most = drops_of_qp[i];
		}
	}
	return most;
}

/* ---- the interface ---- */

bool explain_link_down(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = c->own.port[1];

	if (!p->has_iface || p->is_up)
		return false;
	finding_number(f, "is_enabled", p->is_enabled);
	finding_number(f, "is_up", p->is_up);
	if (!p->is_enabled) {
		finding_say(f,
			    "The interface %s is down: it neither sends nor receives.",
			    p->dev);
		finding_advise(f, "Run 'ip link set %s up'.", p->dev);
		return true;
	}
	finding_say(f,
		    "The interface %s has no link: the cable is unplugged, or its other end is "
		    "down. It neither sends nor receives.",
		    p->dev);
	finding_advise(f,
		       "Check the other end (of a veth: its peer interface; otherwise cable and "
		       "switch port) until 'ip link show %s' prints LOWER_UP.",
		       p->dev);
	return true;
}

/* ---- the process ---- */

bool explain_stopped(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = c->own.port[1];

	if (!port_is_stopped(p))
		return false;
	finding_say(f,
		    "The process %u (%s) is stopped (by SIGSTOP, ^Z or a debugger; all %u "
		    "threads): it receives, answers and polls nothing.",
		    p->pid, p->command, p->process.threads);
	finding_advise(f, "Run 'kill -CONT %u', or let the debugger continue the process.", p->pid);
	finding_number(f, "threads_stopped", p->process.stopped);
	finding_number(f, "frames_not_taken", port_backlog(p));
	return true;
}

bool explain_starved(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = c->own.port[1];

	if (port_is_stopped(p) || !port_is_starved(&c->own, c->seconds))
		return false;
	finding_say(f,
		    "The process %u (%s) gets hardly any CPU time: in %.1f s its threads ran for "
		    "%.0f ms, and ",
		    p->pid, p->command, c->seconds, MS(port_ran(&c->own)));
	if ((double)port_waited(&c->own) / 1e9 > c->seconds / 2)
		finding_say(f, "waited for a CPU for %.0f ms.",
			    MS(port_waited(&c->own)));
	else
		finding_say(f, "%u of %u were ready to run all the time.", p->process.ready,
			    p->process.threads);
	finding_advise(f,
		       "Give it more CPU time: run fewer busy processes (top), change its priority "
		       "or CPU set (chrt -p, taskset -p), or raise cpu.max of its cgroup.");
	finding_count(c, f, "ran_ns", c->own.port[0]->process.ran_ns, p->process.ran_ns);
	finding_count(c, f, "waited_ns", c->own.port[0]->process.waited_ns, p->process.waited_ns);
	finding_number(f, "threads_ready", p->process.ready);
	SUM_COUNT(c, f, c->own, "late_deadlines", engine.late_deadlines);
	return true;
}

/* ---- receive ---- */

bool explain_ring_full(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = c->own.port[1];
	const u64 lost = SUM_GROWN(c->own, sock.rx_ring_full) + SUM_GROWN(c->own, xdp.ring_full);

	if (!port_ring_overflows(&c->own))
		return false;
	finding_say(f, "The receive ring of process %u (%s) overflows: ", p->pid, p->command);
	if (lost)
		finding_say(f, "%llu frames were dropped in %.1f s because the ring was full.",
			    (unsigned long long)lost, c->seconds);
	else
		finding_say(f,
			    "%s passed %llu frames that the process has not read, more than a "
			    "ring holds.",
			    p->by_sockets ? "The broker" : "XDP",
			    (unsigned long long)port_backlog(p));
	finding_say(f, " Packets arrive faster than the process reads them.");
	finding_advise(f, port_is_stopped(p) ?
				  "Let the process continue (kill -CONT): see above." :
				  "Let the process poll its CQs more often or from another thread, "
				  "give it more CPU time or more engines (xroce run --shards), or "
				  "reduce the rate of the peers.");
	SUM_COUNT(c, f, c->own, "sock_rx_ring_full", sock.rx_ring_full);
	SUM_COUNT(c, f, c->own, "drop_ring_full", xdp.ring_full);
	finding_number(f, "frames_not_taken", port_backlog(p));
	SUM_COUNT(c, f, c->own, "xdp_redirected", rx.redirected);
	SUM_COUNT(c, f, c->own, "sock_rx_frames", sock.rx_frames);
	return true;
}

bool explain_not_taken(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = c->own.port[1];

	if (!port_backlog(p) || !port_backlog(c->own.port[0]) ||
	    SUM_GROWN(c->own, sock.rx_frames) || port_ring_overflows(&c->own))
		return false;
	finding_say(f,
		    "%llu frames wait in the receive ring of process %u (%s), and it has read none "
		    "in %.1f s.",
		    (unsigned long long)port_backlog(p), p->pid, p->command, c->seconds);
	finding_advise(f, "Find out what it does: 'cat /proc/%u/stack', gdb -p %u, or top -H -p "
			  "%u.",
		       p->pid, p->pid, p->pid);
	finding_number(f, "frames_not_taken", port_backlog(p));
	finding_count(c, f, "wakeups", c->own.port[0]->wakeups, p->wakeups);
	finding_count(c, f, "unannounced", c->own.port[0]->unannounced, p->unannounced);
	return true;
}

bool explain_no_buffer(const struct explain_case *c, struct finding *f)
{
	const u64 lost = SUM_GROWN(c->own, sock.rx_dropped);

	if (!lost)
		return false;
	finding_say(f,
		    "%llu frames were lost in %.1f s because the socket had no receive buffer, or "
		    "because they are too long for this kernel.",
		    (unsigned long long)lost, c->seconds);
	finding_advise(f, "Before Linux 6.6 the path MTU must be at most 2048; otherwise the "
			  "process is too slow: see the remedy for a ring that overflows.");
	SUM_COUNT(c, f, c->own, "sock_rx_dropped", sock.rx_dropped);
	SUM_COUNT(c, f, c->own, "sock_rx_fill_ring_empty", sock.rx_fill_ring_empty);
	return true;
}

/* ---- send ---- */

bool explain_egress(const struct explain_case *c, struct finding *f)
{
	const u64 n = grown(c->own.port[0]->refused, c->own.port[1]->refused);

	if (!n)
		return false;
	finding_say(f,
		    "The broker of %s refuses to send frames of this process: %llu in %.1f s, "
		    "because their addresses, QP numbers, P_Key, length or connection manager "
		    "messages do not belong to the process or are not allowed.",
		    c->own.port[1]->dev, (unsigned long long)n, c->seconds);
	finding_advise(f, "As root, run 'bpftool map dump name xroce_refused', which has a counter "
			  "per reason. Check whether an address or the MTU of the interface was "
			  "changed.");
	finding_count(c, f, "refused", c->own.port[0]->refused, c->own.port[1]->refused);
	return true;
}

bool explain_tx_lost(const struct explain_case *c, struct finding *f)
{
	const u64 n = SUM_GROWN(c->own, engine.tx_lost);

	if (!n)
		return false;
	finding_say(f, "The kernel refused %llu frames that this process sent in %.1f s.",
		    (unsigned long long)n, c->seconds);
	finding_advise(f,
		       "Check for a rule of the host that drops them ('nft list ruleset', 'tc "
		       "filter show dev %s egress'). 'tc -s qdisc show dev %s' counts the drops of "
		       "the interface; 'xroce doctor %s' checks the ways to send.",
		       c->own.port[1]->dev, c->own.port[1]->dev, c->own.port[1]->dev);
	SUM_COUNT(c, f, c->own, "tx_lost", engine.tx_lost);
	SUM_COUNT(c, f, c->own, "tx_no_room", engine.tx_no_room);
	return true;
}

/* Reports packets that belong to no QP; a QP's packets are reported with the QP. */
bool explain_port_dropped(const struct explain_case *c, struct finding *f)
{
	const u64 n = SUM_GROWN(c->own, xdp.qp_unknown), mad = SUM_GROWN(c->own, xdp.no_socket);

	if (!n && !mad)
		return false;
	if (n)
		finding_say(f,
			    "%s dropped %llu packets in %.1f s because their queue pair does not "
			    "exist, or no longer exists.",
			    c->own.port[1]->by_sockets ? "The broker" : "XDP",
			    (unsigned long long)n, c->seconds);
	else
		finding_say(f,
			    "XDP dropped %llu packets in %.1f s because they arrived on a receive "
			    "queue without a socket.",
			    (unsigned long long)mad, c->seconds);
	finding_advise(f, n ? "A peer still sends to a destroyed QP, or uses a wrong QP number: "
			      "'xroce capture --drops -w FILE' shows the sender." :
			      "The interface has more receive queues than when the process "
			      "started: restart the process.");
	f->severity = EXPLAIN_NOTE;
	SUM_COUNT(c, f, c->own, "drop_qp_unknown", xdp.qp_unknown);
	SUM_COUNT(c, f, c->own, "drop_no_socket", xdp.no_socket);
	return true;
}

/* ---- the table of rules ---- */

enum rule_kind { RULE_PORT, RULE_CAUSE, RULE_SYMPTOM };

static const struct rule {
	const char *id;
	enum explain_severity severity;
	enum rule_kind kind;
	explain_fn *fn;
} rules[] = {
#define X(name, text, level, sort) { text, EXPLAIN_##level, RULE_##sort, explain_##name },
	EXPLAIN_RULES(X)
#undef X
};

/* ---- a finding ---- */

static void finding_print(char *to, size_t room, const char *fmt, va_list ap)
{
	const size_t used = strlen(to);

	vsnprintf(to + used, room - used, fmt, ap);
}

void finding_say(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finding_print(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void finding_guess(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finding_print(f->guess, sizeof(f->guess), fmt, ap);
	va_end(ap);
}

void finding_advise(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finding_print(f->advice, sizeof(f->advice), fmt, ap);
	va_end(ap);
}

void finding_number(struct finding *f, const char *name, u64 value)
{
	if (f->num_numbers < EXPLAIN_NUMBERS)
		f->number[f->num_numbers++] =
			(struct explain_number){ .name = name, .value = value };
}

void finding_count(const struct explain_case *c, struct finding *f, const char *name, u64 before,
		   u64 now)
{
	struct explain_number *n;

	if (f->num_numbers == EXPLAIN_NUMBERS)
		return;
	finding_number(f, name, now);
	n = &f->number[f->num_numbers - 1];
	n->has_rate = c->seconds > 0;
	n->rate = n->has_rate ? (double)grown(before, now) / c->seconds : 0;
}

/* ---- all findings ---- */

void findings_begin(struct findings *f)
{
	*f = (struct findings){ 0 };
}

void findings_end(struct findings *f)
{
	free(f->list);
	findings_begin(f);
}

static void findings_add(struct findings *f, const struct finding *one)
{
	f->list = memory_grow(f->list, f->num, &f->room, sizeof(*f->list));
	f->list[f->num++] = *one;
}

/*
 * A cause explains the symptoms of its QP; a port's cause, those of all QPs. It must be at least as
 * severe as the symptom.
 */
static bool finding_accounts(const struct finding *cause, const struct finding *symptom)
{
	return !cause->is_consequence && cause->severity != EXPLAIN_NOTE &&
	       cause->severity >= symptom->severity && rules[cause->rank].kind != RULE_SYMPTOM &&
	       (!cause->qpn || cause->qpn == symptom->qpn);
}

void explain_look(const struct explain_case *c, struct findings *f)
{
	for (u32 i = 0; i < ARRAY_SIZE(rules); i++) {
		struct finding one = { .id = rules[i].id,
				       .severity = rules[i].severity,
				       .rank = i };

		if ((rules[i].kind == RULE_PORT) == !!c->own.qp[1])
			continue;
		one.qpn = c->own.qp[1] ? c->own.qp[1]->qpn : 0;
		if (rules[i].fn(c, &one))
			findings_add(f, &one);
	}
}

/* Sorts consequences after all causes. */
static int finding_compare(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->is_consequence != y->is_consequence)
		return x->is_consequence ? 1 : -1;
	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->qpn < y->qpn ? -1 : x->qpn > y->qpn;
}

void explain_sort(struct findings *f)
{
	u32 n = 0;

	for (u32 i = 0; i < f->num; i++)
		for (u32 j = 0; rules[f->list[i].rank].kind == RULE_SYMPTOM && j < f->num; j++)
			f->list[i].is_consequence |= finding_accounts(&f->list[j], &f->list[i]);
	if (f->num)
		qsort(f->list, f->num, sizeof(*f->list), finding_compare);
	for (u32 i = 0; i < f->num; i++) {
		struct finding *last = n ? &f->list[n - 1] : NULL;

		if (last && last->rank == f->list[i].rank &&
		    last->severity == f->list[i].severity &&
		    last->is_consequence == f->list[i].is_consequence)
			last->more++;
		else
			f->list[n++] = f->list[i];
	}
	f->num = n;
}

enum explain_severity explain_worst(const struct findings *f)
{
	enum explain_severity worst = EXPLAIN_NOTE;

	for (u32 i = 0; i < f->num; i++)
		if (f->list[i].severity > worst)
			worst = f->list[i].severity;
	return worst;
}
