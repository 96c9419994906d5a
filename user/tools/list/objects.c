/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * xroce qp, cq, srq and mr: queue pairs, completion queues, shared receive queues, memory regions
 * and windows. The last three have a map each with one element per object (xroce/stat.h), shown as
 * a row; queue pairs have two maps.
 */
#include <stdlib.h>

#include "../../engine/mr.h"
#include "../../os/clock.h"
#include "../counters.h"
#include "../observe/observe_options.h"

/* ---- queue pairs ---- */

static const struct column qp_columns[] = {
	COLUMN_TEXT("dev", "DEV"),
	COLUMN("qpn", "QPN"),
	COLUMN_TEXT("type", "TYPE"),
	COLUMN_TEXT("state", "STATE"),
	COLUMN("pid", "PID"),
	COLUMN_TEXT("command", "COMMAND"),
	COLUMN_JSON("local"),
	COLUMN_TEXT("peer", "PEER"),
	COLUMN("peer_qpn", "PEER-QPN"),
	COLUMN("path_mtu", "MTU"),
	COLUMN_JSON("pkey"),
	COLUMN_JSON("pd"),
	COLUMN_JSON("send_cq"),
	COLUMN_JSON("recv_cq"),
	COLUMN_JSON("srq"),
	COLUMN_JSON("engine"),
	COLUMN_JSON("sq_psn"),
	COLUMN_JSON("unacked_psn"),
	COLUMN_JSON("rq_psn"),
	COLUMN_JSON("msn"),
	COLUMN("outstanding", "OUT"),
	COLUMN_JSON("window"),
	COLUMN("rtt_us", "RTT-US"),
	COLUMN_JSON("rtt_variation_us"),
	COLUMN_JSON("rate"),
	COLUMN_JSON("rate_limit"),
	COLUMN("tx_packets", "TX-PKTS"),
	COLUMN_JSON("tx_bytes"),
	COLUMN("rx_packets", "RX-PKTS"),
	COLUMN_JSON("rx_bytes"),
	COLUMN_JSON("xdp_packets"),
	COLUMN_JSON("xdp_bytes"),
	COLUMN_JSON("xdp_dropped"),
	COLUMN_JSON("wakeups"),
	COLUMN("retransmitted", "RETRANS"),
	COLUMN_JSON("retransmitted_bytes"),
	COLUMN_JSON("timeouts"),
	COLUMN_JSON("rto_probes"),
	COLUMN_JSON("rto_spurious"),
	COLUMN_JSON("late_deadlines"),
	COLUMN_JSON("tx_sequence_naks"),
	COLUMN_JSON("rx_sequence_naks"),
	COLUMN_JSON("implied_naks"),
	COLUMN_JSON("tx_rnr_naks"),
	COLUMN("rx_rnr_naks", "RNR"),
	COLUMN_JSON("remote_errors"),
	COLUMN_JSON("duplicate_requests"),
	COLUMN_JSON("rx_held"),
	COLUMN("dropped", "DROPPED"),
	COLUMN_JSON("last_drop"),
	COLUMN_JSON("icrc_errors"),
	COLUMN_JSON("rx_ce"),
	COLUMN_JSON("tx_cnps"),
	COLUMN_JSON("rx_cnps"),
	COLUMN_JSON("credit_waits"),
	COLUMN_JSON("flow_waits"),
	COLUMN_JSON("rx_writes"),
	COLUMN_JSON("rx_reads"),
	COLUMN_JSON("rx_atomics"),
	COLUMN_JSON("age_s"),
	COLUMN_JSON("error"),
	COLUMN_JSON("error_reason"),
	COLUMN_JSON("error_age_s"),
	COLUMN_TEXT("error_text", "ERROR"),
};

/* Adds the seconds since then_ns; none if then_ns is 0 or in the future. */
static void qp_add_age(struct table *t, u64 then_ns)
{
	const u64 now_ns = clock_now_ns();

	if (then_ns && then_ns <= now_ns)
		table_real(t, (double)(now_ns - then_ns) / 1e9);
	else
		table_none(t);
}

static void qp_add_cq(struct table *t, u32 cq)
{
	if (cq == XROCE_NO_CQ)
		table_none(t);
	else
		table_number(t, cq);
}

static void qp_add_error(struct table *t, const struct xroce_qp_stat *s)
{
	if (!s->error_ns) {
		for (u32 i = 0; i < 4; i++)
			table_none(t);
		return;
	}
	table_number(t, s->error);
	table_number(t, s->error_reason);
	qp_add_age(t, s->error_ns);
	table_text(t, "%s", counters_reason(s->error_reason));
	table_mark_bad(t);
}

static void qp_add_row(struct table *t, const struct observed *p, const struct qp_view *v)
{
	const struct xroce_qp_stat *s = &v->stat;
	const struct xroce_qp *x = &v->steer;
	char text[46];

	table_text(t, "%s", p->iface->name);
	table_number_as(t, v->qpn, "0x%06x", v->qpn);
	table_text(t, "%s", observe_options_transport(v->has_stat ? s->transport : x->transport));
	if (v->has_stat)
		table_text(t, "%s", observe_options_state(s->state));
	else
		table_none(t);
	if (v->has_stat && s->state == XROCE_QPS_ERR)
		table_mark_bad(t);
	table_number(t, p->pid ? p->pid : v->has_stat ? s->pid : x->pid);
	table_text(t, "%s", p->command);
	table_text(t, "%s", observe_options_gid(v->has_stat ? s->local : x->local, text));
	table_text(t, "%s", observe_options_gid(v->has_stat ? s->peer : x->peer, text));
	table_number_as(t, s->peer_qpn, "0x%06x", s->peer_qpn & 0xffffff);
	table_number(t, s->path_mtu);
	table_number_as(t, v->has_stat ? s->pkey : x->pkey, "0x%04x", s->pkey & 0xffff);
	table_number(t, s->pd);
	qp_add_cq(t, v->has_stat ? s->send_cq : x->send_cq);
	qp_add_cq(t, v->has_stat ? s->recv_cq : x->recv_cq);
	if (s->srq)
		table_number(t, s->srq);
	else
		table_none(t);
	table_number(t, s->engine);
	table_number(t, s->sq_psn);
	table_number(t, s->unacked_psn);
	table_number(t, s->rq_psn);
	table_number(t, s->msn);
	table_number(t, s->outstanding);
	table_number(t, s->window);
	table_real(t, (double)s->rtt_ns / 1000);
	table_real(t, (double)s->rtt_variation_ns / 1000);
	table_number(t, s->rate);
	table_number(t, s->rate_limit);
	table_number(t, s->tx_packets);
	table_number(t, s->tx_bytes);
	table_number(t, s->rx_packets);
	table_number(t, s->rx_bytes);
	table_number(t, x->rx_packets);
	table_number(t, x->rx_bytes);
	table_number(t, x->rx_dropped);
	table_number(t, x->wakeups);
	table_number(t, s->tx_retransmitted);
	table_number(t, s->tx_retransmitted_bytes);
	table_number(t, s->timeouts);
	table_number(t, s->rto_probes);
	table_number(t, s->rto_spurious);
	table_number(t, s->late_deadlines);
	table_number(t, s->tx_sequence_naks);
	table_number(t, s->rx_sequence_naks);
	table_number(t, s->implied_naks);
	table_number(t, s->tx_rnr_naks);
	table_number(t, s->rx_rnr_naks);
	table_number(t, s->remote_errors);
	table_number(t, s->duplicate_requests);
	table_number(t, s->rx_held);
	/* by the engine and by XDP */
	table_number(t, s->rx_dropped + x->rx_dropped);
	if (s->last_drop)
		table_text(t, "%s", counters_drop(s->last_drop));
	else
		table_none(t);
	table_number(t, s->icrc_errors);
	table_number(t, s->rx_ce);
	table_number(t, s->tx_cnps);
	table_number(t, s->rx_cnps);
	table_number(t, s->credit_waits);
	table_number(t, s->flow_waits);
	table_number(t, s->rx_writes);
	table_number(t, s->rx_reads);
	table_number(t, s->rx_atomics);
	qp_add_age(t, s->made_ns);
	qp_add_error(t, s);
}

struct qps {
	const struct observe_options *look;
	struct table table;
};

static void qps_of_port(void *arg, const struct observed *p, const struct snapshot *s)
{
	struct qps *all = arg;

	for (u32 i = 0; i < s->num_qps; i++)
		if (observe_options_has_qp(all->look, &s->qps[i]))
			qp_add_row(&all->table, p, &s->qps[i]);
	observe_options_note_full(all->look, p, s->stats_used, s->stats_num,
				  "qps with state and counters");
}

static int qp_main(int argc, char **argv)
{
	struct qps all;
	struct observe_options l;
	int ret = observe_options_begin(&l, &command_qp, &argc, &argv), column = 0;

	if (ret)
		return ret;
	if (argc)
		ret = usage_error(&command_qp, "unexpected argument '%s'", argv[0]);
	else if (l.sort)
		column = observe_options_column(&l, qp_columns, ARRAY_SIZE(qp_columns));
	if (ret || column < 0) {
		observe_options_end(&l);
		return EXIT_USAGE;
	}
	all.look = &l;
	table_begin(&all.table, qp_columns, ARRAY_SIZE(qp_columns));
	observe_options_each(&l, SNAPSHOT_QPS, qps_of_port, &all);
	if (l.sort)
		table_sort(&all.table, (u32)column, true);
	observe_options_print(&l, &all.table, "qps");
	ret = observe_options_ends(&l, table_rows(&all.table), "queue pair");
	table_end(&all.table);
	observe_options_end(&l);
	return ret;
}

const struct command command_qp = {
	.name = "qp",
	.summary = "list queue pairs: owner, peer, state, traffic, losses",
	.main = qp_main,
	.help = "usage: xroce qp [OPTION...]\n"
		"\n"
		"Prints a line for each queue pair of the processes that use interfaces of this\n"
		"network namespace. JSON has more: PSNs, window, queues, NAKs in both directions,\n"
		"ECN marks, the last error.\n"
		"\n",
	.letters = "dpqPSoj",
	.help_end =
		"\n"
		"  OUT      request packets in flight\n"
		"  RTT-US   smoothed round-trip time of RC in microseconds; 0: not measured\n"
		"  RETRANS  request packets retransmitted\n"
		"  RNR      RNR NAKs received: the peer had posted no receive\n"
		"  DROPPED  packets for the QP that a check refused, in XDP or in the engine\n"
		"  ERROR    reason for the last error state\n"
		"\n"
		"COLUMN is a name that the JSON output has.\n"
		"\n"
		"Exit status: 0; 1 if there is no such queue pair or it may not be inspected; 2\n"
		"for wrong usage.\n"
		"\n"
		"Examples:\n"
		"  xroce qp --state err\n"
		"  xroce qp --peer 192.0.2.7 --sort retransmitted\n",
};

/* ---- objects with a map each ---- */

struct objects {
	const struct command *command;
	enum snapshot_kind kind;
	const struct column *columns;
	u32 num_columns;
	const char *name, *what; /* name: plural, for JSON; what: singular, for messages */
	void (*add)(struct table *t, const void *element);
};

struct rows {
	const struct objects *objects;
	const struct observe_options *look;
	struct table table;
};

#define COLUMNS_OF_ALL                                                                             \
	COLUMN_TEXT("dev", "DEV"), COLUMN("pid", "PID"), COLUMN_TEXT("command", "COMMAND")

static void objects_add(struct rows *rows, const struct observed *p, const void *element)
{
	struct table *t = &rows->table;
	u32 pid; /* begins each element */

	memcpy(&pid, element, sizeof(pid));
	table_text(t, "%s", p->iface->name);
	/* the PID in this user's namespace, if known */
	table_number(t, p->pid ? p->pid : pid);
	table_text(t, "%s", p->command);
	rows->objects->add(t, element);
}

static void objects_of_port(void *arg, const struct observed *p, const struct snapshot *s)
{
	struct rows *rows = arg;
	const struct objects *o = rows->objects;
	const struct snapshot_list *l = &s->lists[o->kind];

	for (u32 i = 0; i < l->num; i++) {
		const void *element = snapshot_object(s, o->kind, i);

		if (element)
			objects_add(rows, p, element);
	}
	observe_options_note_full(rows->look, p, l->used, l->num, o->name);
}

/* Adds a number, or none for 0. */
static void objects_add_number(struct table *t, u32 number)
{
	if (number)
		table_number(t, number);
	else
		table_none(t);
}

#define OBJECT_OPTIONS "dpoj"

static int objects_main(const struct objects *objects, int argc, char **argv)
{
	const struct command *command = objects->command;
	struct observe_options l;
	struct rows rows = { .objects = objects, .look = &l };
	int ret = observe_options_begin(&l, command, &argc, &argv), column = 0;

	if (ret)
		return ret;
	if (argc)
		ret = usage_error(command, "unexpected argument '%s'", argv[0]);
	else if (l.sort)
		column = observe_options_column(&l, objects->columns, objects->num_columns);
	if (ret || column < 0) {
		observe_options_end(&l);
		return EXIT_USAGE;
	}
	table_begin(&rows.table, objects->columns, objects->num_columns);
	observe_options_each(&l, 1u << objects->kind, objects_of_port, &rows);
	if (l.sort)
		table_sort(&rows.table, (u32)column, true);
	observe_options_print(&l, &rows.table, objects->name);
	ret = observe_options_ends(&l, table_rows(&rows.table), objects->what);
	table_end(&rows.table);
	observe_options_end(&l);
	return ret;
}

/* ---- completion queues ---- */

static const struct column cq_columns[] = {
	COLUMNS_OF_ALL,
	COLUMN("cq", "CQ"),
	COLUMN("entries", "ENTRIES"),
	COLUMN("waiting", "WAITING"),
	COLUMN("most_waiting", "MOST"),
	COLUMN("completions", "COMPLETIONS"),
	COLUMN("events", "EVENTS"),
	COLUMN("vector", "VECTOR"),
	COLUMN_JSON("has_channel"),
	COLUMN("overruns", "OVERRUNS"),
};

static void cq_add_row(struct table *t, const void *element)
{
	const struct xroce_cq_stat *s = element;

	table_number(t, s->cq);
	table_number(t, s->entries);
	table_number(t, s->waiting);
	table_number(t, s->most_waiting);
	table_number(t, s->completions);
	table_number(t, s->events);
	table_number(t, s->vector);
	table_bool(t, s->has_channel);
	table_number(t, s->overruns);
	if (s->overruns)
		table_mark_bad(t);
}

static int cq_main(int argc, char **argv)
{
	static const struct objects cqs = { &command_cq,
					    SNAPSHOT_CQ,
					    cq_columns,
					    ARRAY_SIZE(cq_columns),
					    "cqs",
					    "completion queue",
					    cq_add_row };

	return objects_main(&cqs, argc, argv);
}

/* ---- shared receive queues ---- */

static const struct column srq_columns[] = {
	COLUMNS_OF_ALL,
	COLUMN("srq", "SRQ"),
	COLUMN("entries", "ENTRIES"),
	COLUMN("waiting", "WAITING"),
	COLUMN("taken", "TAKEN"),
	COLUMN("limit_events", "LIMIT-EVENTS"),
	COLUMN("pd", "PD"),
	COLUMN("xrcd", "XRCD"),
};

static void srq_add_row(struct table *t, const void *element)
{
	const struct xroce_srq_stat *s = element;

	objects_add_number(t, s->srq);
	table_number(t, s->entries);
	table_number(t, s->waiting);
	table_number(t, s->taken);
	table_number(t, s->limit_events);
	table_number(t, s->pd);
	objects_add_number(t, s->xrcd);
}

static int srq_main(int argc, char **argv)
{
	static const struct objects srqs = { &command_srq,
					     SNAPSHOT_SRQ,
					     srq_columns,
					     ARRAY_SIZE(srq_columns),
					     "srqs",
					     "shared receive queue",
					     srq_add_row };

	return objects_main(&srqs, argc, argv);
}

/* ---- memory regions and windows ---- */

static const struct column mr_columns[] = {
	COLUMNS_OF_ALL,
	COLUMN("key", "KEY"),
	COLUMN_TEXT("kind", "KIND"),
	COLUMN("addr", "ADDRESS"),
	COLUMN("length", "LENGTH"),
	COLUMN_JSON("iova"),
	COLUMN_JSON("access"),
	COLUMN_TEXT("rights", "RIGHTS"),
	COLUMN("pd", "PD"),
	COLUMN_JSON("qpn"),
};

static const char *const mr_kinds[] = { "region", "null", "window-1", "window-2" };

/* Indexed by access bit; NULL: no right. */
static const char *const mr_rights[] = { "write", "rwrite", "rread", "ratomic", "bind",
					 "zero",  "odp",    NULL,    "flush",	"pflush" };
_Static_assert(MR_FLUSH_PERSISTENT == 1 << 9, "the last one");

static void mr_add_rights(struct table *t, u32 access)
{
	char text[80] = "";

	for (u32 i = 0; i < ARRAY_SIZE(mr_rights); i++)
		if (mr_rights[i] && access >> i & 1) {
			strcat(text, *text ? "," : "");
			strcat(text, mr_rights[i]);
		}
	table_text(t, "%s", *text ? text : "read");
}

static void mr_add_row(struct table *t, const void *element)
{
	const struct xroce_mr_stat *s = element;
	const u32 kind = s->kind;

	table_number_as(t, s->key, "0x%08x", s->key);
	table_text(t, "%s", kind < ARRAY_SIZE(mr_kinds) ? mr_kinds[kind] : "?");
	table_number_as(t, s->addr, "0x%llx", (unsigned long long)s->addr);
	table_number(t, s->length);
	table_number(t, s->iova);
	table_number(t, s->access);
	mr_add_rights(t, s->access);
	table_number(t, s->pd);
	objects_add_number(t, s->qpn);
}

static int mr_main(int argc, char **argv)
{
	static const struct objects mrs = { &command_mr,
					    SNAPSHOT_MR,
					    mr_columns,
					    ARRAY_SIZE(mr_columns),
					    "mrs",
					    "memory region",
					    mr_add_row };

	return objects_main(&mrs, argc, argv);
}

/* ---- the commands ---- */

#define OBJECT_EXIT(what)                                                                          \
	"\nCOLUMN is a name that the JSON output has.\n\nExit status: 0; 1 if there is no such " \
	what "\nor it may not be inspected; 2 for wrong usage.\n"

const struct command command_cq = {
	.name = "cq",
	.summary = "list completion queues: fill level, overruns",
	.main = cq_main,
	.help = "usage: xroce cq [OPTION...]\n"
		"\n"
		"Prints a line for each completion queue of the processes that use interfaces of\n"
		"this network namespace, if a queue pair uses it.\n"
		"\n",
	.letters = OBJECT_OPTIONS,
	.help_end =
		"\n"
		"  WAITING   completions not polled when the last one was written; they may\n"
		"            have been polled since\n"
		"  MOST      maximum of WAITING\n"
		"  EVENTS    events on the completion channel\n"
		"  OVERRUNS  completions that did not fit into the queue\n"
		OBJECT_EXIT("completion queue"),
};

const struct command command_srq = {
	.name = "srq",
	.summary = "list shared receive queues: receives posted and consumed",
	.main = srq_main,
	.help = "usage: xroce srq [OPTION...]\n"
		"\n"
		"Prints a line for each shared receive queue of the processes that use interfaces\n"
		"of this network namespace, if a queue pair uses it.\n"
		"\n",
	.letters = OBJECT_OPTIONS,
	.help_end =
		"\n"
		"  WAITING       receives posted and not consumed when one was last consumed\n"
		"  TAKEN         receives that messages consumed\n"
		"  LIMIT-EVENTS  events IBV_EVENT_SRQ_LIMIT_REACHED\n"
		"  XRCD          XRC domain of an XRC SRQ\n"
		OBJECT_EXIT("shared receive queue"),
};

const struct command command_mr = {
	.name = "mr",
	.summary = "list memory regions and windows: address, length, access rights",
	.main = mr_main,
	.help = "usage: xroce mr [OPTION...]\n"
		"\n"
		"Prints a line for each memory region and memory window of the processes that use\n"
		"interfaces of this network namespace.\n"
		"\n",
	.letters = OBJECT_OPTIONS,
	.help_end =
		"\n"
		"  KEY     L_Key and R_Key\n"
		"  RIGHTS  read: only local read; write: local write; rwrite, rread, ratomic,\n"
		"          flush, pflush: rights of peers; bind: windows can be bound; zero:\n"
		"          addresses start at 0; odp: on-demand paging\n"
		OBJECT_EXIT("memory region"),
};
