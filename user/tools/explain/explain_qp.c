/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules for a queue pair itself: what the reason of an error means and what to do, and for a
 * working one the causes of low speed and of waiting.
 */
#include "../counters.h"
#include "explain_rule.h"

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

bool qp_is_unacknowledged(const struct explain_end *e)
{
	if (!qp_is_stuck(e) || !QP_GROWN(*e, rx_packets) ||
	    QP(*e, resent_psn) != QP(*e, unacked_psn))
		return false;
	/* the peer received the packets that it answers with a NAK */
	return (qp_timeouts(e) || QP(*e, resent_times) >= 2) && QP(*e, resent_times) &&
	       !QP_GROWN(*e, rx_rnr_naks) && !QP_GROWN(*e, rx_sequence_naks);
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
		    "%s dropped %llu packets for this QP in %.1f s",
		    c->own.port[1]->by_sockets ? "The broker" : "XDP", (unsigned long long)n,
		    c->seconds);
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

/* ---- stopped by an error ---- */

static const struct meaning {
	enum xroce_reason reason;
	const char *text, *advice;
} meanings[] = {
	{ XROCE_REASON_NONE,
	  "It is in the error state because the application, or its connection manager, moved it "
	  "there: the application or the peer ended the connection.",
	  "Look for ibv_modify_qp() to ERR or rdma_disconnect(), and for earlier events in the "
	  "application." },
	{ XROCE_REASON_FLUSHED, "It was in the error state before its requests ran: they were "
				"flushed.",
	  "Look for the completion that failed first." },
	{ XROCE_REASON_LKEY,
	  "A request of the application uses local memory that its L_Key does not cover: the key "
	  "is unknown or of another protection domain, the range is out of bounds, or the region "
	  "lacks IBV_ACCESS_LOCAL_WRITE.",
	  "Compare the sge of the failed work request with 'xroce mr': key, address, length, PD "
	  "and rights." },
	{ XROCE_REASON_SEQUENCE_RETRY,
	  "The same packets were lost in all retries: retry_cnt sequence NAKs without progress.",
	  "The path loses most packets of some kind: measure the loss with 'xroce ping', and look "
	  "for frames that are too long for the path and for a receive ring that overflows." },
	{ XROCE_REASON_NAK_INVALID_REQUEST,
	  "The peer rejected a request of this QP (NAK, remote invalid request): a message longer "
	  "than the peer's receive, an operation that the peer's QP does not allow, or more READs "
	  "and atomics at once than its max_dest_rd_atomic.",
	  "Compare the request with the peer: the length of its receives, its qp_access_flags, "
	  "max_rd_atomic here and max_dest_rd_atomic there." },
	{ XROCE_REASON_NAK_REMOTE_ACCESS,
	  "The peer refused the access (NAK, remote access error): the R_Key of the request is "
	  "wrong there, the address and length are not inside the region, or the region or the QP "
	  "lacks the access right.",
	  "Compare R_Key, remote address and length of the work request with 'xroce mr' of the "
	  "peer: the key, the range, the rights (REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC), the "
	  "PD; and check that the region is still registered." },
	{ XROCE_REASON_NAK_REMOTE_OPERATION,
	  "The peer could not execute a request (NAK, remote operational error).",
	  "Run 'xroce explain' at the peer." },
	{ XROCE_REASON_BAD_RESPONSE, "A response contradicts its request.",
	  "Another sender uses the PSNs of this QP, or one of both ends was reset: connect again; "
	  "'xroce capture' shows the packets." },
	{ XROCE_REASON_RECV_TOO_SHORT,
	  "A message is longer than the receive that was posted for it.",
	  "Post receives as long as the longest message of the peer." },
	{ XROCE_REASON_TOO_LONG, "A request is longer than the transport or the path MTU allows.",
	  "A datagram can be as long as the path MTU, other messages 2 GiB." },
	{ XROCE_REASON_REMOTE_ACCESS_HERE,
	  "The peer requested access that its R_Key does not permit here: the receive that the "
	  "message consumed is lost.",
	  "Compare 'xroce mr' with the R_Key, address and length that the peer uses." },
	{ XROCE_REASON_INVALIDATE, "The R_Key to invalidate does not belong to this QP.",
	  "Check the R_Key of SEND with invalidate, or of the local invalidate." },
	{ XROCE_REASON_TAG_CONSUMED, "The tag to delete is no longer in the list.",
	  "It has matched already: wait for its completion." },
	{ XROCE_REASON_RENDEZVOUS, "The application must fetch a message itself.",
	  "See docs/tag-matching.md." },
	{ XROCE_REASON_MEMORY,
	  "The key is valid, but its memory is not accessible: the application unmapped it while "
	  "it was registered, or truncated the file.",
	  "Keep buffers mapped until their regions are deregistered." },
	{ XROCE_REASON_REQUEST,
	  "The transport service does not have this request or length.",
	  "Check the opcode and length of the work request." },
	{ XROCE_REASON_FAULT_RULE, "A rule of XROCE_FAULT asked for this error.",
	  "Nothing is wrong: xroce-lab(8) describes the rules." },
	{ XROCE_REASON_PEER_INVALID,
	  "The peer sent an invalid request, and this QP answered with a NAK: an operation that "
	  "its qp_access_flags do not allow, a message longer than the receive, more READs and "
	  "atomics at once than max_dest_rd_atomic, or opcodes out of order.",
	  "Compare the peer's requests with this QP's qp_access_flags, receives and "
	  "max_dest_rd_atomic." },
	{ XROCE_REASON_PEER_ACCESS,
	  "The peer requested memory that its R_Key does not permit here; this QP answered with a "
	  "remote access error.",
	  "Compare the R_Key, address and length that the peer uses with 'xroce mr --pid' of this "
	  "process: key, range, rights, PD." },
	{ XROCE_REASON_PORT_LOST, "The interface was removed, or its broker exited.",
	  "Run 'xroce serve' again and restart the program: its device does not recover." },
};

/* These reasons have separate rules. */
static bool error_is_told_elsewhere(enum xroce_reason reason)
{
	return reason == XROCE_REASON_TIMEOUT || reason == XROCE_REASON_RNR ||
	       reason == XROCE_REASON_CQ_OVERRUN;
}

static bool qp_is_in_error(const struct explain_qp *q)
{
	return q->has_stat && (q->stat.state == XROCE_QPS_ERR || q->stat.state == XROCE_QPS_SQE);
}

static void error_numbers(const struct explain_case *c, struct finding *f)
{
	finding_number(f, "error", QP(c->own, error));
	finding_number(f, "error_reason", QP(c->own, error_reason));
	if (QP(c->own, error_ns) && QP(c->own, error_ns) <= c->own.port[1]->time_ns)
		finding_number(f, "error_age_ms",
			       (c->own.port[1]->time_ns - QP(c->own, error_ns)) / 1000000);
}

bool explain_error(const struct explain_case *c, struct finding *f)
{
	const enum xroce_reason reason =
		QP(c->own, error_ns) ? QP(c->own, error_reason) : XROCE_REASON_NONE;

	if (!qp_is_in_error(c->own.qp[1]) || error_is_told_elsewhere(reason))
		return false;
	error_numbers(c, f);
	for (u32 i = 0; i < ARRAY_SIZE(meanings); i++)
		if (meanings[i].reason == reason) {
			finding_say(f, "%s", meanings[i].text);
			finding_advise(f, "%s", meanings[i].advice);
		}
	if (!*f->text)
		finding_say(f, "It is in the error state for reason %u.", (u32)reason);
	if (QP(c->own, remote_errors))
		finding_number(f, "remote_errors", QP(c->own, remote_errors));
	return true;
}

bool explain_cq_overrun(const struct explain_case *c, struct finding *f)
{
	const struct explain_qp *q = c->own.qp[1];
	const bool send = q->has_send_cq && q->send_cq.overruns,
		   recv = q->has_recv_cq && q->recv_cq.overruns;
	const struct xroce_cq_stat *cq = recv ? &q->recv_cq : &q->send_cq;

	if (!send && !recv &&
	    !(qp_is_in_error(q) && q->stat.error_ns &&
	      q->stat.error_reason == XROCE_REASON_CQ_OVERRUN))
		return false;
	finding_say(f,
		    "Its completion queue overran: a completion arrived while all %u entries held "
		    "completions not polled yet. All QPs of that CQ are in the error state.",
		    cq->entries);
	finding_advise(f, "Create the CQ as large as all work requests that can be posted to its "
			  "QPs at once (ibv_create_cq), or poll it more often; 'xroce cq' shows "
			  "how full the CQs were.");
	finding_number(f, "cq_entries", cq->entries);
	finding_number(f, "cq_waiting", cq->waiting);
	finding_number(f, "cq_most_waiting", cq->most_waiting);
	finding_number(f, "cq_overruns", cq->overruns);
	return true;
}

bool explain_rnr(const struct explain_case *c, struct finding *f)
{
	const u64 naks = QP_GROWN(c->own, rx_rnr_naks);
	/* packets answered with an RNR NAK are no longer outstanding */
	const bool is_stuck = c->own.qp[0]->stat.unacked_psn == QP(c->own, unacked_psn);
	const bool has_ended = qp_is_in_error(c->own.qp[1]) && QP(c->own, error_ns) &&
			       QP(c->own, error_reason) == XROCE_REASON_RNR;

	if (!has_ended && !naks)
		return false;
	if (has_ended)
		finding_say(f,
			    "The peer never posted a receive for the messages of this QP: after "
			    "rnr_retry retries (\"receiver not ready\") the QP entered the error "
			    "state.");
	else if (is_stuck)
		finding_say(
			f,
			"The peer has no receive posted for the messages of this QP: it answered "
			"\"receiver not ready\" %llu times in %.1f s, without progress. With "
			"rnr_retry 7 the retries never end.",
			(unsigned long long)naks, c->seconds);
	else
		finding_say(f,
			    "The peer posts receives too slowly: it answered \"receiver not "
			    "ready\" %llu times in %.1f s, and this QP waits each time.",
			    (unsigned long long)naks, c->seconds);
	finding_advise(f, "At the peer: post more receives, before messages arrive (ibv_post_recv, "
			  "or to its SRQ); check that it polls its CQ and posts again.");
	if (!has_ended && !is_stuck)
		f->severity = EXPLAIN_SLOW;
	QP_COUNT(c, f, c->own, rx_rnr_naks);
	QP_COUNT(c, f, c->own, tx_retransmitted);
	if (c->has_peer && c->peer.qp[1]->has_srq) {
		finding_number(f, "srq_waiting", c->peer.qp[1]->srq.waiting);
		finding_is_peers(f);
	}
	return true;
}

bool explain_rnr_here(const struct explain_case *c, struct finding *f)
{
	const u64 naks = QP_GROWN(c->own, tx_rnr_naks);
	const struct explain_qp *q = c->own.qp[1];

	if (!naks)
		return false;
	finding_say(f,
		    "No receive was posted here for messages of the peer: this QP answered "
		    "\"receiver not ready\" %llu times in %.1f s, and ",
		    (unsigned long long)naks, c->seconds);
	if (c->own.qp[0]->stat.msn == q->stat.msn) {
		finding_say(f, "no message was delivered.");
	} else {
		finding_say(f, "the peer waits each time.");
		f->severity = EXPLAIN_SLOW;
	}
	if (q->has_srq)
		finding_say(f, " The shared receive queue %u had %u receives left.", q->srq.srq,
			    q->srq.waiting);
	finding_advise(f, "Post more receives (ibv_post_recv, ibv_post_srq_recv) before the peer "
			  "sends, and post again after each poll.");
	QP_COUNT(c, f, c->own, tx_rnr_naks);
	QP_COUNT(c, f, c->own, msn);
	if (q->has_srq)
		finding_number(f, "srq_waiting", q->srq.waiting);
	return true;
}
