/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules for a working queue pair: causes of low speed and of waiting. */
#include "explain_rule.h"
#include "../counters.h"

/* ---- helpers of the rules ---- */

static bool qp_is_reliable(const struct explain_qp *q)
{
	return q->has_stat && (q->stat.transport == XROCE_RC || q->stat.transport == XROCE_XRC);
}

bool qp_sends(const struct explain_qp *q)
{
	return q->has_stat && (q->stat.state == XROCE_QPS_RTS || q->stat.state == XROCE_QPS_SQD);
}

bool qp_is_connected(const struct explain_qp *q)
{
	return q->has_stat && q->stat.transport != XROCE_UD && q->stat.state >= XROCE_QPS_RTR &&
	       q->stat.state != XROCE_QPS_ERR;
}

bool qp_is_stuck(const struct explain_end *e)
{
	return qp_is_reliable(e->qp[1]) && qp_sends(e->qp[1]) && QP(*e, outstanding) &&
	       e->qp[0]->stat.outstanding && e->qp[0]->stat.unacked_psn == QP(*e, unacked_psn);
}

bool qp_gets_no_answer(const struct explain_end *e)
{
	if (!qp_is_reliable(e->qp[1]))
		return false;
	if (QP(*e, state) == XROCE_QPS_ERR)
		return QP(*e, error_ns) && QP(*e, error_reason) == XROCE_REASON_TIMEOUT;
	return qp_is_stuck(e) && !QP_GROWN(*e, rx_packets) && QP(*e, resent_times) &&
	       QP(*e, resent_psn) == QP(*e, unacked_psn);
}

/* ---- packets from other senders ---- */

bool explain_foreign(const struct explain_case *c, struct finding *f)
{
	const struct explain_qp *q = c->own.qp[1];
	const u64 n = grown(c->own.qp[0]->steer.rx_dropped, q->steer.rx_dropped);
	enum xroce_drop why;
	u64 num;

	if (!q->has_steer || !n)
		return false;
	why = port_drop_grown(&c->own, &num);
	/* separate rules: a P_Key mismatch; a QP that no longer receives */
	if (why == XROCE_DROP_pkey || (!q->steer.receiving && why == XROCE_DROP_qp_state))
		return false;
	finding_say(f,
		    "XDP dropped %llu packets for this QP in %.1f s",
		    (unsigned long long)n, c->seconds);
	switch (why) {
	case XROCE_DROP_peer:
		finding_say(f, ", because their addresses are not those of the connection.");
		finding_advise(f, "A former peer of that QP number still sends, or another host "
				  "forges packets. ");
		break;
	case XROCE_DROP_qkey:
		finding_say(f, ", because their Q_Key differs.");
		finding_advise(f, "The sender must use this QP's Q_Key. ");
		break;
	case XROCE_DROP_qp_transport:
		finding_say(f, ", because they are of another transport service (RC, UC, UD).");
		finding_advise(f, "A sender uses a wrong QP number, or the QPs of both ends have "
				  "different types. ");
		break;
	case XROCE_DROP_none:
		finding_say(f, ".");
		break;
	default:
		finding_say(f, " (%s).", counters_drop(why));
		break;
	}
	finding_say(f, " They only cost the time to check them.");
	finding_advise(f,
		       "'xroce capture --drops -q %u -w FILE' shows the sender; a firewall can "
		       "block it.",
		       q->qpn);
	finding_count(c, f, "xdp_dropped", c->own.qp[0]->steer.rx_dropped, q->steer.rx_dropped);
	finding_count(c, f, "xdp_packets", c->own.qp[0]->steer.rx_packets, q->steer.rx_packets);
	if (why == XROCE_DROP_peer)
		SUM_COUNT(c, f, c->own, "drop_peer", xdp.peer);
	if (why == XROCE_DROP_qp_transport)
		SUM_COUNT(c, f, c->own, "drop_qp_transport", xdp.qp_transport);
	return true;
}

bool explain_corrupted(const struct explain_case *c, struct finding *f)
{
	const u64 n = QP_GROWN(c->own, icrc_errors);

	if (!n)
		return false;
	finding_say(f,
		    "Packets arrive with a wrong ICRC and are dropped: %llu in %.1f s. They are "
		    "corrupted on the path, or forged.",
		    (unsigned long long)n, c->seconds);
	finding_advise(f, "Check devices that rewrite packets (NAT, firewall), memory and cables "
			  "('ethtool -S' there), and other senders ('xroce capture').");
	QP_COUNT(c, f, c->own, icrc_errors);
	QP_COUNT(c, f, c->own, rx_packets);
	QP_COUNT(c, f, c->own, tx_sequence_naks);
	return true;
}

/* Drops that result from losses or have a separate rule. */
static bool drop_is_ordinary(u32 drop)
{
	return drop == XROCE_DROP_psn_ahead || drop == XROCE_DROP_psn_duplicate ||
	       drop == XROCE_DROP_unexpected_response || drop == XROCE_DROP_sequence ||
	       drop == XROCE_DROP_icrc;
}

bool explain_refused(const struct explain_case *c, struct finding *f)
{
	const u64 n = QP_GROWN(c->own, rx_dropped);
	const u32 why = QP(c->own, last_drop);

	if (!n || drop_is_ordinary(why) || n == QP_GROWN(c->own, icrc_errors))
		return false;
	finding_say(f,
		    "This QP dropped %llu packets in %.1f s, the last one for the reason '%s'.",
		    (unsigned long long)n, c->seconds, counters_drop(why));
	if (why == XROCE_DROP_no_receive || why == XROCE_DROP_receive_short)
		finding_advise(f, "Post more receives before messages arrive, each as long as the "
				  "longest message (for UD plus 40 bytes).");
	else
		finding_advise(f,
			       "docs/xdp.md and xroce(7) explain '%s'; 'xroce trace -q %u' prints "
			       "the packets.",
			       counters_drop(why), c->own.qp[1]->qpn);
	QP_COUNT(c, f, c->own, rx_dropped);
	QP_COUNT(c, f, c->own, rx_packets);
	return true;
}

/* ---- the application ---- */

static bool cq_is_full(const struct xroce_cq_stat *cq)
{
	return cq->entries && cq->waiting <= cq->entries &&
	       cq->waiting >= cq->entries - cq->entries / 10;
}

bool explain_cq_full(const struct explain_case *c, struct finding *f)
{
	const struct explain_qp *q = c->own.qp[1];
	const bool recv = q->has_recv_cq && cq_is_full(&q->recv_cq);
	const struct xroce_cq_stat *cq = recv ? &q->recv_cq : &q->send_cq;

	if (cq->overruns || (!recv && !(q->has_send_cq && cq_is_full(cq))))
		return false;
	finding_say(f,
		    "The application does not poll its completion queue: %u of %u entries held "
		    "completions when the last one was written.",
		    cq->waiting, cq->entries);
	finding_advise(f, "Poll the CQ (ibv_poll_cq), or the next completions overrun it.");
	finding_number(f, "cq_waiting", cq->waiting);
	finding_number(f, "cq_entries", cq->entries);
	return true;
}

bool explain_rate_limit(const struct explain_case *c, struct finding *f)
{
	const double rate = (double)QP_GROWN(c->own, tx_bytes) / (c->seconds > 0 ? c->seconds : 1);

	if (!qp_sends(c->own.qp[1]) || !QP(c->own, rate_limit) ||
	    rate < 0.8 * (double)QP(c->own, rate_limit))
		return false;
	finding_say(f,
		    "It sends at the limit that the application set: %.1f MB/s, with a limit of "
		    "%.1f (ibv_modify_qp_rate_limit).",
		    rate / 1e6, (double)QP(c->own, rate_limit) / 1e6);
	finding_number(f, "rate_limit", QP(c->own, rate_limit));
	return true;
}

bool explain_credits(const struct explain_case *c, struct finding *f)
{
	const u64 n = QP_GROWN(c->own, credit_waits), flow = QP_GROWN(c->own, flow_waits);

	if (!n && !flow)
		return false;
	finding_say(f,
		    "It waited %llu times in %.1f s for credits of the peer: the peer posts few "
		    "receives, or its process is slow.",
		    (unsigned long long)(n + flow), c->seconds);
	finding_advise(f, "If the throughput is too low, post more receives at the peer.");
	QP_COUNT(c, f, c->own, credit_waits);
	QP_COUNT(c, f, c->own, flow_waits);
	return true;
}

bool explain_not_connected(const struct explain_case *c, struct finding *f)
{
	static const char *const states[] = {
		"RESET: the application has not started to connect it",
		"INIT: it neither receives nor sends until the application sets its peer (RTR)",
		"RTR: it receives, but does not send until the application moves it to RTS",
	};
	const struct xroce_qp_stat *s = &c->own.qp[1]->stat;

	if (!c->own.qp[1]->has_stat || s->state >= ARRAY_SIZE(states) ||
	    (s->state == XROCE_QPS_RTR &&
	     (s->transport == XROCE_UD || QP_GROWN(c->own, rx_packets))))
		return false;
	finding_say(f, "It is in %s.", states[s->state]);
	finding_advise(f, "If it should work already, the application waits for the exchange of "
			  "addresses with its peer (TCP, rdma_cm).");
	finding_number(f, "state", s->state);
	return true;
}

bool explain_idle(const struct explain_case *c, struct finding *f)
{
	const struct explain_qp *q = c->own.qp[1];

	/* QP 1 belongs to librdmacm and is idle between connections */
	if (q->qpn == 1 || !qp_sends(q) || q->stat.outstanding || QP_GROWN(c->own, tx_packets) ||
	    QP_GROWN(c->own, rx_packets) || port_is_stopped(c->own.port[1]))
		return false;
	finding_say(f,
		    "Nothing is in progress: all posted work is done, and no packet arrived in "
		    "%.1f s.",
		    c->seconds);
	if (q->has_recv_cq && q->recv_cq.waiting)
		finding_say(f, " Completions not polled when the last one was written: %u.",
			    q->recv_cq.waiting);
	finding_advise(f, "If you expected more, check whether the application waits for its peer, "
			  "for an event that it has not requested (ibv_req_notify_cq), or for one "
			  "of its locks.");
	finding_number(f, "outstanding", 0);
	QP_COUNT(c, f, c->own, tx_packets);
	QP_COUNT(c, f, c->own, rx_packets);
	if (q->has_recv_cq)
		finding_number(f, "cq_waiting", q->recv_cq.waiting);
	return true;
}

/* Reports past trouble of a QP that works now. */
bool explain_before(const struct explain_case *c, struct finding *f)
{
	const struct xroce_qp_stat *s = &c->own.qp[1]->stat;

	if (!qp_sends(c->own.qp[1]) || qp_is_stuck(&c->own) || qp_repairs(&c->own) ||
	    qp_timeouts(&c->own) || QP_GROWN(c->own, rx_rnr_naks) ||
	    (share(grown(s->rto_spurious, s->tx_retransmitted), s->tx_packets) < LOSS_SHARE &&
	     !s->timeouts &&
	     share(s->rx_rnr_naks, s->tx_packets) < LOSS_SHARE))
		return false;
	finding_say(f,
		    "It had problems before, but has none now: since its creation %llu of %llu "
		    "packets were retransmitted, %llu time-outs expired, and %llu times the peer "
		    "had no receive posted.",
		    (unsigned long long)s->tx_retransmitted, (unsigned long long)s->tx_packets,
		    (unsigned long long)s->timeouts, (unsigned long long)s->rx_rnr_naks);
	QP_COUNT(c, f, c->own, tx_retransmitted);
	QP_COUNT(c, f, c->own, timeouts);
	QP_COUNT(c, f, c->own, rx_rnr_naks);
	return true;
}
