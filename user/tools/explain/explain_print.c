/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "explain_print.h"
#include "explain_rule.h"
#include "../observe/observe_options.h"

/* Queue pairs printed of a process; findings cover all of them. */
#define PRINT_QPS 8u

const char *explain_severity_name(enum explain_severity severity)
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
		     "; XDP dropped %" PRIu64 "; the kernel refused %" PRIu64 " of the frames sent",
		     SUM_GROWN(end, sock.rx_frames),
		     SUM_GROWN(end, sock.rx_ring_full) + SUM_GROWN(end, sock.rx_dropped) +
			     SUM_GROWN(end, xdp.ring_full),
		     SUM_GROWN(end, rx.dropped), SUM_GROWN(end, engine.tx_lost));
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

void explain_print(const struct explained *e, FILE *out, u32 width, bool is_coloured)
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

	json_object(j, NULL);
	json_number(j, "qpn", q->qpn);
	json_text(j, "type",
		  observe_options_transport(q->has_stat ? s->transport : q->steer.transport));
	if (q->has_stat) {
		json_text(j, "state", observe_options_state(s->state));
		json_text(j, "peer", observe_options_gid(s->peer, text));
		json_number(j, "peer_qpn", s->peer_qpn);
		json_bool(j, "peer_is_here", c->has_peer);
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
	json_object(j, NULL);
	json_text(j, "id", f->id);
	json_text(j, "severity", explain_severity_name(f->severity));
	json_bool(j, "is_consequence", f->is_consequence);
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
	json_array(j, "numbers");
	for (u32 i = 0; i < f->num_numbers; i++) {
		json_object(j, NULL);
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

void explain_json(const struct explained *e, struct json *j)
{
	const enum explain_severity worst = explain_worst(e->findings);

	json_object(j, NULL);
	json_text(j, "dev", e->port[1]->dev);
	json_number(j, "pid", e->port[1]->pid);
	json_text(j, "command", e->port[1]->command);
	json_real(j, "seconds", e->seconds, 3);
	json_text(j, "verdict", worst == EXPLAIN_NOTE ? "nothing" : explain_severity_name(worst));
	json_array(j, "qps");
	for (u32 i = 0; i < e->num_cases; i++)
		json_qp(j, &e->cases[i], e->seconds);
	json_close(j);
	json_array(j, "findings");
	for (u32 i = 0; i < e->findings->num; i++)
		json_finding(j, &e->findings->list[i]);
	json_close(j);
	json_close(j);
}
