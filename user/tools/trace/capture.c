/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce capture: writes RoCEv2 packets, which XDP takes before the kernel's taps, to a pcapng file.
 * XDP's verdict is each packet's comment.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../os/clock.h"
#include "capture.h"
#include "../cli.h"
#include "../observe/observe_options.h"
#include "../output.h"

#define SNAPLEN_ALL   65616u
#define RING_BYTES    (32u << 20)
#define RING_BYTES_MAX (1u << 30)
#define BUSY_MS	      1	 /* longest pause between two rounds with records */
#define IDLE_MS	      20 /* longest pause between two rounds without records */

struct capture {
	struct capture_file file;
	struct tracer_want want;
	const char *dev;
	u32 pid;
	u32 snaplen;
	u64 max_packets; /* 0: no limit */
	u64 until_ns;
	u64 received, dropped, sent;
	s64 real_ns;	/* CLOCK_REALTIME minus CLOCK_MONOTONIC */
	struct tracers tracers;
	struct packets packets;
	int err;
};

static _Atomic bool capture_ended;

static void capture_end(int sig)
{
	atomic_store_explicit(&capture_ended, true, memory_order_relaxed);
}

/* ---- a record ---- */

/* Formats the CQE that XDP wrote in front of the packet. */
static void capture_say_cqe(const struct xroce_record *r, char *text, size_t n)
{
	const struct xroce_rx_cqe *c = &r->cqe;
	int at = snprintf(text, n, "CQE: QP 0x%06x, %s, byte_len %u, tos 0x%02x, queue %u", c->qpn,
			  opcode_name(c->opcode), c->byte_len, c->tos, r->queue);
#define MORE(...)                                                                                  \
	do {                                                                                       \
		if (at >= 0 && (size_t)at < n)                                                     \
			at += snprintf(text + at, n - (size_t)at, __VA_ARGS__);                    \
	} while (0)

	if (c->src_qpn)
		MORE(", source QP 0x%06x", c->src_qpn);
	if (c->flags & XROCE_RX_IMM)
		MORE(", immediate 0x%08x", ntohl(c->imm));
	if (c->flags & XROCE_RX_INV)
		MORE(", invalidates R_Key 0x%08x", ntohl(c->imm));
	if (c->flags & XROCE_RX_SOLICITED)
		MORE(", solicited");
	if (c->flags & XROCE_RX_CE)
		MORE(", congestion experienced");
	if (c->flags & XROCE_RX_VLAN)
		MORE(", VLAN TCI 0x%04x", c->vlan_tci);
#undef MORE
}

static void capture_say(const struct capture *c, const struct traced *from,
			const struct xroce_record *r, const struct one_packet *one, char *text,
			size_t n)
{
	const struct packets *p = &c->packets;
	char what[512], who[64] = "", part[96] = "";
	const char *name, *why;

	if (r->kind == XROCE_RECORD_DROPPED) {
		why = decode_drop(r->drop, &name);
		snprintf(what, sizeof(what), "dropped: %s (%s)", why, name);
	} else if (r->kind == XROCE_RECORD_RECEIVED) {
		capture_say_cqe(r, what, sizeof(what));
	} else {
		snprintf(what, sizeof(what), "sent by QP 0x%06x%s", r->cqe.qpn,
			 r->kind == XROCE_RECORD_LOOPED ? " to a QP of this process" : "");
	}
	if (from->is_broker)
		snprintf(who, sizeof(who), "; of no process");
	else if (from->pid)
		snprintf(who, sizeof(who), "; pid %u (%s)", from->pid, from->command);
	if (p->num > 1)
		snprintf(part, sizeof(part), "; packet %u of %u of a super-packet", one->nth,
			 p->num);
	else if (p->is_cut_off)
		snprintf(part, sizeof(part), "; an incomplete super-packet, not split");
	snprintf(text, n, "%s%s%s", what, part, who);
}

static bool capture_is_full(const struct capture *c)
{
	return c->max_packets && c->received + c->dropped + c->sent >= c->max_packets;
}

static void capture_record(void *arg, struct traced *from, struct xroce_record *r, u32 size)
{
	const bool dropped = r->kind == XROCE_RECORD_DROPPED;
	const bool received = r->kind == XROCE_RECORD_RECEIVED;
	struct capture *c = arg;
	struct one_packet one;
	char text[PCAPNG_COMMENT_MAX];

	if (c->err || r->kind == XROCE_RECORD_EVENT || r->kind == XROCE_RECORD_TRACE ||
	    r->cqe.rx_time_ns >= c->until_ns)
		return;
	packets_begin(&c->packets, r, size, from->prog_id & ASK_NO_PROGRAM);
	while (!c->err && !capture_is_full(c) && packets_next(&c->packets, &one)) {
		struct pcapng_packet packet = {
			.time_ns = r->cqe.rx_time_ns + (u64)c->real_ns,
			.data = one.data,
			.captured = min_u32(one.have, c->snaplen),
			.len = one.len,
			.direction = dropped || received ? PCAPNG_INBOUND : PCAPNG_OUTBOUND,
			.comment = text,
		};

		capture_say(c, from, r, &one, text, sizeof(text));
		c->err = capture_file_put(&c->file, from->iface, &packet,
					  tracers_lost(&c->tracers));
		if (dropped)
			c->dropped++;
		else if (received)
			c->received++;
		else
			c->sent++;
	}
}

/* ---- the command ---- */

static int capture_failed(const char *what, int err)
{
	fprintf(stderr, "xroce capture: cannot %s: %s\n", what, strerror(-err));
	return EXIT_FAILED;
}

/* No progress line if packets go to standard output, which may be the same terminal. */
static void capture_progress(const struct capture *c)
{
	if (strcmp(c->file.path, "-") != 0)
		terminal_say("%llu packets received, %llu dropped, %llu sent; ^C stops",
			     (unsigned long long)c->received, (unsigned long long)c->dropped,
			     (unsigned long long)c->sent);
}

/* Reports once, for each process, the packets before the capture joined. */
static void capture_say_before(struct capture *c)
{
	char name[OUTPUT_NAME];

	for (struct traced *p = c->tracers.first; p; p = p->next) {
		if (p->told_before)
			continue;
		p->told_before = true;
		if (!p->received && !p->sent)
			continue;
		terminal_say(NULL);
		fprintf(stderr,
			"xroce capture: %s: pid %u (%s) had received %llu packets and sent "
			"%llu when the capture joined\n",
			output_name(p->iface, name), p->pid, p->command,
			(unsigned long long)p->received, (unsigned long long)p->sent);
	}
}

static int capture_run(struct capture *c)
{
	const bool is_piped = !strcmp(c->file.path, "-");
	bool stopped = false;
	u32 idle_ms = BUSY_MS;
	int n = 0;

	c->real_ns = tracers_real_ns();
	while (n >= 0 && !c->err) {
		n = tracers_round(&c->tracers, capture_record, c);
		if (n > 0 && !c->err)
			c->err = capture_file_flush(&c->file);
		capture_say_before(c);
		tracers_complain(&c->tracers, "capture");
		if (c->tracers.err == -EPERM || tracers_are_read(&c->tracers) || capture_is_full(c))
			break;
		if (atomic_load_explicit(&capture_ended, memory_order_relaxed) ||
		    clock_now_ns() >= c->until_ns) {
			if (!stopped)
				tracers_stop(&c->tracers);
			stopped = true;
			continue;
		}
		capture_progress(c);
		idle_ms = n ? BUSY_MS : min_u32(2 * idle_ms, IDLE_MS);
		if (!is_piped)
			poll(NULL, 0, (int)idle_ms);
		else if (output_wait(idle_ms))
			break;
	}
	terminal_say(NULL);
	if (n < 0)
		return capture_failed("inspect the processes", n);
	return c->tracers.err == -EPERM ? EXIT_FAILED : EXIT_OK;
}

static int capture_main_run(struct capture *c)
{
	struct sigaction action = { .sa_handler = capture_end };
	u64 lost;
	char what[sizeof(c->file.opened) + sizeof("open ")];
	int ret = observe_options_raise_limit(&command_capture);

	if (ret)
		return ret;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	c->file.snaplen = c->snaplen;
	ret = capture_file_open(&c->file);
	if (ret) {
		snprintf(what, sizeof(what), "open %s", c->file.opened);
		return capture_failed(what, ret);
	}
	ret = capture_file_flush(&c->file);
	/* the reader of standard output has closed it */
	if (ret == -EPIPE)
		return EXIT_OK;
	if (ret)
		return capture_failed("write the file", ret);
	tracers_begin(&c->tracers, &c->want, c->dev, c->pid);
	ret = capture_run(c);
	tracers_end(&c->tracers);
	lost = tracers_lost(&c->tracers);
	if (c->err)
		capture_file_close(&c->file, lost);
	else
		c->err = capture_file_close(&c->file, lost);
	/* the reader of standard output may have closed it */
	if (c->err && c->err != -EPIPE)
		ret = capture_failed("write the file", c->err);
	fprintf(stderr, "xroce capture: %llu packets received, %llu dropped by a check, %llu sent; "
			"%llu packets lost because the ring was full\n",
		(unsigned long long)c->received, (unsigned long long)c->dropped,
		(unsigned long long)c->sent, (unsigned long long)lost);
	tracers_say_end(&c->tracers, "capture");
	return ret;
}

/* ---- options ---- */

enum { OPTION_FILE_COUNT = CLI_LONG, OPTION_SNAPLEN, OPTION_DROPS, OPTION_BUFFER };

static const struct cli_option capture_options[] = {
	{ 'w', "write", "FILE", "write to FILE; - is standard output", NULL },
	{ 'C', "file-size", "N",
	  "start another file after N million bytes: FILE, FILE1,\n"
	  "FILE2, ...", "a number from 1 to 1048576" },
	{ OPTION_FILE_COUNT, "file-count", "N",
	  "with -C, write to N files from FILE0 on, then overwrite\n"
	  "the oldest", "a number from 1 to 1048576" },
	{ 'c', "count", "N", "stop after N packets", "a number from 1 on" },
	{ OPTION_SNAPLEN, "snaplen", "BYTES",
	  "write at most BYTES of each packet, 64 or more",
	  "a number of bytes from 64 on" },
	{ OPTION_DROPS, "drops", NULL, "select packets that a check in XDP dropped", NULL },
	{ OPTION_BUFFER, "buffer", "MIB", "use a buffer of MIB MiB for each process, default 32",
	  "a number of MiB from 1 to 1024" },
	{ OPTION_FILE_COUNT, "files", "N", NULL, NULL }, /* its name until 0.2 */
	{ 0 },
};

static int capture_option(void *arg, int opt, char *value)
{
	struct capture *c = arg;
	bool ok = true;
	u32 n = 0;

	switch (opt) {
	case 'w': c->file.path = value; break;
	case 'C':
		ok = cli_number32(value, 1, 1u << 20, &n);
		c->file.max_bytes = n * 1000000ull;
		break;
	case OPTION_FILE_COUNT:
		ok = cli_number32(value, 1, 1u << 20, &c->file.max_files);
		break;
	case 'c': ok = cli_number(value, 1, UINT64_MAX, &c->max_packets); break;
	case OPTION_SNAPLEN: ok = cli_number32(value, 64, SNAPLEN_ALL, &c->snaplen); break;
	case 'P':
		ok = c->want.has_peer = cli_address(value, &c->want.peer);
		break;
	case OPTION_DROPS: c->want.what = XROCE_TRACE_DROPPED; break;
	case OPTION_BUFFER:
		ok = cli_number32(value, 1, RING_BYTES_MAX >> 20, &n);
		c->want.ring_bytes = roundup_pow2(n) << 20;
		break;
	default:
		ok = tracers_option(&c->want, &c->pid, &c->until_ns, opt, value);
		break;
	}
	return ok ? EXIT_OK : CLI_REFUSED;
}

static int capture_main(int argc, char **argv)
{
	static struct capture c = {
		.want = { .what = XROCE_TRACE_RECEIVED | XROCE_TRACE_DROPPED | XROCE_TRACE_SENT,
			  .bytes = SNAPLEN_ALL,
			  .ring_bytes = RING_BYTES },
		.snaplen = SNAPLEN_ALL,
		.until_ns = NSEC_NEVER,
	};
	struct netdev dev;
	int ret = cli_parse(&command_capture, &argc, &argv, capture_option, &c);

	if (ret)
		return ret;
	if (argc > 1)
		return usage_error(&command_capture, "more than one interface");
	if (!c.file.path)
		return usage_error(&command_capture, "no file given (-w FILE)");
	if (c.file.max_files && !c.file.max_bytes)
		return usage_error(&command_capture, "--file-count needs -C");
	if (c.file.max_bytes && !strcmp(c.file.path, "-"))
		return usage_error(&command_capture, "-C needs a file, not standard output");
	if (!strcmp(c.file.path, "-") && isatty(STDOUT_FILENO))
		return usage_error(&command_capture, "-w - writes binary data: redirect standard "
						     "output");
	if (argc) {
		c.dev = argv[0];
		ret = find_device(&command_capture, c.dev, &dev);
		if (ret)
			return ret;
	}
	return capture_main_run(&c);
}

const struct command command_capture = {
	.name = "capture",
	.summary = "write RoCEv2 packets to a pcapng file",
	.main = capture_main,
	.help = "usage: xroce capture -w FILE [OPTION...] [IFACE]\n"
		"\n"
		"Writes the RoCEv2 packets of programs that run on xroce to a pcapng file, which\n"
		"Wireshark and tshark read, until it is stopped (SIGINT, SIGTERM): of all\n"
		"interfaces or of IFACE, including programs that start later. tcpdump(8) does not\n"
		"see these packets, because XDP takes them before the kernel's taps. The comment\n"
		"of a packet is what XDP wrote in the CQE, or the drop reason, and its process.\n"
		"Super-packets are split into their packets. Capturing delays no process: packets\n"
		"that do not fit into the buffer are lost and counted.\n"
		"\n",
	.letters = "qpPQD",
	.options = capture_options,
	.help_end =
		"\n"
		"Needs root; for the user's own processes a broker (xroce serve) is enough.\n"
		"Exit status: 0; 1 if it failed; 2 for wrong usage or no such interface.\n",
};
