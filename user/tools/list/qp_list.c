/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xroce qp: the queue pairs. */
#include <stdlib.h>

#include "../../os/clock.h"
#include "../observe/observe_options.h"
#include "../counters.h"

static const struct column columns[] = {
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

static void qps_of_port(void *arg, const struct observed *p)
{
	struct qps *all = arg;
	u32 n, stats;
	struct qp_view *v = observed_qps(all->look, p, &n, &stats);

	for (u32 i = 0; i < n; i++)
		qp_add_row(&all->table, p, &v[i]);
	free(v);
	observe_options_note_full(all->look, p, XROCE_MAP_QP_STAT, stats,
				  "qps with state and counters");
}

static int qp_main(int argc, char **argv)
{
	struct qps all;
	struct observe_options l;
	int ret = observe_options_begin(&l, &command_qp, "dpqPsoj", &argc, &argv), column = 0;

	if (ret)
		return ret;
	if (argc)
		ret = usage_error(&command_qp, "unexpected argument '%s'", argv[0]);
	else if (l.sort)
		column = observe_options_column(&l, columns, ARRAY_SIZE(columns));
	if (ret || column < 0) {
		observe_options_end(&l);
		return EXIT_USAGE;
	}
	all.look = &l;
	table_begin(&all.table, columns, ARRAY_SIZE(columns));
	observe_options_each(&l, qps_of_port, &all);
	if (l.sort)
		table_sort(&all.table, (u32)column, true);
	observe_options_print(&l, &all.table, "qps");
	ret = observe_options_ends(&l, table_rows(&all.table), "queue pair");
	table_end(&all.table);
	observe_options_end(&l);
	return ret;
}

static void qp_options(void)
{
	observe_options_print_options("dpqPsoj");
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
	.print_options = qp_options,
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
