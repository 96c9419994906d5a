/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules for queue pairs stopped by an error: what the reason means, and what to do. */
#include "explain_rule.h"
#include "../counters.h"

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
