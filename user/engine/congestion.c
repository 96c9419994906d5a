/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How much and how fast a QP sends.
 *
 * Window: packets in flight, at most the engine's window, halved at a loss, one packet wider per
 * round trip. Time-out: from the measured round trip (as in TCP, RFC 6298), or the attribute before
 * the first sample, always shorter than the user's time-out. It only probes: only the user's
 * time-out uses retries. A second answer to a probe shows that it was spurious. The round trip of
 * the late first answer then becomes a sample, and for ten seconds the time-out is no shorter than
 * that. Otherwise the samples between two late answers, thousands a second, would hide it. Rate:
 * the application's limit (ibv_modify_qp_rate_limit(3)), and DCQCN. Packets marked CE are answered
 * by CNPs, at most one per CNP_INTERVAL; a CNP cuts the rate by alpha/2, quiet time lets alpha
 * decay and the rate recover. The intervals are six times the paper's: a software sender's
 * scheduling is coarser than an adapter's by about that factor.
 *
 * The application's limit is a token bucket: it fills at that rate, and data packets of the QP,
 * requests and READ responses, drain it by their length on the wire. A packet may be sent while
 * there is room for a typical one, so no burst exceeds the bucket.
 *
 * CNPs are not authenticated: any host that knows a QPN can forge them. One is accepted only if a
 * packet of this QP can have caused it, and one per CNP_INTERVAL or round trip; and the rate has a
 * floor, a share of the line rate. Refused CNPs are counted as dropped.
 */
#include "congestion.h"
#include "recovery.h"
#include "stat.h"

#define CWND_UNIT	 256
#define CWND_MIN	 8u
#define RTO_MIN_NS	 (1 * NSEC_PER_MSEC) /* a thread of the peer may have to be woken */
#define RTT_MAX_NS	 (2 * NSEC_PER_SEC)
#define RTO_RAISED_NS	 (10 * NSEC_PER_SEC) /* after a spurious probe */
#define PROBE_KEPT_PSN	 65536 /* packets within which a second answer arrives */
#define CNP_INTERVAL_NS	 (50 * NSEC_PER_USEC)
#define ALPHA_ONE	 65536u
#define ALPHA_GAIN_SHIFT 4		     /* g = 1/16 */
#define ALPHA_PERIOD_NS	 (330 * NSEC_PER_USEC)
#define RATE_PERIOD_NS	 (330 * NSEC_PER_USEC)
#define RATE_FAST_STAGES 5		     /* each goes half-way back to the target */
#define RATE_LINE_DEFAULT (10ull * 1000 * 1000 * 1000 / 8)
/* The floor, as a share of the line rate. UC has neither window nor acknowledgements. */
#define RATE_FLOOR_RELIABLE 4
#define RATE_FLOOR_UC	    16
/* longest delay between data and its CNP */
#define CNP_DELAY_NS	    (2 * NSEC_PER_MSEC)
#define RATE_BURST_NS	 (20 * NSEC_PER_USEC) /* length of a burst */
/* Default depth of an application's bucket: a thread may be this late without loss of rate. */
#define LIMIT_BURST_NS	 (200 * NSEC_PER_USEC)
#define LIMIT_BURST_PACKETS 2

/* ---- window ---- */

void congestion_start(struct engine *e, struct qp *qp)
{
	qp->req.cwnd = e->window * CWND_UNIT;
	qp->req.rtt = (struct rtt){ .deadline_ns = NSEC_NEVER };
	qp->probe = (struct rto_probe){ 0 };
	qp->rate = (struct rate){ 0 };
	qp->rate_limited = qp->cnp_due = false;
}

u32 congestion_window(const struct engine *e, const struct requester *req)
{
	return e->config.disable & ENGINE_NO_CWND ? e->window : req->cwnd / CWND_UNIT;
}

void congestion_loss(struct engine *e, struct qp *qp)
{
	u32 floor = min_u32(CWND_MIN, e->window) * CWND_UNIT;

	qp->req.cwnd = qp->req.cwnd / 2 > floor ? qp->req.cwnd / 2 : floor;
	congestion_untime(qp);
	stat_limits(e, qp);
}

/* ---- adaptive time-out ---- */

void congestion_sent(struct engine *e, struct qp *qp, u32 psn, bool ackreq, u64 now_ns)
{
	struct rtt *rtt = &qp->req.rtt;

	if (ackreq && !rtt->sample_start_ns) {
		rtt->sample_start_ns = now_ns;
		rtt->sample_psn = psn;
	}
}

static void take_sample(struct rtt *rtt, u32 sample_ns)
{
	u32 error = sample_ns > rtt->smoothed_ns ? sample_ns - rtt->smoothed_ns :
						   rtt->smoothed_ns - sample_ns;

	if (!rtt->smoothed_ns) {
		rtt->smoothed_ns = sample_ns | 1;
		rtt->variation_ns = sample_ns / 2;
		return;
	}
	rtt->variation_ns += error / 4 - rtt->variation_ns / 4;
	rtt->smoothed_ns += sample_ns / 8 - rtt->smoothed_ns / 8;
}

void congestion_probe(struct qp *qp)
{
	struct rtt *rtt = &qp->req.rtt;
	struct rto_probe *probe = &qp->probe;

	if (!probe->sent || probe->psn != qp->req.unacked_psn) {
		probe->start_ns = rtt->sample_start_ns;
		probe->sample_psn = rtt->sample_psn;
		probe->psn = qp->req.unacked_psn;
		probe->rtt_ns = 0;
		probe->sent = 0;
	}
	probe->sent++;
	rtt->probe = true;
	congestion_untime(qp);
}

void congestion_answered_twice(struct engine *e, struct qp *qp, u32 psn, u64 now_ns)
{
	struct rto_probe *probe = &qp->probe;

	if (!probe->sent || psn_diff(psn, probe->psn) < 0)
		return;
	engine_count(e, qp, rto_spurious);
	/* each repetition has been answered, so the first answer was to the original */
	if (--probe->sent || !probe->rtt_ns)
		return;
	take_sample(&qp->req.rtt, (u32)probe->rtt_ns);
	probe->least_ns = min_u64(max_u64(probe->least_ns, probe->rtt_ns),
				  timeout_attribute_ns(&qp->req) / 4);
	probe->until_ns = now_ns + RTO_RAISED_NS;
}

/* Updates the probe's state after progress. */
static rare void probe_progress(struct qp *qp, u64 now_ns)
{
	const struct requester *req = &qp->req;
	struct rto_probe *probe = &qp->probe;

	if (psn_diff(req->unacked_psn, probe->psn) > PROBE_KEPT_PSN)
		probe->sent = 0;
	if (probe->sent && probe->start_ns && !probe->rtt_ns &&
	    psn_diff(req->unacked_psn, probe->sample_psn) > 0 &&
	    !timeout_is_late(timeout_due_ns(req), now_ns))
		probe->rtt_ns = min_u64(now_ns - probe->start_ns, RTT_MAX_NS);
	if (now_ns > probe->until_ns)
		probe->least_ns = 0;
	qp->req.rtt.probe = probe->sent || probe->least_ns;
}

void congestion_progress(struct engine *e, struct qp *qp, u32 packets, u64 now_ns)
{
	struct requester *req = &qp->req;
	struct rtt *rtt = &req->rtt;

	rtt->backoff = 0;
	if (unlikely(rtt->probe))
		probe_progress(qp, now_ns);
	if (rtt->sample_start_ns && psn_diff(req->unacked_psn, rtt->sample_psn) > 0) {
		/* time in which this process did not run is not part of the round trip */
		if (!timeout_is_late(timeout_due_ns(req), now_ns))
			take_sample(rtt, (u32)min_u64(now_ns - rtt->sample_start_ns, RTT_MAX_NS));
		qp->stat->rtt_ns = rtt->smoothed_ns;
		qp->stat->rtt_variation_ns = rtt->variation_ns;
		rtt->sample_start_ns = 0;
	}
	/* one packet more per acknowledged window */
	if (unlikely(req->cwnd < e->window * CWND_UNIT)) {
		req->cwnd = min_u32(req->cwnd + packets * CWND_UNIT / (req->cwnd / CWND_UNIT + 1),
				    e->window * CWND_UNIT);
		stat_limits(e, qp);
	}
}

void congestion_rearm(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct requester *req = &qp->req;
	const u64 attribute_ns = timeout_attribute_ns(req);
	struct rtt *rtt = &req->rtt;
	u64 rto;

	rtt->deadline_ns = NSEC_NEVER;
	/* sent_psn: after going back, packets up to it are still unacknowledged */
	if (e->config.disable & ENGINE_NO_ADAPTIVE_RTO || !req->timeout ||
	    req->sent_psn == req->unacked_psn || req->rnr_wait)
		return;
	rto = attribute_ns;
	if (rtt->smoothed_ns)
		rto = max_u64(rtt->smoothed_ns + 4ull * rtt->variation_ns, RTO_MIN_NS);
	if (unlikely(rtt->probe))
		rto = max_u64(rto, qp->probe.least_ns);
	/* doubled only up to the attribute, so that repairs are not delayed further */
	rto = max_u64(rto, min_u64(rto << rtt->backoff, attribute_ns));
	if (rto >= timeout_ns(req)) /* the user's time-out comes first */
		return;
	rtt->deadline_ns = now_ns + rto;
	timer_set(e, qp, rtt->deadline_ns);
}

/* ---- rate ---- */

void rate_marked(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct rate *r = &qp->rate;

	engine_count(e, qp, rx_ce);
	/* a datagram's sender has no rate to be cut */
	if (qp->transport == XROCE_UD)
		return;
	if (r->cnp_sent_ns && now_ns - r->cnp_sent_ns < CNP_INTERVAL_NS)
		return;
	r->cnp_sent_ns = now_ns;
	qp->cnp_due = true;
	engine_ready(e, qp, READY_REPLIES);
}

/* Returns the QP's maximum rate: the link's, or the application's limit if that is lower. */
static u64 line_rate(const struct engine *e, const struct qp *qp)
{
	u64 line = e->config.line_rate ? e->config.line_rate : RATE_LINE_DEFAULT;

	return qp->rate.limit ? min_u64(line, qp->rate.limit) : line;
}

/*
 * Returns whether a packet of this QP can have been marked. It must be ECN-capable and in flight:
 * an unacknowledged request, or recent data without acknowledgement (READ responses, UC).
 */
static bool cnp_is_plausible(const struct qp *qp, u64 now_ns)
{
	const struct requester *req = &qp->req;

	if (!(qp->path.tos & 3))
		return false;
	return req->next_psn != req->unacked_psn ||
	       (qp->rate.data_sent_ns && now_ns - qp->rate.data_sent_ns <= CNP_DELAY_NS);
}

static u64 rate_floor(const struct engine *e, const struct qp *qp)
{
	return line_rate(e, qp) / (is_reliable(qp) ? RATE_FLOOR_RELIABLE : RATE_FLOOR_UC);
}

static void rate_reduce(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct rate *r = &qp->rate;

	if (!qp->rate_limited)
		r->next_ns = now_ns;
	qp->rate_limited = r->reduced = true;
	r->current = line_rate(e, qp);
	r->alpha = ALPHA_ONE;
	r->cut_ns = 0;
}

enum xroce_drop rate_cut(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct rate *r = &qp->rate;
	u64 floor = rate_floor(e, qp),
	    period_ns = max_u64(CNP_INTERVAL_NS, qp->req.rtt.smoothed_ns);

	if (!cnp_is_plausible(qp, now_ns))
		return XROCE_DROP_cnp;
	engine_count(e, qp, rx_cnps);
	if (!r->reduced)
		rate_reduce(e, qp, now_ns);
	if (r->cut_ns && now_ns - r->cut_ns < period_ns)
		return XROCE_DROP_none;
	r->target = r->current;
	r->current -= (r->current * r->alpha / ALPHA_ONE) / 2;
	if (r->current < floor)
		r->current = floor;
	r->alpha += (ALPHA_ONE - r->alpha) >> ALPHA_GAIN_SHIFT;
	r->stage = 0;
	r->alpha_ns = r->increase_ns = r->cut_ns = now_ns;
	stat_limits(e, qp);
	return XROCE_DROP_none;
}

/* Applies all periods since the last call; a long quiet time ends the reduction. */
static void rate_recover(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct rate *r = &qp->rate;
	u64 step = line_rate(e, qp) / 200;

	while (now_ns - r->alpha_ns >= ALPHA_PERIOD_NS && r->alpha >> ALPHA_GAIN_SHIFT) {
		r->alpha -= r->alpha >> ALPHA_GAIN_SHIFT;
		r->alpha_ns += ALPHA_PERIOD_NS;
	}
	while (now_ns - r->increase_ns >= RATE_PERIOD_NS) {
		r->increase_ns += RATE_PERIOD_NS;
		if (++r->stage > RATE_FAST_STAGES)
			r->target += step * (r->stage > 2 * RATE_FAST_STAGES ? 10 : 1);
		r->current = (r->current + r->target) / 2;
		if (r->current >= line_rate(e, qp)) {
			r->reduced = false;
			qp->rate_limited = r->limit;
			return;
		}
	}
}

static u64 rate_ahead_ns(const struct rate *r)
{
	return r->limit ? r->ahead_ns : RATE_BURST_NS;
}

bool rate_allows_now(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct rate *r = &qp->rate;
	u64 ahead_ns;

	if (r->reduced) {
		rate_recover(e, qp, now_ns);
		stat_limits(e, qp);
	}
	ahead_ns = rate_ahead_ns(r);
	if (!qp->rate_limited || r->next_ns <= now_ns + ahead_ns)
		return true;
	/* the other half of the bucket is reserve for a late thread */
	timer_set(e, qp, r->limit ? r->next_ns - ahead_ns / 2 : r->next_ns);
	return false;
}

static u64 rate_bytes_ns(const struct rate *r, u32 bytes)
{
	u64 rate = r->reduced ? r->current : r->limit;

	if (r->limit && rate > r->limit)
		rate = r->limit;
	/* rounded up: the rate is a maximum */
	return (bytes * NSEC_PER_SEC + rate - 1) / rate;
}

bool rate_pauses(const struct qp *qp, u64 now_ns)
{
	const struct rate *r = &qp->rate;
	const u32 bytes = PACKET_HEADER_MAX + qp->path_mtu;

	return max_u64(r->next_ns, now_ns) + rate_bytes_ns(r, bytes) > now_ns + rate_ahead_ns(r);
}

void rate_look_again(struct engine *e, struct qp *qp)
{
	engine_ready(e, qp, READY_REPLIES);
}

void rate_set_limit(struct engine *e, struct qp *qp, u64 now_ns)
{
	const struct rate_limit *l = &qp->attr.rate_limit;
	struct rate *r = &qp->rate;
	u64 typical, burst;

	r->limit = l->kbps * 125ull;
	if (r->limit) {
		typical = rate_typical_bytes(l, qp->path_mtu);
		burst = max_u64(LIMIT_BURST_PACKETS * typical,
				r->limit * LIMIT_BURST_NS / NSEC_PER_SEC);
		if (l->burst_bytes)
			burst = l->burst_bytes;
		r->ahead_ns = (burst - typical) * NSEC_PER_SEC / r->limit;
	}
	/* earlier packets were sent under another limit, or none */
	r->next_ns = now_ns;
	qp->rate_limited = r->limit || r->reduced;
	engine_ready(e, qp, READY_REQUESTS | READY_REPLIES);
}

void rate_sent(struct engine *e, struct qp *qp, u32 bytes, u64 now_ns)
{
	struct rate *r = &qp->rate;

	if (unlikely(e->config.ecn))
		r->data_sent_ns = now_ns;
	if (likely(!qp->rate_limited))
		return;
	if (r->next_ns < now_ns)
		r->next_ns = now_ns;
	r->next_ns += rate_bytes_ns(r, bytes);
}
