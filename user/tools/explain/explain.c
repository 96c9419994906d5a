/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce explain: why a queue pair or a process is in error, slow or silent. Reads twice
 * (explain_gather.c), applies the rules, and prints the findings of one process at a time, as text
 * or JSON.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "../memory.h"
#include "../observe/observe_options.h"
#include "../output.h"
#include "explain_gather.h"
#include "explain_rule.h"

/* Queue pairs printed of a process; findings cover all of them. */
#define PRINT_QPS 8u

/* A process, its QPs that were read, and their findings. */
struct explained {
	const struct explain_port *port[2];
	u32 num_cases;
	const struct explain_case *cases; /* one per QP */
	const struct findings *findings;
	double seconds;
};

/* Returns "broken", "slow" or "note". */
static const char *explain_severity_name(enum explain_severity severity)
{
	static const char *const names[] = {
		[EXPLAIN_NOTE] = "note", [EXPLAIN_SLOW] = "slow", [EXPLAIN_BROKEN] = "broken"
	};

	return names[severity];
}

/* ---- paragraphs ---- */

struct paragraph {
	FILE *out;
	u32 width, indent, column;
};

static void paragraph_word(struct paragraph *p, const char *word, size_t len)
{
	if (p->column > p->indent && p->column + 1 + len > p->width) {
		fprintf(p->out, "\n%*s", (int)p->indent, "");
		p->column = p->indent;
	} else if (p->column > p->indent) {
		fputc(' ', p->out);
		p->column++;
	}
	/* names are foreign input; a terminal would execute escape sequences in them */
	for (size_t i = 0; i < len; i++)
		fputc(word[i] < ' ' || word[i] > '~' ? '?' : word[i], p->out);
	p->column += (u32)len;
}

static void paragraph_text(struct paragraph *p, const char *text)
{
	while (*text) {
		const size_t len = strcspn(text, " ");

		if (len)
			paragraph_word(p, text, len);
		text += len + (text[len] == ' ');
	}
}

/* A sentence composed of several pieces. */
struct sentence {
	char text[1400];
};

static void sentence_add(struct sentence *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void sentence_add(struct sentence *s, const char *fmt, ...)
{
	const size_t used = strlen(s->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->text + used, sizeof(s->text) - used, fmt, ap);
	va_end(ap);
}

/* Begins a paragraph with a lead word; further lines are indented. */
static struct paragraph paragraph_begin(FILE *out, u32 width, const char *colour, const char *lead,
					u32 indent)
{
	fprintf(out, "  %s%-*s%s", colour, (int)indent - 2, lead, *colour ? "\033[0m" : "");
	return (struct paragraph){ .out = out, .width = width, .indent = indent, .column = indent };
}

static void print_paragraph(FILE *out, u32 width, u32 indent, const char *text)
{
	struct paragraph p = paragraph_begin(out, width, "", "", indent);

	paragraph_text(&p, text);
	fputc('\n', out);
}

/* ---- activity ---- */

static double mega(u64 bytes)
{
	return (double)bytes / 1e6;
}

static void print_qp(const struct explained *e, const struct explain_case *c, FILE *out, u32 width)
{
	const struct explain_qp *q = c->own.qp[1];
	const struct xroce_qp_stat *s = &q->stat;
	struct sentence line = { "" };
	char text[46];

	if (!q->has_stat) {
		sentence_add(&line, "QP 0x%06x (%s): of an older library, which publishes few "
				    "counters",
			     q->qpn, observe_options_transport(q->steer.transport));
		print_paragraph(out, width, 4, line.text);
		return;
	}
	sentence_add(&line, "QP 0x%06x (%s, %s", q->qpn, observe_options_transport(s->transport),
		     observe_options_state(s->state));
	if (s->transport != XROCE_UD && s->peer_qpn)
		sentence_add(&line, ", to %s QP 0x%06x%s", observe_options_gid(s->peer, text),
			     s->peer_qpn & 0xffffff, c->has_peer ? ", on this host" : "");
	sentence_add(&line,
		     "): in %.1f s sent %" PRIu64 " packets (%.2f MB), received %" PRIu64
		     " (%.2f MB); retransmitted %" PRIu64 ", refused %" PRIu64 ", in flight %u",
		     e->seconds, QP_GROWN(c->own, tx_packets), mega(QP_GROWN(c->own, tx_bytes)),
		     QP_GROWN(c->own, rx_packets), mega(QP_GROWN(c->own, rx_bytes)),
		     QP_GROWN(c->own, tx_retransmitted),
		     QP_GROWN(c->own, rx_dropped) +
			     grown(c->own.qp[0]->steer.rx_dropped, q->steer.rx_dropped),
		     s->outstanding);
	if (s->rtt_ns)
		sentence_add(&line, "; round trip %.0f us", (double)s->rtt_ns / 1000);
	print_paragraph(out, width, 4, line.text);
}

static void print_port(const struct explained *e, FILE *out, u32 width)
{
	const struct explain_end end = { .port = { e->port[0], e->port[1] } };
	struct sentence line = { "" };

	sentence_add(&line,
		     "its rings: received %" PRIu64 " frames, lost %" PRIu64
		     "; %s dropped %" PRIu64 "; the kernel refused %" PRIu64 " of the frames sent",
		     SUM_GROWN(end, sock.rx_frames),
		     SUM_GROWN(end, sock.rx_ring_full) + SUM_GROWN(end, sock.rx_dropped) +
			     SUM_GROWN(end, xdp.ring_full),
		     e->port[1]->by_sockets ? "checks" : "XDP", SUM_GROWN(end, rx.dropped),
		     SUM_GROWN(end, engine.tx_lost));
	print_paragraph(out, width, 4, line.text);
}

/* ---- findings ---- */

static void print_numbers(const struct finding *f, FILE *out, u32 width)
{
	struct sentence line = { "[" };

	for (u32 i = 0; i < f->num_numbers; i++) {
		const struct explain_number *n = &f->number[i];

		sentence_add(&line, "%s%s%s %" PRIu64, i ? ", " : "", n->is_peers ? "peer's " : "",
			     n->name, n->value);
		if (n->has_rate && n->rate > 0)
			sentence_add(&line, " (+%.0f/s)", n->rate);
	}
	sentence_add(&line, "]");
	if (f->num_numbers)
		print_paragraph(out, width, 10, line.text);
}

static void print_finding(const struct finding *f, FILE *out, u32 width, bool is_coloured)
{
	static const char *const colours[] = {
		[EXPLAIN_NOTE] = "", [EXPLAIN_SLOW] = "\033[33m", [EXPLAIN_BROKEN] = "\033[31m"
	};
	const char *lead = f->is_consequence ? "so" : explain_severity_name(f->severity);
	struct paragraph p =
		paragraph_begin(out, width, is_coloured ? colours[f->severity] : "", lead, 10);
	struct sentence line = { "" };

	if (f->qpn && f->more)
		sentence_add(&line, "QP 0x%06x and %u more: ", f->qpn, f->more);
	else if (f->qpn)
		sentence_add(&line, "QP 0x%06x: ", f->qpn);
	sentence_add(&line, "%s", f->text);
	/* a symptom with a known cause needs no guess */
	if (*f->guess && !f->is_consequence)
		sentence_add(&line, " %s", f->guess);
	paragraph_text(&p, line.text);
	fputc('\n', out);
	print_numbers(f, out, width);
	if (!*f->advice || f->is_consequence)
		return;
	line = (struct sentence){ "-> " };
	sentence_add(&line, "%s", f->advice);
	print_paragraph(out, width, 10, line.text);
}

/* width: columns of a line. */
static void explain_print(const struct explained *e, FILE *out, u32 width, bool is_coloured)
{
	const struct explain_port *port = e->port[1];
	const u32 shown = e->num_cases < PRINT_QPS ? e->num_cases : PRINT_QPS;
	char dev[OUTPUT_NAME];

	fprintf(out, "%s: process %u (%s), two samples %.1f s apart\n",
		output_name(port->dev, dev), port->pid, port->command, e->seconds);
	for (u32 i = 0; i < shown; i++)
		print_qp(e, &e->cases[i], out, width);
	if (shown < e->num_cases)
		fprintf(out, "    and %u more queue pairs\n", e->num_cases - shown);
	print_port(e, out, width);
	fputc('\n', out);
	if (explain_worst(e->findings) == EXPLAIN_NOTE)
		fprintf(out, "  No problem found.\n");
	for (u32 i = 0; i < e->findings->num; i++)
		print_finding(&e->findings->list[i], out, width, is_coloured);
}

/* ---- JSON ---- */

static void json_qp(struct json *j, const struct explain_case *c, double seconds)
{
	const struct explain_qp *q = c->own.qp[1];
	const struct xroce_qp_stat *s = &q->stat;
	char text[46];

	json_open_object(j, NULL);
	json_number(j, "qpn", q->qpn);
	json_text(j, "type",
		  observe_options_transport(q->has_stat ? s->transport : q->steer.transport));
	if (q->has_stat) {
		json_text(j, "state", observe_options_state(s->state));
		json_text(j, "peer", observe_options_gid(s->peer, text));
		json_number(j, "peer_qpn", s->peer_qpn);
		json_boolean(j, "peer_is_here", c->has_peer);
		json_number(j, "outstanding", s->outstanding);
		json_number(j, "rtt_ns", s->rtt_ns);
		json_real(j, "tx_packets_per_s", (double)QP_GROWN(c->own, tx_packets) / seconds, 1);
		json_real(j, "tx_bytes_per_s", (double)QP_GROWN(c->own, tx_bytes) / seconds, 1);
		json_real(j, "rx_packets_per_s", (double)QP_GROWN(c->own, rx_packets) / seconds, 1);
		json_real(j, "rx_bytes_per_s", (double)QP_GROWN(c->own, rx_bytes) / seconds, 1);
	}
	json_close(j);
}

static void json_finding(struct json *j, const struct finding *f)
{
	json_open_object(j, NULL);
	json_text(j, "id", f->id);
	json_text(j, "severity", explain_severity_name(f->severity));
	json_boolean(j, "is_consequence", f->is_consequence);
	if (f->qpn)
		json_number(j, "qpn", f->qpn);
	else
		json_null(j, "qpn");
	json_number(j, "more_qps", f->more);
	json_text(j, "text", f->text);
	if (*f->guess)
		json_text(j, "guess", f->guess);
	else
		json_null(j, "guess");
	json_text(j, "advice", f->advice);
	json_open_array(j, "numbers");
	for (u32 i = 0; i < f->num_numbers; i++) {
		json_open_object(j, NULL);
		json_text(j, "name", f->number[i].name);
		json_text(j, "end", f->number[i].is_peers ? "peer" : "own");
		json_number(j, "value", f->number[i].value);
		if (f->number[i].has_rate)
			json_real(j, "per_second", f->number[i].rate, 1);
		else
			json_null(j, "per_second");
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

/* Adds an object to the open array. */
static void explain_json(const struct explained *e, struct json *j)
{
	const enum explain_severity worst = explain_worst(e->findings);

	json_open_object(j, NULL);
	json_text(j, "dev", e->port[1]->dev);
	json_number(j, "pid", e->port[1]->pid);
	json_text(j, "command", e->port[1]->command);
	json_real(j, "seconds", e->seconds, 3);
	json_text(j, "verdict", worst == EXPLAIN_NOTE ? "nothing" : explain_severity_name(worst));
	json_open_array(j, "qps");
	for (u32 i = 0; i < e->num_cases; i++)
		json_qp(j, &e->cases[i], e->seconds);
	json_close(j);
	json_open_array(j, "findings");
	for (u32 i = 0; i < e->findings->num; i++)
		json_finding(j, &e->findings->list[i]);
	json_close(j);
	json_close(j);
}

/* ---- the state of the command ---- */

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
	struct explain_case port = { 0 };
	struct explain_case *cases = memory_need(calloc(now->num_qps + 1u, sizeof(*cases)));
	struct findings f;
	u32 num = 0;

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

	int ret = EXIT_OK;

	/* prints that its processes are not examined */
	if (*l->silent || l->err)
		ret = observe_options_ends(l, x->found, "queue pair or process");
	if (x->found)
		return x->worst > EXPLAIN_NOTE ? EXIT_FOUND : ret;
	if (ret)
		return ret;
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
			json_open_object(&x->json, NULL);
			json_open_array(&x->json, "processes");
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
	int ret = observe_options_begin(&l, &command_explain, &argc, &argv);

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
	else if (argc && !cli_number32(argv[0], 0, UINT_MAX, &number))
		ret = usage_error(&command_explain, "'%s' is neither a QP number nor a PID",
				  argv[0]);
	else
		ret = explain_run(&x, argc ? argv[0] : NULL, number);
	observe_options_end(&l);
	return ret;
}

const struct command command_explain = {
	.name = "explain",
	.summary = "explain why a queue pair or process is in error, slow or idle",
	.main = explain_main,
	.help = "usage: xroce explain [OPTION...] [QPN|PID]\n"
		"\n"
		"Takes two samples of a queue pair, or of all queue pairs of a process, 1 s apart\n"
		"or as --interval says. Prints the problems, the likeliest cause first, with the\n"
		"numbers that show them and the remedy, or that it found no problem. Without a\n"
		"number it examines all processes.\n"
		"\n",
	.letters = "dpqPij",
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
