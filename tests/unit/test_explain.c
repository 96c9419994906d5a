/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tier: core */
/* tier: core san */
/*
 * The rules of `xroce explain`: each gets two observations with a finding, and the same ones
 * without the finding's cause.
 */
#include "unit.h"

#include "../../user/tools/explain/explain_rule.h"

/* Two ends, healthy and busy; each test then changes its subject. */
static struct {
	struct explain_port port[2], peer_port[2];
	struct explain_qp qp[2], peer[2];
	struct explain_case port_case, qp_case;
	struct findings found;
} w;

static void make_port(struct explain_port *p, u32 pid, u64 now_ns)
{
	*p = (struct explain_port){ .time_ns = now_ns,
				    .prog_id = pid,
				    .pid = pid,
				    .has_iface = true,
				    .is_enabled = true,
				    .is_up = true,
				    .mtu = 4500,
				    .queues = 1,
				    .process = { .is_known = true, .threads = 3 } };
	snprintf(p->command, sizeof(p->command), "program");
	snprintf(p->dev, sizeof(p->dev), "eth%u", pid);
	p->sums.rx.redirected = p->sums.sock.rx_frames = now_ns / 1000000;
}

static void make_qp(struct explain_qp *q, u32 qpn, u32 peer_qpn, u64 now_ns)
{
	const u64 packets = now_ns / 100000;

	*q = (struct explain_qp){ .has_stat = true,
				  .has_steer = true,
				  .has_send_cq = true,
				  .has_recv_cq = true,
				  .qpn = qpn,
				  .link_mtu = 1124 };
	q->stat = (struct xroce_qp_stat){ .qpn = qpn,
					  .peer_qpn = peer_qpn,
					  .pid = 1,
					  .transport = XROCE_RC,
					  .state = XROCE_QPS_RTS,
					  .path_mtu = 1024,
					  .pkey = 0xffff,
					  .tx_packets = packets,
					  .tx_bytes = packets * 1082,
					  .rx_packets = packets,
					  .rx_bytes = packets * 66,
					  .unacked_psn = (u32)packets & 0xffffff,
					  .outstanding = 16,
					  .msn = (u32)packets };
	q->steer = (struct xroce_qp){ .receiving = 1, .pkey = 0xffff, .rx_packets = packets };
	q->send_cq = (struct xroce_cq_stat){ .pid = 1, .entries = 128, .waiting = 3 };
	q->recv_cq = (struct xroce_cq_stat){ .pid = 1, .entries = 128, .waiting = 3 };
}

static int begin(void **state)
{
	findings_end(&w.found);
	memset(&w, 0, sizeof(w));
	for (u32 i = 0; i < 2; i++) {
		const u64 now_ns = (10 + i) * 1000000000ull;

		make_port(&w.port[i], 1, now_ns);
		make_port(&w.peer_port[i], 2, now_ns);
		make_qp(&w.qp[i], 0x111, 0x222, now_ns);
		make_qp(&w.peer[i], 0x222, 0x111, now_ns);
		w.qp_case.own.port[i] = &w.port[i];
		w.qp_case.own.qp[i] = &w.qp[i];
		w.qp_case.peer.port[i] = &w.peer_port[i];
		w.qp_case.peer.qp[i] = &w.peer[i];
	}
	w.qp_case.has_peer = true;
	w.qp_case.seconds = 1;
	w.port_case = w.qp_case;
	w.port_case.own.qp[0] = w.port_case.own.qp[1] = NULL;
	w.port_case.has_peer = false;
	findings_begin(&w.found);
	return 0;
}

static int end(void **state)
{
	findings_end(&w.found);
	return 0;
}

/* "broken id, slow id, (id)": all findings, in order; consequences in brackets. */
static const char *found(void)
{
	static char text[512];

	findings_end(&w.found);
	explain_look(&w.port_case, &w.found);
	explain_look(&w.qp_case, &w.found);
	explain_sort(&w.found);
	*text = 0;
	for (u32 i = 0; i < w.found.num; i++) {
		static const char *const names[] = { "note", "slow", "broken" };
		const struct finding *f = &w.found.list[i];
		const size_t used = strlen(text);

		assert_true(*f->text);
		snprintf(text + used, sizeof(text) - used, f->is_consequence ? "%s(%s)" : "%s%s %s",
			 used ? ", " : "", f->is_consequence ? f->id : names[f->severity], f->id);
	}
	return text;
}

/* Returns the finding's number of that name; the test fails if there is none. */
static const struct explain_number *number(u32 finding, const char *name)
{
	assert_true(finding < w.found.num);
	for (u32 i = 0; i < w.found.list[finding].num_numbers; i++)
		if (!strcmp(w.found.list[finding].number[i].name, name))
			return &w.found.list[finding].number[i];
	fail_msg("no number %s", name);
	return NULL;
}

/* A stuck QP: its packets are not acknowledged, and no packet arrives. */
static void make_stuck(void)
{
	w.qp[1].stat.unacked_psn = w.qp[0].stat.unacked_psn;
	w.qp[1].stat.rx_packets = w.qp[0].stat.rx_packets;
	w.qp[1].stat.resent_psn = w.qp[1].stat.unacked_psn;
	w.qp[1].stat.resent_times = 3;
	w.qp[1].stat.resent_bytes = 1082;
}

static void make_error(enum xroce_reason reason)
{
	w.qp[0].stat.state = w.qp[1].stat.state = XROCE_QPS_ERR;
	w.qp[0].stat.error_ns = w.qp[1].stat.error_ns = 9000000000ull;
	w.qp[0].stat.error_reason = w.qp[1].stat.error_reason = reason;
}

static void explain__healthy(void **state)
{
	assert_string_equal(found(), "");
	assert_int_equal(explain_worst(&w.found), EXPLAIN_NOTE);
}

/* ---- the process ---- */

static void explain_link_down__says_which_way(void **state)
{
	w.port[1].is_up = false;
	assert_string_equal(found(), "broken link-down");
	assert_non_null(strstr(w.found.list[0].text, "no link"));
	w.port[1].is_enabled = false;
	assert_string_equal(found(), "broken link-down");
	assert_string_equal(w.found.list[0].advice, "Run 'ip link set eth1 up'.");
	/* nothing is known of an interface in another network namespace */
	w.port[1].has_iface = false;
	assert_string_equal(found(), "");
}

static void explain_stopped__all_threads(void **state)
{
	w.port[1].process.stopped = 2;
	assert_string_equal(found(), "");
	w.port[1].process.stopped = 3;
	assert_string_equal(found(), "broken process-stopped");
	w.port[1].process.is_known = false;
	assert_string_equal(found(), "");
}

static void explain_starved__waits_and_does_not_run(void **state)
{
	w.port[1].process.waited_ns = 600000000;
	w.port[1].process.ran_ns = 50000000;
	assert_string_equal(found(), "slow process-starved");
	assert_int_equal(number(0, "waited_ns")->rate, 600000000);
	w.port[1].process.ran_ns = 70000000;
	assert_string_equal(found(), "");
	/* the wait is not over, and so not counted yet */
	w.port[1].process = (struct explain_process){ true, 3, 0, 1, 0, 0 };
	assert_string_equal(found(), "");
	w.port[0].process.ready = 1;
	assert_string_equal(found(), "slow process-starved");
	w.port[1].process.ran_ns = 30000000;
	assert_string_equal(found(), "");
}

static void explain_ring_full__counted_or_not_taken(void **state)
{
	w.port[1].sums.sock.rx_ring_full = 7;
	assert_string_equal(found(), "slow ring-overflow");
	assert_int_equal(number(0, "sock_rx_ring_full")->value, 7);
	/* earlier losses are no current ones */
	w.port[0].sums.sock.rx_ring_full = 7;
	assert_string_equal(found(), "");
	w.port[1].sums.xdp.ring_full = 1;
	assert_string_equal(found(), "slow ring-overflow");
	w.port[1].sums.xdp.ring_full = 0;
	w.port[0].sums.rx.redirected += 2000;
	w.port[1].sums.rx.redirected += 1032;
	w.port[1].sums.sock.rx_frames += 0;
	assert_string_equal(found(), "slow ring-overflow");
	w.port[1].queues = 2;
	assert_string_equal(found(), "");
}

static void explain_not_taken__lies_there(void **state)
{
	w.port[1].sums.sock.rx_frames = w.port[0].sums.sock.rx_frames;
	w.port[1].sums.rx.redirected = w.port[0].sums.rx.redirected += 10;
	assert_string_equal(found(), "slow frames-not-taken");
	w.port[1].sums.sock.rx_frames++;
	assert_string_equal(found(), "");
}

static void explain_port__ways_out(void **state)
{
	w.port[1].sums.engine.tx_lost = 5;
	w.port[1].refused = 3;
	w.port[1].sums.sock.rx_dropped = 2;
	w.port[1].sums.xdp.qp_unknown = 1;
	assert_string_equal(found(), "broken refused-by-broker, slow no-buffer, slow not-sent, "
				     "note dropped-by-xdp");
}

/* ---- errors ---- */

/* Each reason has a text. */
static void explain_error__every_reason(void **state)
{
	u32 seen = 0;

	for (u32 reason = 0; reason < 80; reason++) {
		make_error((enum xroce_reason)reason);
		if (reason == XROCE_REASON_TIMEOUT)
			assert_string_equal(found(), "broken peer-silent");
		else if (reason == XROCE_REASON_RNR)
			assert_string_equal(found(), "broken rnr");
		else if (reason == XROCE_REASON_CQ_OVERRUN)
			assert_string_equal(found(), "broken cq-overrun");
		else
			assert_string_equal(found(), "broken error");
		seen += !strstr(w.found.list[0].text, "for reason");
		if (reason <= XROCE_REASON_FAULT_RULE ||
		    (reason >= XROCE_REASON_PEER_INVALID && reason <= XROCE_REASON_PORT_LOST))
			assert_null(strstr(w.found.list[0].text, "for reason"));
	}
	assert_int_equal(seen, 20 + 3);
}

static void explain_error__sqe_and_the_peer(void **state)
{
	make_error(XROCE_REASON_LKEY);
	w.qp[1].stat.state = XROCE_QPS_SQE;
	assert_string_equal(found(), "broken error");
	begin(NULL);
	w.peer[1].stat.state = XROCE_QPS_ERR;
	assert_string_equal(found(), "broken peer-in-error");
	make_error(XROCE_REASON_NAK_REMOTE_ACCESS);
	assert_string_equal(found(), "broken error");
	assert_int_equal(number(0, "error_reason")->value, 7);
	assert_int_equal(number(0, "error_age_ms")->value, 2000);
}

static void explain_cq_overrun__of_either_queue(void **state)
{
	w.qp[1].send_cq.overruns = 1;
	w.qp[1].send_cq.entries = 9;
	assert_string_equal(found(), "broken cq-overrun");
	assert_int_equal(number(0, "cq_entries")->value, 9);
	w.qp[1].has_send_cq = false;
	assert_string_equal(found(), "");
}

static void explain_rnr__progress_decides(void **state)
{
	w.qp[1].stat.rx_rnr_naks = 100;
	assert_string_equal(found(), "slow rnr");
	w.qp[1].stat.unacked_psn = w.qp[0].stat.unacked_psn;
	assert_string_equal(found(), "broken rnr");
	assert_int_equal(number(0, "rx_rnr_naks")->rate, 100);
	begin(NULL);
	w.qp[1].stat.tx_rnr_naks = 10;
	assert_string_equal(found(), "slow rnr-here");
	w.qp[1].stat.msn = w.qp[0].stat.msn;
	w.qp[1].has_srq = true;
	assert_string_equal(found(), "broken rnr-here");
	assert_int_equal(number(0, "srq_waiting")->value, 0);
}

/* ---- the other end ---- */

static void explain_silent__with_and_without_a_cause(void **state)
{
	make_stuck();
	assert_string_equal(found(), "broken peer-silent");
	assert_non_null(strstr(w.found.list[0].guess, "has probably exited, or was killed"));
	/* the repeated packet is another one, which was answered */
	w.qp[1].stat.resent_psn--;
	assert_string_equal(found(), "");
	w.qp[1].stat.resent_psn++;
	/* fewer refused than were sent again: some have left */
	w.port[0].sums.engine.tx_lost = w.port[1].sums.engine.tx_lost =
		w.qp[1].stat.resent_times - 1;
	assert_string_equal(found(), "broken peer-silent");
	assert_null(strstr(w.found.list[0].guess, "may not have been sent"));
	w.port[0].sums.engine.tx_lost = ++w.port[1].sums.engine.tx_lost;
	assert_string_equal(found(), "broken peer-silent");
	assert_non_null(strstr(w.found.list[0].guess, "may not have been sent"));
	w.port[0].sums.engine.tx_lost = w.port[1].sums.engine.tx_lost = 0;
	w.port[1].unreachable = 2;
	found();
	assert_non_null(strstr(w.found.list[0].guess, "nothing listens there"));
	w.peer_port[1].process.stopped = 3;
	assert_string_equal(found(), "broken peer-stopped, (peer-silent)");
	w.peer_port[1].process.stopped = 0;
	w.qp_case.has_peer = false;
	w.qp_case.is_peer_gone = true;
	assert_string_equal(found(), "broken peer-gone, (peer-silent)");
	/* a less severe cause does not explain it */
	begin(NULL);
	make_stuck();
	w.qp[1].stat.icrc_errors = 9;
	assert_string_equal(found(), "broken peer-silent, slow icrc-errors");
}

/* Only the outgoing way loses packets: packets of the peer still arrive. */
static void explain_unacknowledged__while_packets_arrive(void **state)
{
	make_stuck();
	w.qp[1].stat.rx_packets = w.qp[0].stat.rx_packets + 500;
	assert_string_equal(found(), "broken not-acknowledged");
	assert_int_equal(number(0, "rx_packets")->rate, 500);
	assert_non_null(strstr(w.found.list[0].advice, "eth1"));
	/* the first time-out may end between both readings, or before them */
	w.qp[1].stat.resent_times = 1;
	assert_string_equal(found(), "");
	w.qp[1].stat.timeouts = w.qp[0].stat.timeouts + 1;
	assert_string_equal(found(), "broken not-acknowledged");
	/* all that was sent again is this, and no late answer */
	w.qp[1].stat.rto_probes = w.qp[0].stat.rto_probes + 99;
	w.qp[1].stat.tx_retransmitted = w.qp[0].stat.tx_retransmitted + 99;
	assert_string_equal(found(), "broken not-acknowledged");
	/* a NAK shows that the peer receives */
	w.qp[1].stat.rx_sequence_naks = w.qp[0].stat.rx_sequence_naks + 1;
	assert_string_equal(found(), "slow late-answers");
	w.qp[1].stat.rx_sequence_naks = w.qp[0].stat.rx_sequence_naks;
	w.qp[1].stat.unacked_psn++;
	assert_string_equal(found(), "slow late-answers");
	/* long packets that never arrived, and short ones that do */
	make_stuck();
	w.qp[1].stat.rx_packets = w.qp[0].stat.rx_packets + 500;
	w.qp[1].stat.resent_bytes = 4170;
	w.qp[1].stat.tx_packets = 20;
	w.qp[1].stat.tx_bytes = 16 * 4170 + 4 * 80;
	assert_string_equal(found(), "broken mtu-of-path, (not-acknowledged)");
}

static void explain_peer__starved_and_full(void **state)
{
	w.peer_port[1].process.waited_ns = 900000000;
	w.peer_port[1].sums.sock.rx_ring_full = 3;
	assert_string_equal(found(), "slow peer-starved, slow peer-ring-overflow");
	assert_true(number(1, "sock_rx_ring_full")->is_peers);
	/* both ends are of one process: reported once, as its own */
	w.peer_port[1].pid = 1;
	assert_string_equal(found(), "");
}

static void explain_mtu__here_and_on_the_way(void **state)
{
	w.qp[1].link_mtu = 4600;
	assert_string_equal(found(), "broken mtu-of-interface");
	begin(NULL);
	make_stuck();
	w.qp[1].stat.resent_bytes = 4170;
	w.qp[1].stat.tx_packets = 20;
	w.qp[1].stat.tx_bytes = 16 * 4170 + 4 * 80;
	assert_string_equal(found(), "broken mtu-of-path, (peer-silent)");
	assert_int_equal(number(0, "resent_bytes")->value, 4170);
	/* a rule of this host that drops long packets is not the path */
	w.port[0].sums.engine.tx_lost = w.port[1].sums.engine.tx_lost = w.qp[1].stat.resent_times;
	assert_string_equal(found(), "broken peer-silent");
	w.port[0].sums.engine.tx_lost = w.port[1].sums.engine.tx_lost = 0;
	/* long packets got through before */
	w.qp[1].stat.tx_bytes = 20 * 4170;
	assert_string_equal(found(), "broken peer-silent");
	/* no packet has ever arrived: the cause may be the path, or any other */
	w.qp[1].stat.tx_bytes = 16 * 4170 + 4 * 80;
	w.qp[0].stat.rx_packets = w.qp[1].stat.rx_packets = 0;
	assert_string_equal(found(), "broken peer-silent");
	assert_non_null(strstr(w.found.list[0].guess, "the MTU of the path is too small"));
}

static void explain_pkey__both_ends_or_drops(void **state)
{
	w.qp[1].stat.pkey = 0x8001;
	w.peer[1].stat.pkey = 0x8002;
	assert_string_equal(found(), "broken pkey-mismatch");
	assert_int_equal(number(0, "pkey")->value, 0x8001);
	/* two limited members */
	w.qp[1].stat.pkey = w.peer[1].stat.pkey = 0x0002;
	assert_string_equal(found(), "broken pkey-mismatch");
	w.peer[1].stat.pkey = 0x8002;
	assert_string_equal(found(), "");
	w.qp_case.has_peer = false;
	w.qp[1].steer.rx_dropped = w.qp[0].steer.rx_dropped = 4;
	w.port[1].sums.xdp.pkey = w.port[0].sums.xdp.pkey = 4;
	/* long ago, and packets with the right P_Key have arrived since */
	assert_string_equal(found(), "");
	w.qp[1].steer.rx_packets = 0;
	assert_string_equal(found(), "broken pkey-mismatch");
}

/* ---- causes of slowness ---- */

static void explain_foreign__by_the_reason(void **state)
{
	w.qp[1].steer.rx_dropped = 50;
	assert_string_equal(found(), "slow foreign-packets");
	w.port[1].sums.xdp.peer = 50;
	found();
	assert_non_null(strstr(w.found.list[0].text, "not those of the connection"));
	assert_int_equal(number(0, "drop_peer")->value, 50);
	/* a QP in error accepts no packet: not a finding */
	w.port[1].sums.xdp.peer = 0;
	w.port[1].sums.xdp.qp_state = 50;
	assert_string_equal(found(), "slow foreign-packets");
	w.qp[1].steer.receiving = 0;
	assert_string_equal(found(), "");
}

static void explain_loss__gaps_or_lateness(void **state)
{
	w.qp[1].stat.tx_retransmitted = 100;
	w.qp[1].stat.implied_naks = 40;
	assert_string_equal(found(), "slow loss");
	assert_non_null(strstr(w.found.list[0].text, "(1.0 %)"));
	w.qp[1].stat.tx_retransmitted = 15;
	assert_string_equal(found(), "");
	w.qp[1].stat.tx_retransmitted = 100;
	w.qp[1].stat.implied_naks = 0;
	w.qp[1].stat.rto_probes = 100;
	assert_string_equal(found(), "slow late-answers");
	assert_non_null(strstr(w.found.list[0].guess, "or packets are lost"));
	w.peer[1].stat.duplicate_requests = 100;
	found();
	assert_non_null(strstr(w.found.list[0].guess, "nothing is lost"));
	w.peer[1].stat.duplicate_requests = 0;
	w.qp[1].stat.rto_spurious = 60;
	found();
	assert_non_null(strstr(w.found.list[0].guess, "answered twice (60), so nothing is lost"));
	assert_int_equal(number(0, "rto_spurious")->value, 60);
	/* nor does an occasional gap turn spurious time-outs into losses */
	w.qp[1].stat.rto_spurious = 90;
	w.qp[1].stat.implied_naks = 10;
	assert_string_equal(found(), "");
	w.qp[1].stat.rto_spurious = w.qp[1].stat.implied_naks = 0;
	/* the peer's ring accounts for it */
	w.peer_port[1].sums.sock.rx_ring_full = 30;
	assert_string_equal(found(), "slow peer-ring-overflow, (late-answers)");
	begin(NULL);
	w.qp[1].stat.tx_sequence_naks = 40;
	assert_string_equal(found(), "slow loss-inbound");
	w.port[1].sums.sock.rx_ring_full = 30;
	assert_string_equal(found(), "slow ring-overflow, (loss-inbound)");
}

static void explain_congested__both_ways(void **state)
{
	w.qp[1].stat.rx_cnps = 12;
	w.qp[1].stat.rate = 250000000;
	assert_string_equal(found(), "slow congestion");
	assert_non_null(strstr(w.found.list[0].text, "250.0 MB/s"));
	w.qp[0].stat.rx_cnps = 12;
	w.qp[1].stat.rx_ce = 30;
	assert_string_equal(found(), "slow congestion-marks");
}

static void explain_refused__but_for_what_losses_bring(void **state)
{
	w.qp[1].stat.rx_dropped = 5;
	w.qp[1].stat.last_drop = XROCE_DROP_psn_duplicate;
	assert_string_equal(found(), "");
	w.qp[1].stat.last_drop = XROCE_DROP_no_receive;
	assert_string_equal(found(), "slow packets-refused");
	w.qp[1].stat.last_drop = XROCE_DROP_icrc;
	w.qp[1].stat.icrc_errors = 5;
	assert_string_equal(found(), "slow icrc-errors");
}

static void explain_cq_full__nobody_polls(void **state)
{
	w.qp[1].recv_cq.waiting = 115;
	assert_string_equal(found(), "");
	w.qp[1].recv_cq.waiting = 116;
	assert_string_equal(found(), "slow cq-not-polled");
	/* a map may have any content */
	w.qp[1].recv_cq.waiting = 1000000;
	assert_string_equal(found(), "");
}

/* ---- notes ---- */

static void explain_notes__are_no_faults(void **state)
{
	static const enum xroce_qp_state before_rts[] = { XROCE_QPS_RESET, XROCE_QPS_INIT,
							  XROCE_QPS_RTR };

	for (u32 i = 0; i < 3; i++) {
		w.qp[1].stat.state = before_rts[i];
		w.qp[1].stat.rx_packets = w.qp[0].stat.rx_packets;
		assert_string_equal(found(), "note not-connected");
		assert_int_equal(explain_worst(&w.found), EXPLAIN_NOTE);
	}
	/* a QP that need not send */
	w.qp[1].stat.rx_packets++;
	assert_string_equal(found(), "");
	w.qp[1].stat.rx_packets--;
	/* a datagram QP in RTR can receive */
	w.qp[1].stat.transport = XROCE_UD;
	assert_string_equal(found(), "");
	begin(NULL);
	w.qp[1] = w.qp[0];
	w.qp[1].stat.outstanding = 0;
	assert_string_equal(found(), "note idle");
	/* librdmacm's QP 1 is usually idle */
	w.qp[0].qpn = w.qp[1].qpn = 1;
	assert_string_equal(found(), "");
	begin(NULL);
	w.qp[0].stat.timeouts = w.qp[1].stat.timeouts = 3;
	assert_string_equal(found(), "note trouble-before");
	begin(NULL);
	w.qp[1].stat.rate_limit = 1000000;
	assert_string_equal(found(), "note rate-limit");
	begin(NULL);
	w.qp[1].stat.credit_waits = 7;
	assert_string_equal(found(), "note waits-for-credits");
}

/* ---- all together ---- */

static void explain_sort__the_gravest_first(void **state)
{
	w.port[1].sums.engine.tx_lost = 5;
	w.qp[1].stat.icrc_errors = 9;
	w.qp[1].stat.rx_rnr_naks = 100;
	w.qp[1].stat.unacked_psn = w.qp[0].stat.unacked_psn;
	assert_string_equal(found(), "broken rnr, slow not-sent, slow icrc-errors");
	assert_int_equal(w.found.list[0].qpn, 0x111);
	assert_int_equal(w.found.list[1].qpn, 0);
	assert_int_equal(explain_worst(&w.found), EXPLAIN_BROKEN);
}

/* A common finding of many QPs is reported once. */
static void explain_sort__says_once(void **state)
{
	findings_end(&w.found);
	make_error(XROCE_REASON_NAK_REMOTE_ACCESS);
	for (u32 i = 0; i < 40; i++) {
		w.qp[0].qpn = w.qp[1].qpn = 0x140 - i;
		explain_look(&w.qp_case, &w.found);
	}
	explain_sort(&w.found);
	assert_int_equal(w.found.num, 1);
	assert_int_equal(w.found.list[0].qpn, 0x140 - 39);
	assert_int_equal(w.found.list[0].more, 39);
}

/* Whatever the maps contain, the rules only compare and print it. */
static void explain_look__any_numbers(void **state)
{
	u64 seed = 1;

	for (u32 n = 0; n < 20000; n++) {
		struct explain_qp *qps[] = { &w.qp[0], &w.qp[1], &w.peer[0], &w.peer[1] };

		for (u32 i = 0; i < 4; i++) {
			u32 *words = (u32 *)&qps[i]->stat;

			for (u32 k = 0; k < sizeof(qps[i]->stat) / 4; k++) {
				seed = seed * 6364136223846793005ull + 1442695040888963407ull;
				words[k] = seed >> 61 ? (u32)(seed >> 40) & 7 : (u32)(seed >> 20);
			}
		}
		findings_end(&w.found);
		explain_look(&w.qp_case, &w.found);
		explain_sort(&w.found);
		for (u32 i = 0; i < w.found.num; i++)
			assert_true(strlen(w.found.list[i].text) <
					    sizeof(w.found.list[i].text) - 1 &&
				    *w.found.list[i].text);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(explain__healthy),
		TEST(explain_link_down__says_which_way),
		TEST(explain_stopped__all_threads),
		TEST(explain_starved__waits_and_does_not_run),
		TEST(explain_ring_full__counted_or_not_taken),
		TEST(explain_not_taken__lies_there),
		TEST(explain_port__ways_out),
		TEST(explain_error__every_reason),
		TEST(explain_error__sqe_and_the_peer),
		TEST(explain_cq_overrun__of_either_queue),
		TEST(explain_rnr__progress_decides),
		TEST(explain_silent__with_and_without_a_cause),
		TEST(explain_unacknowledged__while_packets_arrive),
		TEST(explain_peer__starved_and_full),
		TEST(explain_mtu__here_and_on_the_way),
		TEST(explain_pkey__both_ends_or_drops),
		TEST(explain_foreign__by_the_reason),
		TEST(explain_loss__gaps_or_lateness),
		TEST(explain_congested__both_ways),
		TEST(explain_refused__but_for_what_losses_bring),
		TEST(explain_cq_full__nobody_polls),
		TEST(explain_notes__are_no_faults),
		TEST(explain_sort__the_gravest_first),
		TEST(explain_sort__says_once),
		TEST(explain_look__any_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
