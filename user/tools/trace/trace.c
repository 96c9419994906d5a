/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce trace: prints packets and QP events of the engines, one per line, as they happen. */
#define _GNU_SOURCE /* strcasestr() */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "../../os/clock.h"
#include "../cli.h"
#include "../observe/observe_options.h"
#include "../output.h"
#include "tracer.h"

#define RING_BYTES (32u << 20)
#define LOOK_MS	   5 /* between two rounds */

struct trace {
	struct tracers tracers;
	struct tracer_want want;
	const char *dev, *opcode; /* NULL: all */
	u32 pid;
	bool errors, json, coloured;
	u64 max_lines, lines;	  /* max_lines 0: no limit */
	u64 until_ns, lost_told, interrupted_told;
	s64 real_ns;		  /* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	struct packets packets;
};

static _Atomic bool trace_ended;

static void trace_end(int sig)
{
	atomic_store_explicit(&trace_ended, true, memory_order_relaxed);
}

/* ---- a line ---- */

static void trace_print_head(const struct trace *t, const struct traced *from,
			     const struct xroce_record *r, const char *arrow)
{
	const u64 ns = r->cqe.rx_time_ns + (u64)t->real_ns;
	const time_t seconds = (time_t)(ns / NSEC_PER_SEC);
	char clock[16], name[OUTPUT_NAME];
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	printf("%s.%06u %s %s[%u] QP 0x%06x %s ", clock, (unsigned int)(ns % NSEC_PER_SEC / 1000),
	       output_name(from->iface, name), from->is_broker ? "nobody" : from->command,
	       from->pid, r->cqe.qpn, arrow);
}

static void trace_json_head(const struct trace *t, const struct traced *from,
			    const struct xroce_record *r, const char *kind, struct json *j)
{
	json_begin(j, stdout);
	j->is_compact = true;
	json_open_object(j, NULL);
	json_number(j, "time_ns", r->cqe.rx_time_ns + (u64)t->real_ns);
	json_text(j, "interface", from->iface);
	if (!from->is_broker) {
		json_number(j, "pid", from->pid);
		json_text(j, "command", from->command);
	}
	json_text(j, "kind", kind);
	json_number(j, "qpn", r->cqe.qpn);
}

static const char *trace_kind(const struct xroce_record *r, const char **arrow)
{
	switch (r->kind) {
	case XROCE_RECORD_RECEIVED: *arrow = "<"; return "received";
	case XROCE_RECORD_DROPPED: *arrow = "<!"; return "dropped";
	case XROCE_RECORD_SENT: *arrow = ">"; return "sent";
	case XROCE_RECORD_LOOPED: *arrow = "<>"; return "looped";
	default: *arrow = "*"; return "event";
	}
}

static void trace_event(struct trace *t, const struct traced *from, const struct xroce_record *r)
{
	struct xroce_trace_entry entry;
	char text[DECODE_TEXT];
	struct json j;
	bool trouble;

	memcpy(&entry, r->data, sizeof(entry));
	trouble = decode_event_is_trouble(&entry);
	if (t->opcode || (t->errors && !trouble))
		return;
	t->lines++;
	if (t->json) {
		trace_json_head(t, from, r, "event", &j);
		decode_event_json(&entry, &j);
		json_close(&j);
		json_end(&j);
		return;
	}
	decode_event(&entry, text, sizeof(text));
	trace_print_head(t, from, r, "*");
	printf(t->coloured && trouble ? "\033[31m%s\033[m\n" : "%s\n", text);
}

/* p NULL: not a valid packet. */
static void trace_packet(struct trace *t, const struct traced *from, const struct xroce_record *r,
			 const struct packet *p, u32 len)
{
	const char *arrow, *kind = trace_kind(r, &arrow), *name = NULL, *why = NULL;
	char text[DECODE_TEXT] = "";
	struct json j;

	if (r->kind == XROCE_RECORD_DROPPED)
		why = decode_drop(r->drop, &name);
	if ((t->errors && !why && p && !decode_is_trouble(p)) ||
	    (t->opcode && (!p || !strcasestr(opcode_name(p->opcode), t->opcode))))
		return;
	t->lines++;
	if (t->json) {
		trace_json_head(t, from, r, kind, &j);
		if (why) {
			json_text(&j, "reason", name);
			json_text(&j, "reason_text", why);
		}
		json_number(&j, "bytes", len);
		if (p)
			decode_json(p, &j);
		json_close(&j);
		json_end(&j);
		return;
	}
	if (p)
		decode_text(p, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%u bytes that are not a packet", len);
	trace_print_head(t, from, r, arrow);
	if (why)
		printf(t->coloured ? "%s, \033[31mdropped: %s (%s)\033[m\n" :
				     "%s, dropped: %s (%s)\n",
		       text, why, name);
	else
		printf("%s\n", text);
}

static bool trace_is_full(const struct trace *t)
{
	return t->max_lines && t->lines >= t->max_lines;
}

static void trace_record(void *arg, struct traced *from, struct xroce_record *r, u32 size)
{
	struct trace *t = arg;
	struct one_packet one;
	struct packet p;

	if (trace_is_full(t) || r->cqe.rx_time_ns >= t->until_ns)
		return;
	if (r->kind == XROCE_RECORD_EVENT) {
		trace_event(t, from, r);
		return;
	}
	packets_begin(&t->packets, r, size, false);
	while (!trace_is_full(t) && packets_next(&t->packets, &one))
		trace_packet(t, from, r, decode_parse(one.data, one.have, &p) ? &p : NULL, one.len);
}

/* ---- the command ---- */

/* Reports lost records and interruptions. */
static void trace_say_lost(struct trace *t)
{
	const u64 lost = tracers_lost(&t->tracers);

	if (t->tracers.interrupted != t->interrupted_told)
		fprintf(stderr,
			"xroce trace: the command was stopped for longer than %llu s; events of "
			"that time are neither shown nor counted\n",
			XROCE_TRACE_LEASE / NSEC_PER_SEC);
	t->interrupted_told = t->tracers.interrupted;
	if (lost == t->lost_told)
		return;
	fprintf(stderr, "xroce trace: %llu records were lost because they arrived faster than they "
			"were written\n",
		(unsigned long long)(lost - t->lost_told));
	t->lost_told = lost;
}

static int trace_run(struct trace *t)
{
	bool stopped = false, noted = false;
	int n;

	for (;;) {
		n = tracers_round(&t->tracers, trace_record, t);
		if (fflush(stdout) || n < 0 || t->tracers.err == -EPERM ||
		    tracers_are_read(&t->tracers) || trace_is_full(t))
			break;
		trace_say_lost(t);
		tracers_complain(&t->tracers, "trace");
		if (!noted && tracers_num(&t->tracers))
			terminal_note("xroce trace: tracing %u process%s; ^C stops",
				      tracers_num(&t->tracers),
				      tracers_num(&t->tracers) == 1 ? "" : "es");
		noted |= tracers_num(&t->tracers) != 0;
		if (atomic_load_explicit(&trace_ended, memory_order_relaxed) ||
		    clock_now_ns() >= t->until_ns) {
			if (!stopped)
				tracers_stop(&t->tracers);
			stopped = true;
			continue;
		}
		if (output_wait(LOOK_MS))
			break;
	}
	trace_say_lost(t);
	tracers_complain(&t->tracers, "trace");
	if (n < 0)
		fprintf(stderr, "xroce trace: cannot inspect the processes: %s\n", strerror(-n));
	return n < 0 || t->tracers.err == -EPERM || t->tracers.err == -EBUSY ? EXIT_FAILED :
									       EXIT_OK;
}

static const struct cli_option trace_options[] = {
	{ 'O', "opcode", "TEXT",
	  "select packets with TEXT in the name of the opcode, such as\n"
	  "READ or 'RC SEND'", NULL },
	{ 'E', "events", NULL, "print only events", NULL },
	{ 'e', "errors", NULL,
	  "print only drops, NAKs, congestion and events that indicate\n"
	  "a problem", NULL },
	{ 'c', "count", "N", "stop after N lines", "a number from 1 on" },
	{ 'j', "json", NULL, "print one JSON object per line", NULL },
	{ 0 },
};

static int trace_option(void *arg, int opt, char *value)
{
	struct trace *t = arg;
	bool ok = true;

	switch (opt) {
	case 'O': t->opcode = value; break;
	case 'E': t->want.what = XROCE_TRACE_EVENTS; break;
	case 'e': t->errors = true; break;
	case 'c': ok = cli_number(value, 1, UINT64_MAX, &t->max_lines); break;
	case 'j': t->json = true; break;
	default: ok = tracers_option(&t->want, &t->pid, &t->until_ns, opt, value); break;
	}
	return ok ? EXIT_OK : CLI_REFUSED;
}

static int trace_main(int argc, char **argv)
{
	static struct trace t = {
		.want = { .what = XROCE_TRACE_RECEIVED | XROCE_TRACE_DROPPED | XROCE_TRACE_SENT |
				  XROCE_TRACE_EVENTS,
			  .bytes = UINT32_MAX,
			  .ring_bytes = RING_BYTES },
		.until_ns = NSEC_NEVER,
	};
	struct sigaction action = { .sa_handler = trace_end };
	struct netdev dev;
	int ret = cli_parse(&command_trace, &argc, &argv, trace_option, &t);

	if (ret)
		return ret;
	if (argc > 1)
		return usage_error(&command_trace, "more than one interface");
	if (argc) {
		t.dev = argv[0];
		ret = find_device(&command_trace, t.dev, &dev);
		if (ret)
			return ret;
	}
	ret = observe_options_raise_limit(&command_trace);
	if (ret)
		return ret;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	t.coloured = terminal_is_coloured(stdout);
	t.real_ns = tracers_real_ns();
	tracers_begin(&t.tracers, &t.want, t.dev, t.pid);
	ret = trace_run(&t);
	tracers_end(&t.tracers);
	tracers_say_end(&t.tracers, "trace");
	return ret;
}

const struct command command_trace = {
	.name = "trace",
	.summary = "print packets and queue pair events as they happen",
	.main = trace_main,
	.help = "usage: xroce trace [OPTION...] [IFACE]\n"
		"\n"
		"Prints a line for each packet that programs on xroce receive, send or drop, and\n"
		"for each event of their queue pairs: retransmissions, NAKs and RNR NAKs in both\n"
		"directions, time-outs, state changes, errors, congestion notifications. Runs\n"
		"until it is stopped (SIGINT, SIGTERM), for all interfaces or for IFACE,\n"
		"including programs that start later. Tracing delays no process: records that are\n"
		"not read in time are lost, and their number is reported.\n"
		"\n"
		"  <   received         >   sent          <>  sent to the process itself\n"
		"  <!  dropped by XDP   *   event\n"
		"\n",
	.letters = "qpQD",
	.options = trace_options,
	.help_end =
		"\n"
		"Needs root; for the user's own processes a broker (xroce serve) is enough.\n"
		"Exit status: 0; 1 if it failed; 2 for wrong usage or no such interface.\n",
};
