/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Credits: how much a sender may send before its receiver reports more room. Reliable services have
 * the end-to-end credits of the AETH. UC and UD have probed credits, for which the sender asks.
 */
#include <stdlib.h>

#include "credit.h"
#include "internal.h"
#include "stat.h"

/*
 * End-to-end credits: a responder reports with each ACK how many receive WQEs it has, and a
 * requester starts no message that would need more. They avoid RNR NAKs and never stop a queue:
 * with nothing in flight one message may always be tried (IBTA 9.7.7.2). A QP on an SRQ gives none,
 * as other QPs may take the SRQ's WQEs.
 */

/*
 * IBTA 9.7.7.2.4: codes 0 to 30. From code 2 on, two codes per doubling:
 * credit_syndrome() inverts the table.
 */
static const u16 credits_of_code[31] = {
	0,   1,	  2,   3,   4,	 6,   8,   12,	 16,   24,   32,   48,	 64,   96,   128,   192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
};

u8 credit_syndrome(const struct engine *e, const struct qp *qp)
{
	const struct engine_faults *faults = e->config.faults;
	u32 posted, code, doublings;
	int asked = -1;

	if (unlikely(faults))
		asked = faults->credits(faults->arg, qp);
	if (asked < 0 && (e->config.disable & ENGINE_NO_CREDITS || qp->srq || qp->xrc_target))
		return AETH_ACK | AETH_CREDIT_NONE;
	/* the WQE held for the current message does not count */
	posted = asked < 0 ? rq_posted(&qp->rq) : (u32)asked;
	if (posted < 2) {
		code = posted;
	} else { /* the largest code that promises no more than is posted */
		doublings = 31 - (u32)__builtin_clz(posted);
		code = min_u32(2 * doublings + (posted >> (doublings - 1) & 1),
			       ARRAY_SIZE(credits_of_code) - 1);
	}
	return (u8)(AETH_ACK | code);
}

void credit_update(struct engine *e, struct qp *qp, u8 syndrome, u32 msn)
{
	struct requester *req = &qp->req;
	u8 code = syndrome & AETH_VALUE_MASK;

	if ((syndrome & AETH_CLASS_MASK) != AETH_ACK || e->config.disable & ENGINE_NO_CREDITS)
		return;
	req->credits_used = code != AETH_CREDIT_NONE;
	if (req->credits_used)
		req->credit_limit = psn_add(msn, credits_of_code[code]);
}

void credit_recount(struct qp *qp, u32 psn, u32 msn)
{
	struct requester *req = &qp->req;

	if (req->credits_used && psn_add(psn, 1) == req->sent_psn &&
	    req->unacked_psn == req->sent_psn && sq_cons(&qp->sq) == req->assigned)
		req->first_index = req->assigned - msn;
}

bool credit_covers(const struct qp *qp, const struct send_wqe *wqe, u32 index)
{
	const struct requester *req = &qp->req;
	u32 message = (index - req->first_index + 1) & ROCE_PSN_MASK;
	bool consumes = wqe->opcode == WR_SEND || wqe->opcode == WR_SEND_WITH_IMM ||
			wqe->opcode == WR_SEND_WITH_INV || wqe->opcode == WR_WRITE_WITH_IMM;

	return !req->credits_used || !consumes || psn_diff(message, req->credit_limit) <= 0;
}

bool credit_allows(struct engine *e, struct qp *qp, const struct send_wqe *wqe, u32 index)
{
	if (credit_covers(qp, wqe, index) || qp->req.next_psn == qp->req.unacked_psn)
		return true;
	engine_count(e, qp, credit_waits);
	return false;
}

/*
 * Probed credits, of UC and UD. Their packets are not acknowledged: if a sender is faster than its
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
 * Missing answers stop a queue only for a limited time: CREDIT_STRANGER_NS, and less each time, for
 * a peer that has never answered, else CREDIT_PATIENCE_NS. Then packets are sent as if there were
 * no credits, with one probe a second, until an answer arrives. So a lost probe, a forged answer or
 * a dead peer cannot stop a queue. A forged answer needs a 32-bit cookie and allows at most
 * CREDIT_WINDOW_MAX.
 *
 * A receiver answers one frame with one frame of 74 or 94 bytes, and keeps no state of the
 * sender's. Up to CREDIT_ANSWERS wait to be sent; probes beyond that are not answered, and are
 * repeated.
 */

#define RING_DEFAULT   1024u /* receive frames */
#define LONG_FRAME_MTU 2048u /* beyond this path MTU a packet takes two of them */

/* mrs.shared: whether the device has several engines. */
static struct credit_ledger *credit_lock(struct engine *e)
{
	spin_lock_if(e->tables->mrs.shared, &e->tables->credits.lock);
	return &e->tables->credits;
}

static void credit_unlock(struct engine *e)
{
	spin_unlock_if(e->tables->mrs.shared, &e->tables->credits.lock);
}

/* ---- the sender of UC and UD ---- */

int credit_peers_init(struct qp *qp)
{
	qp->credit = &qp->credit_own;
	if (qp->transport != XROCE_UD)
		return 0;
	qp->credit_peers = calloc(1, sizeof(*qp->credit_peers));
	return qp->credit_peers ? 0 : -ENOMEM;
}

void credit_free(struct qp *qp)
{
	free(qp->credit_peers);
}

/*
 * Forgets charges older than the period before this one: their packets are no longer in a ring. The
 * time of another engine may be a little earlier, in a past period.
 */
static void credit_age_charges(struct credit_ledger *l, u64 now_ns)
{
	const u64 period = now_ns / CREDIT_PERIOD_NS;

	if (period <= l->beginning_period)
		return;
	l->beginning_before = period == l->beginning_period + 1 ? l->beginning : 0;
	l->beginning = 0;
	l->beginning_period = period;
}

/* Charges the QP's window to CREDIT_START_FRAMES. */
static void credit_charge(struct credit_ledger *l, struct credit_peer *c, u32 frames)
{
	c->began = frames;
	c->began_period = l->beginning_period;
	l->beginning += frames;
}

/* Ends the charge, unless it is forgotten. */
static void credit_begun(struct engine *e, struct credit_peer *c)
{
	struct credit_ledger *l;

	if (!c->began)
		return;
	l = credit_lock(e);
	if (c->began_period == l->beginning_period)
		l->beginning -= c->began;
	else if (c->began_period + 1 == l->beginning_period)
		l->beginning_before -= c->began;
	credit_unlock(e);
	c->began = 0;
}

void credit_end(struct engine *e, struct qp *qp)
{
	struct credit_peers *p = qp->credit_peers;

	credit_begun(e, &qp->credit_own);
	for (u32 set = 0; p && p->known && set < CREDIT_SETS; set++)
		for (u32 way = 0; way < CREDIT_WAYS; way++)
			credit_begun(e, &p->peer[set][way]);
}

void credit_start(struct engine *e, struct qp *qp)
{
	credit_end(e, qp);
	if (qp->credit_peers)
		*qp->credit_peers = (struct credit_peers){ 0 };
	qp->credit_own = (struct credit_peer){ 0 };
	qp->credit = &qp->credit_own;
	qp->credit_stranger_ns = CREDIT_STRANGER_NS;
}

static u32 credit_bound_window(u32 packets)
{
	return packets < CREDIT_WINDOW_MIN ? CREDIT_WINDOW_MIN :
					     min_u32(packets, CREDIT_WINDOW_MAX);
}

static u32 frames_each(const struct qp *qp)
{
	return qp->path_mtu > LONG_FRAME_MTU ? 2 : 1;
}

/* Frames of the ring or socket that packets arrive in. */
static u32 credit_frames(const struct engine *e)
{
	return e->config.receive_frames ? e->config.receive_frames : RING_DEFAULT;
}

/* Starts the window. Other QPs may start at the same time, towards the same ring. */
static void credit_begin(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct credit_peer *c = qp->credit;
	/* the peer's room is unknown, and probably like this device's */
	const u32 most = min_u32(credit_frames(e) / 2, CREDIT_START);
	struct credit_ledger *l = credit_lock(e);
	u32 left, packets;

	credit_age_charges(l, now_ns);
	left = CREDIT_START_FRAMES - min_u32(credit_charged(l), CREDIT_START_FRAMES);
	packets = min_u32(left / frames_each(qp), most);
	c->window = packets > CREDIT_START_MIN ? packets : CREDIT_START_MIN;
	c->limit = c->sent + c->window;
	c->granted_ns = now_ns;
	credit_charge(l, c, c->window * frames_each(qp));
	credit_unlock(e);
}

/* Restarts after a pause: cuts the remaining allowance to a start's. */
static void credit_begin_again(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct credit_peer *c = qp->credit;
	const u32 limit = c->limit;

	credit_begun(e, c);
	credit_begin(e, qp, now_ns);
	if ((s32)(c->limit - limit) > 0)
		c->limit = limit;
}

/* Returns the set of a UD QP's receivers that this one belongs to. */
static struct credit_peer *credit_set(const struct qp *qp, u32 dest_qpn, const struct gid *peer)
{
	u64 half[2], h;

	memcpy(half, peer->raw, sizeof(half));
	/* an address's last byte is the highest of its half: a product alone keeps it there */
	h = (half[0] ^ half[1] ^ dest_qpn) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
	return qp->credit_peers->peer[h >> 32 & (CREDIT_SETS - 1)];
}

static bool credit_is_to(const struct credit_peer *c, u32 dest_qpn, const struct gid *peer)
{
	return c->dest_qpn == dest_qpn && gid_equal(&c->peer, peer);
}

/* Returns a receiver that a UD QP has sent to, or NULL. */
static struct credit_peer *credit_find(const struct qp *qp, u32 dest_qpn, const struct gid *peer)
{
	struct credit_peer *set = credit_set(qp, dest_qpn, peer);

	for (u32 way = 0; way < CREDIT_WAYS; way++)
		if (set[way].turn && credit_is_to(&set[way], dest_qpn, peer))
			return &set[way];
	return NULL;
}

/* Returns the entry to evict. */
static struct credit_peer *credit_oldest(struct credit_peer *set)
{
	struct credit_peer *oldest = set;

	for (u32 way = 1; way < CREDIT_WAYS && oldest->turn; way++)
		if (!set[way].turn || (s32)(set[way].turn - oldest->turn) < 0)
			oldest = &set[way];
	return oldest;
}

/* UD: selects a receiver other than the previous datagram's. */
static void credit_turn_to(struct engine *e, struct qp *qp, u32 dest_qpn, const struct gid *peer)
{
	struct credit_peers *p = qp->credit_peers;
	struct credit_peer *c = credit_find(qp, dest_qpn, peer);

	if (!c) {
		c = credit_oldest(credit_set(qp, dest_qpn, peer));
		credit_begun(e, c);
		p->known += !c->turn;
		*c = (struct credit_peer){ .dest_qpn = dest_qpn, .peer = *peer };
	}
	if (!++p->turn)
		p->turn++;
	c->turn = p->turn;
	qp->credit = c;
}

static bool credit_has_room(const struct credit_peer *c, bool takes_receive)
{
	return (s32)(c->limit - c->sent) > 0 &&
	       !(takes_receive && c->known && (s32)(c->receive_limit - c->receives) <= 0);
}

/* Returns whether packets or messages were sent since the last probe. */
static bool credit_has_moved(const struct credit_peer *c)
{
	return c->sent != c->mark || c->receives != c->receives_at_mark;
}

static void credit_set_free(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct credit_peer *c = qp->credit;

	credit_begun(e, c);
	if (!c->known)
		qp->credit_stranger_ns /= 2;
	c->free = true;
	c->known = c->waiting = false;
	c->blocked_ns = 0;
	c->probe_ns = now_ns + CREDIT_FREE_NS;
}

enum turn { TURN_DATA, TURN_PROBE, TURN_WAIT };

/* Returns how long sending stops while no answer arrives. */
static u64 credit_patience_ns(const struct qp *qp)
{
	if (!qp->credit->known)
		return qp->credit_stranger_ns;
	return qp->credit_peers && qp->credit_peers->known > 1 ? CREDIT_SEVERAL_NS :
								 CREDIT_PATIENCE_NS;
}

/* Nothing may be sent: decides whether to probe, wait, or stop waiting. */
static enum turn credit_wait_turn(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct credit_peer *c = qp->credit;
	const u64 patience_ns = credit_patience_ns(qp);

	if (!c->blocked_ns) {
		c->blocked_ns = now_ns | 1;
		engine_count(e, qp, flow_waits);
	}
	if (now_ns - min_u64(c->blocked_ns, now_ns) >= patience_ns) {
		credit_set_free(e, qp, now_ns);
		return TURN_DATA;
	}
	if (now_ns >= c->probe_ns || (!c->probing && credit_has_moved(c)))
		return TURN_PROBE;
	c->waiting = true;
	timer_set(e, qp, min_u64(c->probe_ns, c->blocked_ns + patience_ns));
	return TURN_WAIT;
}

static enum turn credit_take_turn(struct engine *e, struct qp *qp, bool takes_receive, u64 now_ns)
{
	struct credit_peer *c = qp->credit;

	if (unlikely(!c->window))
		credit_begin(e, qp, now_ns);
	if (unlikely(c->free))
		return now_ns >= c->probe_ns ? TURN_PROBE : TURN_DATA;
	if (unlikely(now_ns - c->granted_ns >= CREDIT_STALE_NS && (s32)(c->limit - c->sent) > 0))
		credit_begin_again(e, qp, now_ns);
	if (unlikely(!credit_has_room(c, takes_receive)))
		return credit_wait_turn(e, qp, now_ns);
	c->blocked_ns = 0;
	if (c->probing)
		return now_ns >= c->probe_ns ? TURN_PROBE : TURN_DATA;
	return c->sent - c->mark >= c->window / 4 * 3 ? TURN_PROBE : TURN_DATA;
}

/* Starts or repeats a probe. A repetition keeps its cookie: an answer to either is valid. */
static void credit_mark_probe(struct engine *e, struct qp *qp, u64 now_ns)
{
	struct credit_peer *c = qp->credit;

	if (!c->probing) {
		if (credit_has_moved(c))
			c->look_ns = CREDIT_LOOK_NS;
		c->retry_ns = CREDIT_RETRY_NS;
		if (!qp->credit_cookie)
			qp->credit_cookie = (u32)e->config.random(e->config.random_arg);
		c->cookie = ++qp->credit_cookie;
		c->mark = c->sent;
		c->mark_ns = now_ns;
		c->receives_at_mark = c->receives;
		c->probing = true;
	}
	c->probe_ns = now_ns + (c->free ? CREDIT_FREE_NS : c->retry_ns);
	c->retry_ns = min_u64(c->retry_ns + c->retry_ns / CREDIT_RETRY_SLOWER,
			      c->known ? CREDIT_RETRY_MAX_NS : CREDIT_RETRY_STRANGER_NS);
}

static u32 credit_build(struct packet *p, const struct path *path, u8 opcode, u32 dest_qpn,
			u32 cookie, u32 allowance, u8 *frame)
{
	p->opcode = opcode;
	p->migreq = true;
	p->dest_qpn = dest_qpn;
	p->credit_cookie = cookie;
	p->credit_allowance = allowance;
	return packet_seal(frame, packet_put_headers(frame, path, p), 0);
}

/* QP 1 of a device receives only MADs. */
static bool credit_is_cm(const struct qp *qp, u32 dest_qpn)
{
	return qp->qpn == XROCE_CM_QPN || dest_qpn == XROCE_CM_QPN;
}

bool credit_output(struct engine *e, struct qp *qp, const struct credit_to *to, u8 *frame, u32 *len,
		   u64 now_ns)
{
	struct packet p = { .pkey = qp->pkey, .qkey = to->qkey, .src_qpn = qp->qpn };
	enum turn turn;

	*len = 0;
	if (e->config.disable & ENGINE_NO_PROBED_CREDITS || to->dest_qpn == ROCE_MULTICAST_QPN ||
	    credit_is_cm(qp, to->dest_qpn))
		return true;
	if (qp->credit_peers && !credit_is_to(qp->credit, to->dest_qpn, &to->path->peer))
		credit_turn_to(e, qp, to->dest_qpn, &to->path->peer);
	turn = credit_take_turn(e, qp, to->takes_receive, now_ns);
	if (likely(turn == TURN_DATA))
		return true;
	if (turn == TURN_WAIT)
		return false;
	credit_mark_probe(e, qp, now_ns);
	e->stats->flow_probes++;
	*len = credit_build(&p, to->path, OPCODE_CREDIT_PROBE, to->dest_qpn, qp->credit->cookie, 0,
			    frame);
	return false;
}

void credit_expire(struct engine *e, struct qp *qp)
{
	if (!qp->credit->waiting)
		return;
	qp->credit->waiting = false;
	engine_ready(e, qp, READY_REQUESTS);
}

/* Returns the delay of the next probe after an answer that did not help. */
static u64 credit_look_again_ns(const struct credit_peer *c, u64 now_ns)
{
	const u64 waited_ns = c->blocked_ns ? now_ns - min_u64(c->blocked_ns, now_ns) : 0;

	return max_u64(c->look_ns, waited_ns / CREDIT_LOOK_PART);
}

static enum xroce_drop credit_take_answer(struct engine *e, struct qp *qp, const struct packet *p,
					  u64 now_ns)
{
	struct credit_peer *c =
		qp->credit_peers ? credit_find(qp, p->src_qpn, &p->src) : qp->credit;
	const u32 window = p->credit_allowance >> 16, receives = p->credit_allowance & 0xffff;

	if (!c || !c->probing || p->credit_cookie != c->cookie)
		return XROCE_DROP_unexpected_response;
	c->probing = c->free = c->waiting = false;
	c->known = true;
	credit_begun(e, c);
	qp->credit_stranger_ns = CREDIT_STRANGER_NS;
	c->window = credit_bound_window(window);
	c->limit = c->mark + c->window;
	c->granted_ns = c->mark_ns;
	c->receive_limit = c->receives_at_mark + receives;
	/*
	 * used if there are no receives, when no packet can be sent that another probe would follow
	 */
	c->probe_ns = now_ns + credit_look_again_ns(c, now_ns);
	c->look_ns = min_u64(2 * c->look_ns, CREDIT_LOOK_MAX_NS);
	engine_ready(e, qp, READY_REQUESTS);
	return XROCE_DROP_none;
}

/* ---- the receiver of UC and UD ---- */

static bool credit_is_known(const struct credit_ledger *l, u32 i)
{
	return (l->senders | l->senders_before) >> i & 1;
}

/* Drops promises to senders that have not asked recently. */
static void credit_forget_others(struct credit_ledger *l)
{
	for (u32 i = 0; i < CREDIT_SENDERS; i++) {
		if (!l->promised[i] || credit_is_known(l, i))
			continue;
		l->promised_total -= l->promised[i];
		l->promised[i] = 0;
	}
}

/*
 * Starts a new period. The previous one is the last in which any sender asked, however long ago: a
 * receiver that did not run still has the packets that it allowed in its ring.
 */
static void credit_look_at_period(struct credit_ledger *l, u64 now_ns)
{
	const u64 period = now_ns / CREDIT_PERIOD_NS;

	if (l->period == period)
		return;
	l->senders_before = l->senders;
	l->senders = 0;
	l->period = period;
	credit_forget_others(l);
}

/* A QP that sends to several local QPs has a window from each. */
static u32 credit_sender_id(const struct qp *qp, const struct packet *p)
{
	u32 hash = p->src_qpn * 31 + qp->qpn;

	for (u32 i = 0; i < sizeof(p->src.raw); i++)
		hash = hash * 31 + p->src.raw[i];
	return hash * 0x9e3779b1u;
}

/* Returns the entry of a sender, known or new; CREDIT_SENDERS if the table is full. */
static u32 credit_find_sender(struct credit_ledger *l, u32 id)
{
	u32 unused = CREDIT_SENDERS;

	for (u32 i = 0; i < CREDIT_SENDERS; i++) {
		const bool known = credit_is_known(l, i);

		if (known && l->id[i] == id)
			return i;
		if (!known && !l->promised[i] && unused == CREDIT_SENDERS)
			unused = i;
	}
	if (unused < CREDIT_SENDERS)
		l->id[unused] = id;
	return unused;
}

/*
 * Returns the window of a sender, in frames: its share of the promised part of the ring, less what
 * is promised to others, which learn their new share when they ask again. The rest of the ring is
 * for new, forgotten and excess senders, for probes and answers, and for the reliable services.
 */
static u32 credit_share_of(const struct credit_ledger *l, u32 frames, u32 sender, u32 senders)
{
	const u32 share = CREDIT_SHARE(frames), others = l->promised_total - l->promised[sender];

	return min_u32(share / senders, share - min_u32(share, others));
}

static void credit_note_promise(struct credit_ledger *l, u32 sender, u32 frames)
{
	l->promised_total += frames - l->promised[sender];
	l->promised[sender] = (u16)frames;
	l->senders |= 1ull << sender;
}

/* Returns the packets to allow a sender, and in *senders how many asked recently, at least 1. */
static u32 credit_promise_window(struct engine *e, struct credit_ledger *l, const struct qp *qp,
				 u32 id, u32 *senders, u64 now_ns)
{
	const u32 frames = credit_frames(e);
	u32 sender, window;

	credit_look_at_period(l, now_ns);
	sender = credit_find_sender(l, id);
	*senders = CREDIT_SENDERS;
	if (sender == CREDIT_SENDERS)
		return CREDIT_WINDOW_MIN;
	*senders = (u32)__builtin_popcountll(l->senders | l->senders_before | 1ull << sender);
	window = credit_share_of(l, frames, sender, *senders) / frames_each(qp);
	window = credit_bound_window(window);
	credit_note_promise(l, sender, window * frames_each(qp));
	return window;
}

/* Returns the path back to a datagram's sender. */
static struct path credit_path_back(const struct qp *qp, const struct packet *p, const u8 *eth)
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
static u32 credit_receives_of(const struct qp *qp, u32 senders, u32 cookie)
{
	const u32 posted = rq_posted(qp->srq ? &qp->srq->rq : &qp->rq);
	const u32 sharers = qp->srq ? senders : 1;

	return min_u32((posted + cookie % sharers) / sharers, 0xffff);
}

static enum xroce_drop credit_give_answer(struct engine *e, struct qp *qp, const struct packet *p,
					  const u8 *eth, u64 now_ns)
{
	struct credit_answers *a = &e->answers;
	const bool connected = qp->transport == XROCE_UC;
	u32 senders, window;
	struct credit_ledger *l;

	/* Only the peer sends to a connected QP. A forged probe would take a share of the ring. */
	if (connected && p->src_qpn != qp->dest_qpn)
		return XROCE_DROP_peer;
	/* the sender asks again */
	if (a->count == CREDIT_ANSWERS)
		return XROCE_DROP_none;
	l = credit_lock(e);
	window = credit_promise_window(e, l, qp, credit_sender_id(qp, p), &senders, now_ns);
	credit_unlock(e);
	a->answer[(a->head + a->count++) % CREDIT_ANSWERS] = (struct credit_answer){
		.path = connected ? qp->path : credit_path_back(qp, p, eth),
		.dest_qpn = connected ? qp->dest_qpn : p->src_qpn,
		.src_qpn = qp->qpn,
		.qkey = p->qkey,
		.pkey = qp->pkey,
		.cookie = p->credit_cookie,
		.allowance = window << 16 | credit_receives_of(qp, senders, p->credit_cookie),
	};
	return XROCE_DROP_none;
}

u32 credit_answer_output(struct engine *e, u8 *frame)
{
	struct credit_answers *a = &e->answers;
	const struct credit_answer *answer = &a->answer[a->head++ % CREDIT_ANSWERS];
	struct packet p = { .pkey = answer->pkey,
			    .qkey = answer->qkey,
			    .src_qpn = answer->src_qpn };

	a->count--;
	e->stats->flow_answers++;
	return credit_build(&p, &answer->path, OPCODE_CREDIT_ANSWER, answer->dest_qpn,
			    answer->cookie, answer->allowance, frame);
}

enum xroce_drop credit_input(struct engine *e, struct qp *qp, const struct packet *p, const u8 *eth,
			     u64 now_ns)
{
	if (e->config.disable & ENGINE_NO_PROBED_CREDITS || credit_is_cm(qp, p->src_qpn))
		return XROCE_DROP_opcode;
	return p->opcode == OPCODE_CREDIT_PROBE ? credit_give_answer(e, qp, p, eth, now_ns) :
						  credit_take_answer(e, qp, p, now_ns);
}
