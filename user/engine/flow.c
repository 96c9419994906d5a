/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flow control of UC and UD. Their packets are not acknowledged: if a sender is faster than its
 * receiver, or the receiver waits for a CPU, the receive ring fills and the rest is lost. Two
 * packets between peers that both use this library prevent that. Their opcodes are in the range
 * that the standard reserves for manufacturers; other peers silently drop them, as any unknown
 * opcode.
 *
 * A probe follows data on the same path. The receiver's engine answers when it takes the probe from
 * the ring, and has then taken all data before it. An answer allows a number of packets after the
 * probe, and as many messages as receives were posted at that time. One probe is outstanding at a
 * time. The next is sent while a quarter of the window is left, so a busy receiver sees no gap.
 *
 * Missing answers stop a queue only for a limited time: FLOW_STRANGER_NS, and less each time, for a
 * peer that has never answered, else FLOW_PATIENCE_NS. Then packets are sent as if there were no
 * flow control, with one probe a second, until an answer arrives. So a lost probe, a forged answer
 * or a dead peer cannot stop a queue. A forged answer needs a 32-bit cookie and allows at most
 * FLOW_WINDOW_MAX.
 *
 * A receiver answers one frame with one frame of 74 or 94 bytes, and keeps no state of the
 * sender's. Up to FLOW_ANSWERS wait to be sent; probes beyond that are not answered, and are
 * repeated.
 */
#include <stdlib.h>

#include "flow_control.h"
#include "stat.h"
#include "timer.h"

#define RING_DEFAULT   1024u /* receive frames */
#define LONG_FRAME_MTU 2048u /* beyond this path MTU a packet takes two of them */

/* mrs.shared: whether the device has several engines. */
static struct flow_ledger *flow_lock(struct engine *e)
{
	spin_lock_if(e->tables->mrs.shared, &e->tables->flow.lock);
	return &e->tables->flow;
}

static void flow_unlock(struct engine *e)
{
	spin_unlock_if(e->tables->mrs.shared, &e->tables->flow.lock);
}

/* ---- the sender ---- */

int flow_peers_init(struct qp *qp)
{
	qp->flow = &qp->flow_own;
	if (qp->transport != XROCE_UD)
		return 0;
	qp->flow_peers = calloc(1, sizeof(*qp->flow_peers));
	return qp->flow_peers ? 0 : -ENOMEM;
}

void flow_free(struct qp *qp)
{
	free(qp->flow_peers);
}

/* Ends the charge to FLOW_START_FRAMES. */
static void flow_begun(struct engine *e, struct flow_control *f)
{
	if (!f->began)
		return;
	flow_lock(e)->beginning -= f->began;
	flow_unlock(e);
	f->began = 0;
}

void flow_end(struct engine *e, struct qp *qp)
{
	struct flow_peers *p = qp->flow_peers;

	flow_begun(e, &qp->flow_own);
	for (u32 set = 0; p && p->known && set < FLOW_SETS; set++)
		for (u32 way = 0; way < FLOW_WAYS; way++)
			flow_begun(e, &p->peer[set][way]);
}

void flow_start(struct engine *e, struct qp *qp)
{
	flow_end(e, qp);
	if (qp->flow_peers)
		*qp->flow_peers = (struct flow_peers){ 0 };
	qp->flow_own = (struct flow_control){ 0 };
	qp->flow = &qp->flow_own;
	qp->flow_stranger_ns = FLOW_STRANGER_NS;
}

static u32 frames_each(const struct qp *qp)
{
	return qp->path_mtu > LONG_FRAME_MTU ? 2 : 1;
}

/* Starts the window. Other QPs may start at the same time, towards the same ring. */
static void flow_begin(struct engine *e, struct qp *qp)
{
	struct flow_control *f = qp->flow;
	struct flow_ledger *l = flow_lock(e);
	const u32 left = FLOW_START_FRAMES - min_u32(l->beginning, FLOW_START_FRAMES);
	const u32 packets = min_u32(left / frames_each(qp), FLOW_START);

	f->window = packets > FLOW_START_MIN ? packets : FLOW_START_MIN;
	f->limit = f->sent + f->window;
	f->began = f->window * frames_each(qp);
	l->beginning += f->began;
	flow_unlock(e);
}

/* Restarts after a pause: cuts the remaining allowance to a start's. */
static void flow_begin_again(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct flow_control *f = qp->flow;
	const u32 limit = f->limit;

	flow_begun(e, f);
	flow_begin(e, qp);
	if ((s32)(f->limit - limit) > 0)
		f->limit = limit;
	f->granted_ns = now_ns;
}

/* Returns the set of a UD QP's receivers that this one belongs to. */
static struct flow_control *flow_set(const struct qp *qp, u32 dest_qpn, const struct gid *peer)
{
	u64 half[2];

	memcpy(half, peer->raw, sizeof(half));
	half[0] = (half[0] ^ half[1] ^ dest_qpn) * 0x9e3779b97f4a7c15ull;
	return qp->flow_peers->peer[half[0] >> 32 & (FLOW_SETS - 1)];
}

static bool flow_is_to(const struct flow_control *f, u32 dest_qpn, const struct gid *peer)
{
	return f->dest_qpn == dest_qpn && gid_equal(&f->peer, peer);
}

/* Returns a receiver that a UD QP has sent to, or NULL. */
static struct flow_control *flow_find(const struct qp *qp, u32 dest_qpn, const struct gid *peer)
{
	struct flow_control *set = flow_set(qp, dest_qpn, peer);

	for (u32 way = 0; way < FLOW_WAYS; way++)
		if (set[way].turn && flow_is_to(&set[way], dest_qpn, peer))
			return &set[way];
	return NULL;
}

/* Returns the entry to evict. */
static struct flow_control *flow_oldest(struct flow_control *set)
{
	struct flow_control *oldest = set;

	for (u32 way = 1; way < FLOW_WAYS && oldest->turn; way++)
		if (!set[way].turn || (s32)(set[way].turn - oldest->turn) < 0)
			oldest = &set[way];
	return oldest;
}

/* UD: selects a receiver other than the previous datagram's. */
static void flow_turn_to(struct engine *e, struct qp *qp, u32 dest_qpn, const struct gid *peer)
{
	struct flow_peers *p = qp->flow_peers;
	struct flow_control *f = flow_find(qp, dest_qpn, peer);

	if (!f) {
		f = flow_oldest(flow_set(qp, dest_qpn, peer));
		flow_begun(e, f);
		p->known += !f->turn;
		*f = (struct flow_control){ .dest_qpn = dest_qpn, .peer = *peer };
	}
	if (!++p->turn)
		p->turn++;
	f->turn = p->turn;
	qp->flow = f;
}

static bool flow_has_room(const struct flow_control *f, bool takes_receive)
{
	return (s32)(f->limit - f->sent) > 0 &&
	       !(takes_receive && f->known && (s32)(f->receive_limit - f->receives) <= 0);
}

/* Returns whether packets or messages were sent since the last probe. */
static bool flow_has_moved(const struct flow_control *f)
{
	return f->sent != f->mark || f->receives != f->receives_at_mark;
}

static void flow_set_free(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct flow_control *f = qp->flow;

	flow_begun(e, f);
	if (!f->known)
		qp->flow_stranger_ns /= 2;
	f->free = true;
	f->known = f->waiting = false;
	f->blocked_ns = 0;
	f->probe_ns = now_ns + FLOW_FREE_NS;
}

enum turn { TURN_DATA, TURN_PROBE, TURN_WAIT };

/* Returns how long sending stops while no answer arrives. */
static u64 flow_patience_ns(const struct qp *qp)
{
	if (!qp->flow->known)
		return qp->flow_stranger_ns;
	return qp->flow_peers && qp->flow_peers->known > 1 ? FLOW_SEVERAL_NS : FLOW_PATIENCE_NS;
}

/* Nothing may be sent: decides whether to probe, wait, or stop waiting. */
static enum turn flow_wait_turn(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct flow_control *f = qp->flow;
	const u64 patience_ns = flow_patience_ns(qp);

	if (!f->blocked_ns) {
		f->blocked_ns = now_ns | 1;
		engine_count(e, qp, flow_waits);
	}
	if (now_ns - min_u64(f->blocked_ns, now_ns) >= patience_ns) {
		flow_set_free(e, qp, now_ns);
		return TURN_DATA;
	}
	if (now_ns >= f->probe_ns || (!f->probing && flow_has_moved(f)))
		return TURN_PROBE;
	f->waiting = true;
	timer_set(e, qp, min_u64(f->probe_ns, f->blocked_ns + patience_ns));
	return TURN_WAIT;
}

static enum turn flow_take_turn(struct engine *e, struct qp *qp, bool takes_receive, u64 now_ns)
{
	struct flow_control *f = qp->flow;

	if (unlikely(!f->window))
		flow_begin(e, qp);
	if (unlikely(f->free))
		return now_ns >= f->probe_ns ? TURN_PROBE : TURN_DATA;
	if (unlikely(f->known && now_ns - f->granted_ns >= FLOW_STALE_NS &&
		     (s32)(f->limit - f->sent) > 0))
		flow_begin_again(e, qp, now_ns);
	if (unlikely(!flow_has_room(f, takes_receive)))
		return flow_wait_turn(e, qp, now_ns);
	f->blocked_ns = 0;
	if (f->probing)
		return now_ns >= f->probe_ns ? TURN_PROBE : TURN_DATA;
	return f->sent - f->mark >= f->window / 4 * 3 ? TURN_PROBE : TURN_DATA;
}

/* Starts or repeats a probe. A repetition keeps its cookie: an answer to either is valid. */
static void flow_mark_probe(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct flow_control *f = qp->flow;

	if (!f->probing) {
		if (flow_has_moved(f))
			f->look_ns = FLOW_LOOK_NS;
		f->retry_ns = FLOW_RETRY_NS;
		if (!qp->flow_cookie)
			qp->flow_cookie = (u32)e->config.random(e->config.random_arg);
		f->cookie = ++qp->flow_cookie;
		f->mark = f->sent;
		f->mark_ns = now_ns;
		f->receives_at_mark = f->receives;
		f->probing = true;
	}
	f->probe_ns = now_ns + (f->free ? FLOW_FREE_NS : f->retry_ns);
	f->retry_ns = min_u64(f->retry_ns + f->retry_ns / FLOW_RETRY_SLOWER,
			      f->known ? FLOW_RETRY_MAX_NS : FLOW_RETRY_STRANGER_NS);
}

static u32 flow_build(struct packet *p, const struct path *path, u8 opcode, u32 dest_qpn,
		      u32 cookie, u32 allowance, u8 *frame)
{
	p->opcode = opcode;
	p->migreq = true;
	p->dest_qpn = dest_qpn;
	p->flow_cookie = cookie;
	p->flow_allowance = allowance;
	return packet_seal(frame, packet_put_headers(frame, path, p), 0);
}

/* QP 1 of a device receives only MADs. */
static bool flow_is_cm(const struct qp *qp, u32 dest_qpn)
{
	return qp->qpn == XROCE_CM_QPN || dest_qpn == XROCE_CM_QPN;
}

bool flow_output(struct engine *e, struct qp *qp, const struct flow_to *to, u8 *frame, u32 *len,
		 u64 now_ns)
{
	struct packet p = { .pkey = qp->pkey, .qkey = to->qkey, .src_qpn = qp->qpn };
	enum turn turn;

	*len = 0;
	if (e->config.disable & ENGINE_NO_FLOW || to->dest_qpn == ROCE_MULTICAST_QPN ||
	    flow_is_cm(qp, to->dest_qpn))
		return true;
	if (qp->flow_peers && !flow_is_to(qp->flow, to->dest_qpn, &to->path->peer))
		flow_turn_to(e, qp, to->dest_qpn, &to->path->peer);
	turn = flow_take_turn(e, qp, to->takes_receive, now_ns);
	if (likely(turn == TURN_DATA))
		return true;
	if (turn == TURN_WAIT)
		return false;
	flow_mark_probe(e, qp, now_ns);
	e->stats->flow_probes++;
	*len = flow_build(&p, to->path, OPCODE_FLOW_PROBE, to->dest_qpn, qp->flow->cookie, 0,
			  frame);
	return false;
}

void flow_expire(struct engine *e, struct qp *qp)
{
	if (!qp->flow->waiting)
		return;
	qp->flow->waiting = false;
	engine_ready(e, qp, READY_REQUESTS);
}

/* Returns the delay of the next probe after an answer that did not help. */
static u64 flow_look_again_ns(const struct flow_control *f, u64 now_ns)
{
	const u64 waited_ns = f->blocked_ns ? now_ns - min_u64(f->blocked_ns, now_ns) : 0;

	return max_u64(f->look_ns, waited_ns / FLOW_LOOK_PART);
}

static enum xroce_drop flow_take_answer(struct engine *e, struct qp *qp, const struct packet *p,
					u64 now_ns)
{
	struct flow_control *f =
		qp->flow_peers ? flow_find(qp, p->src_qpn, &p->src) : qp->flow;
	const u32 window = p->flow_allowance >> 16, receives = p->flow_allowance & 0xffff;

	if (!f || !f->probing || p->flow_cookie != f->cookie)
		return XROCE_DROP_unexpected_response;
	f->probing = f->free = f->waiting = false;
	f->known = true;
	flow_begun(e, f);
	qp->flow_stranger_ns = FLOW_STRANGER_NS;
	f->window = window < FLOW_WINDOW_MIN ? FLOW_WINDOW_MIN : min_u32(window, FLOW_WINDOW_MAX);
	f->limit = f->mark + f->window;
	f->granted_ns = f->mark_ns;
	f->receive_limit = f->receives_at_mark + receives;
	/*
	 * used if there are no receives, when no packet can be sent that another probe would follow
	 */
	f->probe_ns = now_ns + flow_look_again_ns(f, now_ns);
	f->look_ns = min_u64(2 * f->look_ns, FLOW_LOOK_MAX_NS);
	engine_ready(e, qp, READY_REQUESTS);
	return XROCE_DROP_none;
}

/* ---- the receiver ---- */

static bool flow_is_known(const struct flow_ledger *l, u32 i)
{
	return (l->senders | l->senders_before) >> i & 1;
}

/* Drops promises to senders that have not asked recently. */
static void flow_forget_others(struct flow_ledger *l)
{
	for (u32 i = 0; i < FLOW_SENDERS; i++) {
		if (!l->promised[i] || flow_is_known(l, i))
			continue;
		l->promised_total -= l->promised[i];
		l->promised[i] = 0;
	}
}

/*
 * Starts a new period. The previous one is the last in which any sender asked, however long ago: a
 * receiver that did not run still has the packets that it allowed in its ring.
 */
static void flow_look_at_period(struct flow_ledger *l, u64 now_ns)
{
	const u64 period = now_ns / FLOW_PERIOD_NS;

	if (l->period == period)
		return;
	l->senders_before = l->senders;
	l->senders = 0;
	l->period = period;
	flow_forget_others(l);
}

/* A QP that sends to several local QPs has a window from each. */
static u32 flow_sender_id(const struct qp *qp, const struct packet *p)
{
	u32 hash = p->src_qpn * 31 + qp->qpn;

	for (u32 i = 0; i < sizeof(p->src.raw); i++)
		hash = hash * 31 + p->src.raw[i];
	return hash * 0x9e3779b1u;
}

/* Returns the entry of a sender, known or new; FLOW_SENDERS if the table is full. */
static u32 flow_find_sender(struct flow_ledger *l, u32 id)
{
	u32 unused = FLOW_SENDERS;

	for (u32 i = 0; i < FLOW_SENDERS; i++) {
		const bool known = flow_is_known(l, i);

		if (known && l->id[i] == id)
			return i;
		if (!known && !l->promised[i] && unused == FLOW_SENDERS)
			unused = i;
	}
	if (unused < FLOW_SENDERS)
		l->id[unused] = id;
	return unused;
}

/*
 * Returns the window of a sender, in frames: its share of the promised part of the ring, less what
 * is promised to others, which learn their new share when they ask again. The rest of the ring is
 * for new, forgotten and excess senders, for probes and answers, and for the reliable services.
 */
static u32 flow_share_of(const struct flow_ledger *l, u32 frames, u32 sender, u32 senders)
{
	const u32 share = FLOW_SHARE(frames), others = l->promised_total - l->promised[sender];

	return min_u32(share / senders, share - min_u32(share, others));
}

static void flow_note_promise(struct flow_ledger *l, u32 sender, u32 frames)
{
	l->promised_total += frames - l->promised[sender];
	l->promised[sender] = (u16)frames;
	l->senders |= 1ull << sender;
}

/* Returns the packets to allow a sender, and in *senders how many asked recently, at least 1. */
static u32 flow_promise_window(struct engine *e, struct flow_ledger *l, const struct qp *qp, u32 id,
			       u32 *senders, u64 now_ns)
{
	const u32 frames = e->config.receive_frames ? e->config.receive_frames : RING_DEFAULT;
	u32 sender, window;

	flow_look_at_period(l, now_ns);
	sender = flow_find_sender(l, id);
	*senders = FLOW_SENDERS;
	if (sender == FLOW_SENDERS)
		return FLOW_WINDOW_MIN;
	*senders = (u32)__builtin_popcountll(l->senders | l->senders_before | 1ull << sender);
	window = flow_share_of(l, frames, sender, *senders) / frames_each(qp);
	window = window < FLOW_WINDOW_MIN ? FLOW_WINDOW_MIN : min_u32(window, FLOW_WINDOW_MAX);
	flow_note_promise(l, sender, window * frames_each(qp));
	return window;
}

/* Returns the path back to a datagram's sender. */
static struct path flow_path_back(const struct qp *qp, const struct packet *p, const u8 *eth)
{
	struct path path = {
		.vlan_tci = p->vlan_tci,
		.has_vlan = p->has_vlan,
		.is_ipv6 = p->is_ipv6,
		.tos = p->tos & ~3,
		.hop_limit = 64,
		.udp_sport = path_udp_sport(0, qp->qpn, p->src_qpn),
		.local = p->dst,
		.peer = p->src,
	};

	memcpy(path.dmac, eth + sizeof(path.dmac), sizeof(path.dmac));
	memcpy(path.smac, eth, sizeof(path.smac));
	return path;
}

/*
 * Returns the receives that one of the senders may count on: its share of an SRQ's. The remainder
 * rotates with the cookies, which count each sender's probes: with fewer receives than senders, all
 * would wait if each were allowed none.
 */
static u32 flow_receives_of(const struct qp *qp, u32 senders, u32 cookie)
{
	const u32 posted = rq_posted(qp->srq ? &qp->srq->rq : &qp->rq);
	const u32 sharers = qp->srq ? senders : 1;

	return min_u32((posted + cookie % sharers) / sharers, 0xffff);
}

static enum xroce_drop flow_give_answer(struct engine *e, struct qp *qp, const struct packet *p,
					const u8 *eth, u64 now_ns)
{
	struct flow_answers *a = &e->answers;
	const bool connected = qp->transport == XROCE_UC;
	u32 senders, window;
	struct flow_ledger *l;

	/* Only the peer sends to a connected QP. A forged probe would take a share of the ring. */
	if (connected && p->src_qpn != qp->dest_qpn)
		return XROCE_DROP_peer;
	/* the sender asks again */
	if (a->count == FLOW_ANSWERS)
		return XROCE_DROP_none;
	l = flow_lock(e);
	window = flow_promise_window(e, l, qp, flow_sender_id(qp, p), &senders, now_ns);
	flow_unlock(e);
	a->answer[(a->head + a->count++) % FLOW_ANSWERS] = (struct flow_answer){
		.path = connected ? qp->path : flow_path_back(qp, p, eth),
		.dest_qpn = connected ? qp->dest_qpn : p->src_qpn,
		.src_qpn = qp->qpn,
		.qkey = p->qkey,
		.pkey = qp->pkey,
		.cookie = p->flow_cookie,
		.allowance = window << 16 | flow_receives_of(qp, senders, p->flow_cookie),
	};
	return XROCE_DROP_none;
}

u32 flow_answer_output(struct engine *e, u8 *frame)
{
	struct flow_answers *a = &e->answers;
	const struct flow_answer *answer = &a->answer[a->head++ % FLOW_ANSWERS];
	struct packet p = { .pkey = answer->pkey,
			    .qkey = answer->qkey,
			    .src_qpn = answer->src_qpn };

	a->count--;
	e->stats->flow_answers++;
	return flow_build(&p, &answer->path, OPCODE_FLOW_ANSWER, answer->dest_qpn, answer->cookie,
			  answer->allowance, frame);
}

enum xroce_drop flow_input(struct engine *e, struct qp *qp, const struct packet *p, const u8 *eth,
			   u64 now_ns)
{
	if (e->config.disable & ENGINE_NO_FLOW || flow_is_cm(qp, p->src_qpn))
		return XROCE_DROP_opcode;
	return p->opcode == OPCODE_FLOW_PROBE ? flow_give_answer(e, qp, p, eth, now_ns) :
						flow_take_answer(e, qp, p, now_ns);
}
