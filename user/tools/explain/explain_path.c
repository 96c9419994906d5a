/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules for packets that reach the other end: loss, delay, congestion. */
#include "explain_rule.h"

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

	return qp_sends(e->qp[1]) && !qp_gets_no_answer(e) && again >= LOSS_LEAST &&
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
