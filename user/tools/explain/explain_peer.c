/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules for the other end and the path to it: why packets do not arrive; and for packets that do:
 * loss, delay, congestion.
 */
#include "explain_rule.h"

/* ---- packets that do not arrive ---- */

bool explain_mtu_here(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = c->own.port[1];
	const struct explain_qp *q = c->own.qp[1];

	if (!p->has_iface || !q->has_stat || !qp_is_connected(q) || q->link_mtu <= p->mtu)
		return false;
	finding_say(f,
		    "The path MTU of this QP is too large for its interface: packets of %u bytes "
		    "need a link MTU of %u, and the current MTU of %s is %u. Large messages are "
		    "not sent.",
		    q->stat.path_mtu, q->link_mtu, p->dev, p->mtu);
	finding_advise(f,
		       "Run 'ip link set %s mtu %u', at both ends and on the path; or connect with "
		       "a smaller path_mtu.",
		       p->dev, q->link_mtu);
	finding_number(f, "path_mtu", q->stat.path_mtu);
	finding_number(f, "mtu", p->mtu);
	return true;
}

/*
 * Whether the path has carried packets of about this length: the average frame, without
 * retransmissions and packets in flight, exceeds half of it.
 */
static bool qp_carried(const struct xroce_qp_stat *s, u32 bytes)
{
	const u64 packets = grown(s->tx_retransmitted + s->outstanding, s->tx_packets);
	const u64 rest = s->tx_retransmitted_bytes + (u64)s->outstanding * bytes;

	return packets && grown(rest, s->tx_bytes) / packets > bytes / 2;
}

/* Frame lengths that any path carries, and that nearly all paths carry. */
#define MTU_LEAST  600u
#define MTU_COMMON 1300u

static bool qp_is_too_large(const struct explain_end *e)
{
	const struct xroce_qp_stat *s = &e->qp[1]->stat;

	return (qp_gets_no_answer(e) || qp_is_unacknowledged(e)) && s->resent_times >= 2 &&
	       s->resent_psn == s->unacked_psn &&
	       s->resent_bytes > MTU_LEAST && !qp_carried(s, s->resent_bytes);
}

static u32 qp_ping_bytes(const struct xroce_qp_stat *s)
{
	/* Ethernet, IPv4 and ICMP headers */
	return s->resent_bytes - 42;
}

/* The kernel may have refused each retransmission. */
static bool qp_is_refused_here(const struct explain_case *c)
{
	return SUM(c->own, engine.tx_lost) >= QP(c->own, resent_times);
}

bool explain_mtu_path(const struct explain_case *c, struct finding *f)
{
	const struct xroce_qp_stat *s = &c->own.qp[1]->stat;

	/* smaller packets arrived, so the peer is reachable */
	if (!qp_is_too_large(&c->own) || !s->rx_packets || qp_is_refused_here(c))
		return false;
	finding_say(f,
		    "The path to the peer does not carry frames as long as those of this QP: a "
		    "packet of %u bytes was retransmitted %u times and never acknowledged, nor was "
		    "any other of that length, but shorter ones arrive (%llu packets came from the "
		    "peer). A link or router on the path has a smaller MTU than path MTU %u needs.",
		    s->resent_bytes, s->resent_times, (unsigned long long)s->rx_packets,
		    s->path_mtu);
	finding_advise(f,
		       "Check with 'ping -M do -s %u PEER'; 'xroce ping PEER' measures the path "
		       "MTU. Then raise the MTU of every link on the path to %u, or connect with a "
		       "smaller path_mtu.",
		       qp_ping_bytes(s), c->own.qp[1]->link_mtu);
	finding_number(f, "resent_bytes", s->resent_bytes);
	finding_number(f, "resent_times", s->resent_times);
	finding_number(f, "path_mtu", s->path_mtu);
	QP_COUNT(c, f, c->own, rx_packets);
	QP_COUNT(c, f, c->own, tx_retransmitted);
	return true;
}

bool explain_pkey(const struct explain_case *c, struct finding *f)
{
	const struct explain_qp *q = c->own.qp[1];
	u64 dropped;

	if (c->has_peer && q->has_stat && c->peer.qp[1]->has_stat &&
	    !roce_pkey_matches((u16)q->stat.pkey, (u16)QP(c->peer, pkey))) {
		finding_say(f,
			    "The P_Keys of both ends do not match: 0x%04x here, 0x%04x there. Each "
			    "end drops the packets of the other. P_Keys match if their lower 15 "
			    "bits are equal and at least one has the upper bit set (a full "
			    "member).",
			    q->stat.pkey & 0xffff, QP(c->peer, pkey) & 0xffff);
		finding_number(f, "pkey", q->stat.pkey & 0xffff);
		finding_number(f, "pkey", QP(c->peer, pkey) & 0xffff);
		finding_is_peers(f);
		SUM_COUNT(c, f, c->own, "drop_pkey", xdp.pkey);
		SUM_COUNT(c, f, c->peer, "drop_pkey", xdp.pkey);
		finding_is_peers(f);
	} else {
		dropped = SUM(c->own, xdp.pkey);
		/* no packet was accepted, so all drops may have this reason */
		if (!dropped || !q->has_steer || !q->steer.rx_dropped ||
		    (q->steer.rx_packets && !SUM_GROWN(c->own, xdp.pkey)))
			return false;
		finding_say(f,
			    "%s drops packets for this QP because their P_Key does not match its "
			    "own, 0x%04x: the QP of the peer is in another partition.",
			    c->own.port[1]->by_sockets ? "The broker" : "XDP",
			    (q->has_stat ? q->stat.pkey : q->steer.pkey) & 0xffff);
		SUM_COUNT(c, f, c->own, "drop_pkey", xdp.pkey);
		finding_count(c, f, "xdp_dropped", c->own.qp[0]->steer.rx_dropped,
			      q->steer.rx_dropped);
		finding_number(f, "xdp_packets", q->steer.rx_packets);
	}
	finding_advise(f, "Choose the pkey_index of a P_Key that both tables have (ibv_query_pkey; "
			  "'xroce list' prints the table, 'xroce serve --pkey' sets it).");
	return true;
}

bool explain_peer_gone(const struct explain_case *c, struct finding *f)
{
	const struct xroce_qp_stat *s = &c->own.qp[1]->stat;

	if (!c->is_peer_gone)
		return false;
	finding_say(f,
		    "The queue pair of the peer no longer exists: its address is on this host, and "
		    "no process here has QP 0x%06x. The process of the peer exited or was killed, "
		    "or destroyed the QP.",
		    s->peer_qpn & 0xffffff);
	finding_advise(f, "Restart the peer and connect again; find out why it exited (exit "
			  "status, dmesg for the OOM killer).");
	/* a QP without requests works normally */
	if (!qp_gets_no_answer(&c->own))
		f->severity = EXPLAIN_SLOW;
	finding_number(f, "peer_qpn", s->peer_qpn & 0xffffff);
	QP_COUNT(c, f, c->own, timeouts);
	QP_COUNT(c, f, c->own, rto_probes);
	QP_COUNT(c, f, c->own, rx_packets);
	return true;
}

bool explain_peer_link(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = c->has_peer ? c->peer.port[1] : NULL;

	if (!p || !p->has_iface || p->is_up || !strcmp(p->dev, c->own.port[1]->dev))
		return false;
	finding_say(f, "The interface %s of the peer, on this host, is down.", p->dev);
	finding_advise(f, "Run 'ip link set %s up'; then check its other end.", p->dev);
	finding_number(f, "is_up", 0);
	finding_is_peers(f);
	return true;
}

/* Returns the peer's port if another process of this host has it, else NULL. */
static const struct explain_port *peer_process(const struct explain_case *c)
{
	const struct explain_port *p = c->has_peer ? c->peer.port[1] : NULL;

	return p && p->pid != c->own.port[1]->pid ? p : NULL;
}

bool explain_peer_stopped(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = peer_process(c);

	if (!p || !port_is_stopped(p))
		return false;
	finding_say(f,
		    "The process of the peer, %u (%s) on this host, is stopped (by SIGSTOP, ^Z or "
		    "a debugger) and does not answer.",
		    p->pid, p->command);
	finding_advise(f, "Run 'kill -CONT %u'.", p->pid);
	finding_number(f, "threads_stopped", p->process.stopped);
	finding_is_peers(f);
	QP_COUNT(c, f, c->own, timeouts);
	QP_COUNT(c, f, c->own, rto_probes);
	return true;
}

bool explain_peer_error(const struct explain_case *c, struct finding *f)
{
	const struct explain_qp *q = c->has_peer ? c->peer.qp[1] : NULL;

	if (!q || !q->has_stat || q->stat.state != XROCE_QPS_ERR ||
	    c->own.qp[1]->stat.state == XROCE_QPS_ERR)
		return false;
	finding_say(f,
		    "The queue pair of the peer, 0x%06x of process %u (%s) on this host, is in the "
		    "error state and accepts no packets.",
		    q->qpn, c->peer.port[1]->pid, c->peer.port[1]->command);
	finding_advise(f, "Run 'xroce explain 0x%06x' for the reason.", q->qpn);
	finding_number(f, "error_reason", q->stat.error_reason);
	finding_is_peers(f);
	return true;
}

bool explain_peer_starved(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = peer_process(c);

	if (!p || port_is_stopped(p) ||
	    !port_is_starved(&c->peer, c->seconds))
		return false;
	finding_say(f,
		    "The process of the peer, %u (%s) on this host, gets hardly any CPU time and "
		    "answers late.",
		    p->pid, p->command);
	finding_advise(f, "Give it more CPU time; run 'xroce explain %u' for details.", p->pid);
	finding_count(c, f, "ran_ns", c->peer.port[0]->process.ran_ns, p->process.ran_ns);
	finding_is_peers(f);
	finding_count(c, f, "waited_ns", c->peer.port[0]->process.waited_ns, p->process.waited_ns);
	finding_is_peers(f);
	finding_number(f, "threads_ready", p->process.ready);
	finding_is_peers(f);
	return true;
}

bool explain_peer_ring(const struct explain_case *c, struct finding *f)
{
	const struct explain_port *p = peer_process(c);

	if (!p || !port_ring_overflows(&c->peer))
		return false;
	finding_say(f,
		    "The receive ring of the peer's process, %u (%s) on this host, overflows: the "
		    "packets are lost there, not on the path.",
		    p->pid, p->command);
	finding_advise(f, "Run 'xroce explain %u' for details.", p->pid);
	SUM_COUNT(c, f, c->peer, "sock_rx_ring_full", sock.rx_ring_full);
	finding_is_peers(f);
	SUM_COUNT(c, f, c->peer, "drop_ring_full", xdp.ring_full);
	finding_is_peers(f);
	finding_number(f, "frames_not_taken", port_backlog(p));
	finding_is_peers(f);
	return true;
}

/* Adds the possible causes, the likeliest first. */
static void silent_causes(const struct explain_case *c, struct finding *f)
{
	const struct xroce_qp_stat *s = &c->own.qp[1]->stat;
	const u64 icmp = grown(c->own.port[0]->unreachable, c->own.port[1]->unreachable);

	if (s->resent_times && qp_is_refused_here(c)) {
		finding_guess(f,
			      "Its packets may not have been sent: the kernel refused %llu frames "
			      "of this process. Check for a rule of this host that drops them "
			      "('nft list ruleset').",
			      (unsigned long long)SUM(c->own, engine.tx_lost));
		return;
	}
	if (icmp)
		finding_guess(f,
			      "Its host is up but nothing listens there (%llu ICMP \"unreachable\" "
			      "arrived in that time): the process of the peer has exited.",
			      (unsigned long long)icmp);
	else if (s->rx_packets)
		finding_guess(f,
			      "It answered before (%llu packets), so its process has probably "
			      "exited, or was killed or stopped; otherwise its host or the path is "
			      "down.",
			      (unsigned long long)s->rx_packets);
	else
		finding_guess(
			f, "It never sent a packet to this QP: the address or the QP number is "
			   "wrong, its QP is not in RTR yet, its P_Key differs, or a firewall "
			   "drops UDP port 4791.");
	if (!icmp && qp_is_too_large(&c->own) && !s->rx_packets && s->resent_bytes > MTU_COMMON)
		finding_guess(f,
			      " Or the MTU of the path is too small: each attempt was a frame of "
			      "%u bytes, and none of that length was ever acknowledged.",
			      s->resent_bytes);
}

bool explain_silent(const struct explain_case *c, struct finding *f)
{
	const struct xroce_qp_stat *s = &c->own.qp[1]->stat;

	if (!qp_gets_no_answer(&c->own))
		return false;
	if (s->state == XROCE_QPS_ERR)
		finding_say(f,
			    "The peer did not answer: after retry_cnt time-outs the QP entered the "
			    "error state.");
	else
		finding_say(f,
			    "The peer does not answer: %u packets wait for an acknowledgement, and "
			    "in %.1f s no packet arrived from it.",
			    s->outstanding, c->seconds);
	silent_causes(c, f);
	finding_advise(f, "At the peer: check that its process runs ('xroce qp', 'xroce explain'). "
			  "On this host: use 'xroce ping PEER', ");
	if (s->resent_bytes > MTU_LEAST)
		finding_advise(f, "'ping -M do -s %u PEER', ", qp_ping_bytes(s));
	finding_advise(f, "'xroce trace -e'.");
	QP_COUNT(c, f, c->own, timeouts);
	QP_COUNT(c, f, c->own, rto_probes);
	finding_number(f, "resent_times", s->resent_times);
	finding_number(f, "resent_bytes", s->resent_bytes);
	QP_COUNT(c, f, c->own, tx_packets);
	QP_COUNT(c, f, c->own, rx_packets);
	return true;
}

/* Only the way from this QP to its peer loses packets. */
bool explain_unacknowledged(const struct explain_case *c, struct finding *f)
{
	const struct xroce_qp_stat *s = &c->own.qp[1]->stat;

	if (!qp_is_unacknowledged(&c->own))
		return false;
	finding_say(f,
		    "The peer acknowledges nothing: %u packets wait for an acknowledgement, and in "
		    "%.1f s none was acknowledged, although %llu packets arrived from the peer.",
		    s->outstanding, c->seconds, (unsigned long long)QP_GROWN(c->own, rx_packets));
	if (qp_is_refused_here(c))
		finding_guess(f,
			      "The kernel refused %llu frames of this process: a rule of this host "
			      "drops them.",
			      (unsigned long long)SUM(c->own, engine.tx_lost));
	else
		finding_guess(f, "What this QP sends is lost: by a filter for outgoing packets on "
				 "this host, by a firewall on the path, or at the peer.");
	finding_advise(f, "Check the rules of this host ('tc filter show dev %s egress', 'nft list "
			  "ruleset'), then the counters of switches; at the peer run 'xroce "
			  "explain'.",
		       c->own.port[1]->dev);
	QP_COUNT(c, f, c->own, timeouts);
	QP_COUNT(c, f, c->own, rto_probes);
	finding_number(f, "resent_times", s->resent_times);
	finding_number(f, "outstanding", s->outstanding);
	QP_COUNT(c, f, c->own, tx_packets);
	QP_COUNT(c, f, c->own, rx_packets);
	return true;
}

/* ---- congestion ---- */

bool explain_congested(const struct explain_case *c, struct finding *f)
{
	const u64 n = QP_GROWN(c->own, rx_cnps);

	if (!n)
		return false;
	finding_say(f,
		    "The network to the peer is congested: the peer notified this QP of marked "
		    "packets %llu times (CNP) in %.1f s",
		    (unsigned long long)n, c->seconds);
	if (QP(c->own, rate))
		finding_say(f,
			    ", and the rate is reduced to %.1f MB/s",
			    (double)QP(c->own, rate) / 1e6);
	finding_say(f, ".");
	finding_advise(f, "Find the saturated link: a switch port with several senders, or a "
			  "slower link on the path. Use fewer senders at once or more bandwidth "
			  "there; ECN thresholds of the switch that are too low have the same "
			  "effect.");
	QP_COUNT(c, f, c->own, rx_cnps);
	finding_number(f, "rate", QP(c->own, rate));
	QP_COUNT(c, f, c->own, tx_packets);
	return true;
}

bool explain_marked(const struct explain_case *c, struct finding *f)
{
	const u64 n = QP_GROWN(c->own, rx_ce);

	if (!n)
		return false;
	finding_say(f,
		    "Packets arrive marked \"congestion experienced\": %llu of %llu in %.1f s. The "
		    "path to this host is congested, and this QP asked the peer to slow down (%llu "
		    "CNPs).",
		    (unsigned long long)n, (unsigned long long)QP_GROWN(c->own, rx_packets),
		    c->seconds, (unsigned long long)QP_GROWN(c->own, tx_cnps));
	finding_advise(f, "Several senders share a link to this host, or the link is slower than "
			  "the senders: spread the senders, or reduce their rate.");
	QP_COUNT(c, f, c->own, rx_ce);
	QP_COUNT(c, f, c->own, tx_cnps);
	QP_COUNT(c, f, c->own, rx_packets);
	return true;
}

/* ---- loss ---- */

/* Total below which loss is not reported. */
#define LOSS_LEAST 5

/* Counts the gaps shown by a packet after the missing one. */
static u64 qp_gaps(const struct explain_end *e)
{
	return QP_GROWN(*e, rx_sequence_naks) + QP_GROWN(*e, implied_naks);
}

u64 qp_timeouts(const struct explain_end *e)
{
	return QP_GROWN(*e, rto_probes) + QP_GROWN(*e, timeouts);
}

bool qp_repairs(const struct explain_end *e)
{
	const u64 again = QP_GROWN(*e, tx_retransmitted);

	return qp_sends(e->qp[1]) && !qp_gets_no_answer(e) && !qp_is_unacknowledged(e) &&
	       again >= LOSS_LEAST &&
	       share(again, QP_GROWN(*e, tx_packets)) >= LOSS_SHARE;
}

bool explain_loss(const struct explain_case *c, struct finding *f)
{
	/* a response that was only late is no loss */
	const u64 again = grown(QP_GROWN(c->own, rto_spurious),
				QP_GROWN(c->own, tx_retransmitted)),
		  sent = QP_GROWN(c->own, tx_packets), gaps = qp_gaps(&c->own);

	if (!qp_repairs(&c->own) || gaps < LOSS_LEAST || share(again, sent) < LOSS_SHARE)
		return false;
	finding_say(f,
		    "Packets are lost between this QP and its peer: in %.1f s %llu of %llu packets "
		    "were retransmitted (%.1f %%), and %llu times an answer showed a gap.",
		    c->seconds, (unsigned long long)again, (unsigned long long)sent,
		    100 * share(again, sent), (unsigned long long)gaps);
	finding_advise(f, "Run 'xroce explain' at the peer: it reports rings that overflow. "
			  "Otherwise find the place: 'xroce ping PEER' measures the loss; 'ip -s "
			  "link', 'ethtool -S' and the port counters of switches count the drops.");
	QP_COUNT(c, f, c->own, tx_retransmitted);
	QP_COUNT(c, f, c->own, rx_sequence_naks);
	QP_COUNT(c, f, c->own, implied_naks);
	QP_COUNT(c, f, c->own, rto_probes);
	QP_COUNT(c, f, c->own, timeouts);
	QP_COUNT(c, f, c->own, tx_packets);
	return true;
}

/* No gap was seen: each time the only or the last packet was not answered in time. */
bool explain_late(const struct explain_case *c, struct finding *f)
{
	const u64 n = qp_timeouts(&c->own), spurious = QP_GROWN(c->own, rto_spurious);

	if (!qp_repairs(&c->own) || qp_gaps(&c->own) >= LOSS_LEAST || n < LOSS_LEAST)
		return false;
	finding_say(f,
		    "Answers arrive late or never: in %.1f s %llu requests were retransmitted "
		    "because no answer arrived in time.",
		    c->seconds, (unsigned long long)n);
	if (spurious >= n / 2)
		finding_guess(f,
			      "Most of them were answered twice (%llu), so nothing is lost: one of "
			      "the two processes waits for a CPU.",
			      (unsigned long long)spurious);
	else if (c->has_peer && QP_GROWN(c->peer, duplicate_requests) >= n / 2)
		finding_guess(
			f,
			"The peer received most of them before (%llu duplicates), so nothing is "
			"lost: one of the two processes waits for a CPU.",
			(unsigned long long)QP_GROWN(c->peer, duplicate_requests));
	else
		finding_guess(f, "Either the peer's process waits for a CPU, or packets are lost.");
	finding_advise(f, "Check that both processes get enough CPU time (top; 'xroce explain' at "
			  "the peer); otherwise 'xroce ping PEER' measures the loss.");
	QP_COUNT(c, f, c->own, rto_probes);
	QP_COUNT(c, f, c->own, rto_spurious);
	QP_COUNT(c, f, c->own, timeouts);
	QP_COUNT(c, f, c->own, late_deadlines);
	QP_COUNT(c, f, c->own, tx_packets);
	if (c->has_peer) {
		QP_COUNT(c, f, c->peer, duplicate_requests);
		finding_is_peers(f);
	}
	return true;
}

bool explain_loss_in(const struct explain_case *c, struct finding *f)
{
	const u64 early = QP_GROWN(c->own, rx_held), naks = QP_GROWN(c->own, tx_sequence_naks),
		  came = QP_GROWN(c->own, rx_packets), twice = QP_GROWN(c->own, duplicate_requests);

	if (!c->own.qp[1]->has_stat || naks < LOSS_LEAST || share(naks, came) < LOSS_SHARE / 4)
		return false;
	finding_say(f,
		    "Packets from the peer are lost or reordered on the path to this host: in %.1f "
		    "s this QP requested missing packets %llu times; %llu arrived before a missing "
		    "one, %llu arrived twice.",
		    c->seconds, (unsigned long long)naks, (unsigned long long)early,
		    (unsigned long long)twice);
	finding_advise(f, "If no ring of this process overflows, the path loses them: use 'xroce "
			  "ping PEER', 'ip -s link', 'ethtool -S' and the counters of the switch.");
	QP_COUNT(c, f, c->own, tx_sequence_naks);
	QP_COUNT(c, f, c->own, rx_held);
	QP_COUNT(c, f, c->own, duplicate_requests);
	QP_COUNT(c, f, c->own, rx_packets);
	return true;
}
