/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce explain: why a queue pair or a process is in error, slow or silent. */
#include <stdlib.h>
#include <time.h>

#include "explain_gather.h"
#include "explain_print.h"
#include "../terminal.h"

enum { EXIT_FOUND = 3 };

#define INTERVAL_MS 1000u
#define LINE	    100u /* width if the output is not a terminal */

struct explain {
	struct observe_options *look;
	struct gathered before, now;
	struct json json;
	u32 found;
	enum explain_severity worst;
};

/* ---- selection ---- */

static bool explain_has_qp(const struct gathered *g, u32 qpn)
{
	for (u32 i = 0; i < g->num; i++)
		if (g->list[i].port.has_iface && gathered_qp(&g->list[i], qpn))
			return true;
	return false;
}

static bool explain_has_pid(const struct gathered *g, u32 pid)
{
	for (u32 i = 0; i < g->num; i++)
		if (g->list[i].port.has_iface && g->list[i].port.pid == pid)
			return true;
	return false;
}

/* Sets the filter from the argument, a QPN or a PID. Returns EXIT_OK or EXIT_USAGE. */
static int explain_target(struct explain *x, const char *text, u32 number)
{
	const bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const bool qp = explain_has_qp(&x->before, number),
		   pid = !is_hex && explain_has_pid(&x->before, number);

	if (qp && pid)
		return usage_error(x->look->command,
				   "%s is both a queue pair and a process; use --qpn or --pid",
				   text);
	x->look->has_pid = pid;
	x->look->pid = number;
	x->look->has_qpn = !pid;
	x->look->qpn = number;
	return EXIT_OK;
}

static bool explain_wants_port(const struct observe_options *l, const struct explain_port *p)
{
	/* ports of other network namespaces serve only as peers */
	return p->has_iface && (!l->has_pid || p->pid == l->pid);
}

static bool explain_wants_qp(const struct observe_options *l, const struct explain_qp *q)
{
	const u8 *peer = q->has_stat ? q->stat.peer : q->steer.peer;

	return (!l->has_qpn || q->qpn == l->qpn) &&
	       (!l->has_peer || !memcmp(peer, l->peer.raw, sizeof(l->peer.raw)));
}

/* ---- one process ---- */

static bool explain_is_own_address(const struct observe_options *l, const u8 gid[16])
{
	const struct observer *o = &l->observer;

	for (u32 i = 0; i < o->num_ifaces; i++) {
		struct netdev dev;

		if (netdev_find(o->ifaces[i].name, &dev))
			continue;
		for (u32 k = 0; k < dev.num_gids; k++)
			if (!memcmp(dev.gid[k].gid.raw, gid, 16))
				return true;
	}
	return false;
}

/* Sets both readings of a port; a port that is missing in the first has its second twice. */
static void explain_end_port(const struct explain *x, struct explain_end *e,
			     const struct gathered_port *now)
{
	const struct gathered_port *before = gathered_find(&x->before, now->port.prog_id);

	e->port[1] = &now->port;
	e->port[0] = before ? &before->port : &now->port;
}

static void explain_end_qp(const struct explain *x, struct explain_end *e,
			   const struct gathered_port *now, const struct explain_qp *q)
{
	const struct explain_qp *before =
		gathered_qp(gathered_find(&x->before, now->port.prog_id), q->qpn);

	e->qp[1] = q;
	e->qp[0] = before && before->has_stat == q->has_stat ? before : q;
}

static void explain_peer(const struct explain *x, struct explain_case *c)
{
	const struct explain_qp *q = c->own.qp[1], *peer;
	const struct gathered_port *port = NULL;

	peer = gathered_peer(&x->now, q, &port);
	if (peer) {
		c->has_peer = true;
		explain_end_port(x, &c->peer, port);
		explain_end_qp(x, &c->peer, port, peer);
		return;
	}
	c->is_peer_gone = q->has_stat && q->stat.peer_qpn && q->stat.transport != XROCE_UD &&
			  q->stat.state >= XROCE_QPS_RTR && x->now.is_whole && !x->look->dev &&
			  !explain_has_qp(&x->now, q->stat.peer_qpn) &&
			  explain_is_own_address(x->look, q->stat.peer);
}

static double explain_seconds(const struct explain_end *e)
{
	const u64 ns = grown(e->port[0]->time_ns, e->port[1]->time_ns);

	return ns ? (double)ns / 1e9 : 1;
}

static void explain_say(struct explain *x, const struct explain_case *port,
			const struct explain_case *cases, u32 num, const struct findings *f)
{
	const struct explained e = { .port = { port->own.port[0], port->own.port[1] },
				     .num_cases = num,
				     .cases = cases,
				     .findings = f,
				     .seconds = port->seconds };
	u32 width, lines;

	if (x->look->json) {
		explain_json(&e, &x->json);
		return;
	}
	terminal_size(stdout, &width, &lines);
	if (x->found)
		putchar('\n');
	explain_print(&e, stdout, width > 40 ? width : LINE, terminal_is_coloured(stdout));
}

static void explain_port(struct explain *x, const struct gathered_port *now)
{
	struct explain_case port = { 0 }, *cases = calloc(now->num_qps + 1u, sizeof(*cases));
	struct findings f;
	u32 num = 0;

	if (!cases) {
		fprintf(stderr, "xroce: out of memory\n");
		exit(EXIT_FAILED);
	}
	explain_end_port(x, &port.own, now);
	port.seconds = explain_seconds(&port.own);
	for (u32 i = 0; i < now->num_qps; i++) {
		struct explain_case *c = &cases[num];

		if (!explain_wants_qp(x->look, &now->qps[i]))
			continue;
		*c = port;
		explain_end_qp(x, &c->own, now, &now->qps[i]);
		explain_peer(x, c);
		num++;
	}
	if (num || (!x->look->has_qpn && !x->look->has_peer)) {
		findings_begin(&f);
		explain_look(&port, &f);
		for (u32 i = 0; i < num; i++)
			explain_look(&cases[i], &f);
		explain_sort(&f);
		explain_say(x, &port, cases, num, &f);
		if (explain_worst(&f) > x->worst)
			x->worst = explain_worst(&f);
		findings_end(&f);
		x->found++;
	}
	free(cases);
}

/* ---- the command ---- */

static void explain_wait(u32 ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static int explain_ends(const struct explain *x)
{
	const struct observe_options *l = x->look;
	const char *name = l->command->name;

	if (*l->silent && !x->found)
		return observe_options_ends(l, 0, "queue pair or process");
	if (x->found)
		return x->worst > EXPLAIN_NOTE ? EXIT_FOUND : EXIT_OK;
	if (x->before.is_whole && !l->has_pid && !l->has_qpn && !l->has_peer) {
		fprintf(stderr, "xroce %s: no process uses an interface here\n", name);
		return EXIT_FAILED;
	}
	fprintf(stderr, "xroce %s: no such queue pair or process%s\n", name,
		x->before.is_whole ? "" : ", or permission denied for this user");
	return EXIT_FAILED;
}

static int explain_run(struct explain *x, const char *target, u32 number)
{
	struct observe_options *l = x->look;
	const bool has_pid = l->has_pid;
	int ret = EXIT_OK;

	/* the peer may belong to any process */
	l->has_pid = false;
	gather(l, &x->before);
	if (target)
		ret = explain_target(x, target, number);
	else
		l->has_pid = has_pid;
	if (!ret) {
		const bool wants_pid = l->has_pid;

		explain_wait(l->interval_ms ? l->interval_ms : INTERVAL_MS);
		l->has_pid = false;
		gather(l, &x->now);
		l->has_pid = wants_pid;
		if (l->json) {
			json_begin(&x->json, stdout);
			json_object(&x->json, NULL);
			json_array(&x->json, "processes");
		}
		for (u32 i = 0; i < x->now.num; i++)
			if (explain_wants_port(l, &x->now.list[i].port))
				explain_port(x, &x->now.list[i]);
		if (l->json) {
			json_close(&x->json);
			json_close(&x->json);
			json_end(&x->json);
		}
		ret = explain_ends(x);
	}
	gathered_end(&x->before);
	gathered_end(&x->now);
	return ret;
}

static int explain_main(int argc, char **argv)
{
	struct explain x = { 0 };
	struct observe_options l;
	u32 number = 0;
	int ret = observe_options_begin(&l, &command_explain, "dpqPij", &argc, &argv);

	if (ret)
		return ret;
	x.look = &l;
	if (argc > 1)
		ret = usage_error(&command_explain, "unexpected argument '%s' after the queue pair "
						    "or process",
				  argv[1]);
	else if (argc && (l.has_qpn || l.has_pid))
		ret = usage_error(&command_explain, "'%s' cannot be used with --qpn or --pid",
				  argv[0]);
	else if (argc && !observe_options_number(argv[0], &number))
		ret = usage_error(&command_explain, "'%s' is neither a QP number nor a PID",
				  argv[0]);
	else
		ret = explain_run(&x, argc ? argv[0] : NULL, number);
	observe_options_end(&l);
	return ret;
}

static void explain_options(void)
{
	observe_options_print_options("dpqPij");
}

const struct command command_explain = {
	.name = "explain",
	.summary = "explain why a queue pair or process is in error, slow or idle",
	.main = explain_main,
	.help = "usage: xroce explain [OPTION...] [QPN|PID]\n"
		"\n"
		"Takes two samples of a queue pair, or of all queue pairs of a process, and\n"
		"prints the problems, the likeliest cause first, with the numbers that show them\n"
		"and the remedy, or that it found no problem. Without a number it examines all\n"
		"processes.\n"
		"\n",
	.print_options = explain_options,
	.help_end =
		"\n"
		"A number with 0x is a QP number. The peer of a connection is examined as well if\n"
		"it is on this host.\n"
		"\n"
		"  broken  does not work\n"
		"  slow    works with reduced performance\n"
		"  note    information, not a problem\n"
		"  so      consequence of a problem above\n"
		"\n"
		"Exit status: 0 if no problem was found; 1 if there is no such queue pair or\n"
		"process, or it may not be inspected; 2 for wrong usage; 3 if there is a problem.\n"
		"\n"
		"Examples:\n"
		"  xroce explain 0x8001f3\n"
		"  xroce explain --interval 5 4711\n"
		"  xroce explain --peer 192.0.2.7 --json | jq -r '.processes[].findings[].id'\n",
};
