/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See track.h. */
#include "track.h"

#include <stdlib.h>
#include <string.h>

#include "../../netns/lib/ctl.h"

#define CONNECTIONS 128
#define RING	    (1u << 16) /* PSNs that are remembered */

/* What we sent with a PSN. */
struct request {
	u32 psn;
	bool is_known;
	bool is_read;
	u32 content; /* hash of everything that a repetition must repeat */
	u32 rkey;
	u64 va;	     /* READ: where this PSN's response comes from */
	u32 left;    /* READ: bytes from there on */
};

/* What the peer asked for with a PSN; a READ has one for each response. */
struct asked {
	u32 psn;
	bool is_known;
	bool is_read, is_atomic;
	/* A READ may be asked for again from its middle, so a PSN can be both first and inner. */
	bool is_first, is_inner, is_last, is_through;
	u32 last_bytes;
};

struct connection {
	u8 service; /* enum xroce_transport; 0xff where not known */
	bool is_ipv6;
	u32 local, remote; /* QPNs; local 0 where not known */
	u16 sport;
	/* requests of ours */
	bool has_begun;
	u32 next_psn;
	u32 message; /* flags of the message that is going on; 0 between two */
	bool asks;   /* the newest packet gets an answer */
	u64 bytes, dma_len;
	u32 qkey;
	struct request *sent;
	/* requests of theirs */
	bool has_asked;
	u32 newest; /* PSN */
	u32 messages;
	struct asked *asked;
};

struct track {
	u32 path_mtu;
	bool has_sockets;
	struct connection c[CONNECTIONS];
	unsigned int num;
	u32 locals[CONNECTIONS];
	unsigned int num_locals;
};

struct track *track_open(u32 path_mtu, bool has_sockets)
{
	struct track *t = calloc(1, sizeof(*t));

	must(t, "no memory");
	t->path_mtu = path_mtu;
	t->has_sockets = has_sockets;
	return t;
}

void track_close(struct track *t)
{
	for (unsigned int i = 0; i < t->num; i++) {
		free(t->c[i].sent);
		free(t->c[i].asked);
	}
	free(t);
}

static struct connection *track_find(struct track *t, const struct packet *p)
{
	u32 local = p->flags & OP_DETH ? p->src_qpn : 0;

	for (unsigned int i = 0; i < t->num; i++) {
		struct connection *c = &t->c[i];

		if (c->remote == p->dest_qpn && c->is_ipv6 == p->is_ipv6 &&
		    (!local || c->local == local))
			return c;
	}
	return NULL;
}

static struct connection *track_find_local(struct track *t, const struct packet *p)
{
	for (unsigned int i = 0; i < t->num; i++)
		if (t->c[i].local == p->dest_qpn && t->c[i].is_ipv6 == p->is_ipv6)
			return &t->c[i];
	return NULL;
}

static bool track_is_taken(const struct track *t, u32 local)
{
	for (unsigned int i = 0; i < t->num; i++)
		if (t->c[i].local == local)
			return true;
	return false;
}

/* The port tells the two QPs; that of a socket does not: then connections come one by one. */
static void track_join(struct track *t, struct connection *c)
{
	for (unsigned int i = 0; i < t->num_locals && !c->local; i++)
		if (t->has_sockets ? !track_is_taken(t, t->locals[i]) :
				     path_udp_sport(0, t->locals[i], c->remote) == c->sport)
			c->local = t->locals[i];
}

void track_meet(struct track *t, const struct packet *p, bool is_ours)
{
	struct connection *c;
	unsigned int i;

	if (!is_ours) {
		for (i = 0; i < t->num_locals && t->locals[i] != p->dest_qpn; i++)
			;
		must(i < CONNECTIONS, "too many QPs");
		if (i < t->num_locals)
			return;
		t->locals[t->num_locals++] = p->dest_qpn;
		for (i = 0; i < t->num; i++)
			track_join(t, &t->c[i]);
		return;
	}
	if (track_find(t, p))
		return;
	must(t->num < CONNECTIONS, "too many connections");
	c = &t->c[t->num++];
	*c = (struct connection){ .service = OPCODE_TRANSPORT(p->opcode), .is_ipv6 = p->is_ipv6,
				  .remote = p->dest_qpn, .sport = p->udp_sport };
	c->sent = calloc(RING, sizeof(*c->sent));
	c->asked = calloc(RING, sizeof(*c->asked));
	must(c->sent && c->asked, "no memory");
	if (p->flags & OP_DETH)
		c->local = p->src_qpn;
	track_join(t, c);
}

/* b - a as a signed distance of 24 bits. */
static int track_distance(u32 a, u32 b)
{
	return (int)((b - a) << 8) >> 8;
}

static u32 track_packets(const struct track *t, u32 bytes)
{
	return bytes ? (bytes + t->path_mtu - 1) / t->path_mtu : 1;
}

/* ---- what the peer sent ---- */

static struct asked *asked_at(struct connection *c, u32 psn)
{
	struct asked *a = &c->asked[psn & (RING - 1)];

	if (!a->is_known || a->psn != psn)
		*a = (struct asked){ .psn = psn };
	return a;
}

void track_theirs(struct track *t, const struct packet *p)
{
	struct connection *c = track_find_local(t, p);
	u32 n = p->flags & OP_READ ? track_packets(t, p->dma_len) : 1, i;
	u32 end = (p->psn + n - 1) & ROCE_PSN_MASK;

	if (!c || !(p->flags & OP_REQUEST))
		return;
	if (!c->has_asked || track_distance(c->newest, end) > 0)
		c->newest = end;
	c->has_asked = true;
	for (i = 0; i < n; i++) {
		struct asked *a = asked_at(c, (p->psn + i) & ROCE_PSN_MASK);

		if (i == 0 && !a->is_known && p->flags & OP_END)
			c->messages++;
		a->is_known = true;
		a->is_atomic = p->flags & (OP_ATOMIC | OP_ATOMIC_WRITE);
		if (!(p->flags & OP_READ))
			continue;
		a->is_read = true;
		a->is_first |= i == 0;
		a->is_inner |= i != 0;
		a->is_through |= i != n - 1;
		if (i == n - 1) {
			a->is_last = true;
			a->last_bytes = p->dma_len - i * t->path_mtu;
		}
	}
}

/* ---- responses of ours ---- */

static const char *track_read_response(const struct track *t, const struct asked *a,
				       const struct packet *p)
{
	if (!a->is_known || !a->is_read)
		return "READ response with a PSN of no READ";
	if (p->flags & OP_START ? !a->is_first : !a->is_inner)
		return "READ response out of sequence: first or not";
	if (p->flags & OP_END ? !a->is_last : !a->is_through)
		return "READ response out of sequence: last or not";
	if (p->payload_len != (p->flags & OP_END ? a->last_bytes : t->path_mtu))
		return "READ response: length";
	return NULL;
}

static const char *track_acknowledge(struct connection *c, const struct asked *a,
				     const struct packet *p)
{
	switch (p->syndrome & AETH_CLASS_MASK) {
	case AETH_ACK:
		if (!a->is_known)
			return "ACK of what was not received";
		if (a->is_read || a->is_atomic)
			return "ACK with the PSN of a READ or atomic";
		return NULL;
	case AETH_RNR_NAK:
		return a->is_known ? NULL : "RNR NAK of what was not received";
	case AETH_NAK:
		if ((p->syndrome & AETH_VALUE_MASK) > NAK_REMOTE_OPERATION)
			return "NAK code";
		if ((p->syndrome & AETH_VALUE_MASK) == NAK_PSN_SEQUENCE)
			return track_distance(c->newest, p->psn) <= 0
				       ? NULL
				       : "sequence NAK past the newest PSN";
		return a->is_known ? NULL : "NAK of what was not received";
	default:
		return "AETH class";
	}
}

static const char *track_response(struct track *t, struct connection *c, const struct packet *p)
{
	const struct asked *a;

	if (!p->migreq)
		return "MigReq";
	if (!c->local || !c->has_asked)
		return "response on a connection without requests";
	a = asked_at(c, p->psn);
	if (p->flags & OP_AETH && track_distance(c->messages, p->msn) > 0)
		return "MSN above the messages received";
	if (p->flags & OP_READ)
		return track_read_response(t, a, p);
	if (p->flags & OP_ATOMIC_ACK_ETH)
		return a->is_known && a->is_atomic ? NULL
						   : "atomic response with a PSN of no atomic";
	return track_acknowledge(c, a, p);
}

/* ---- requests of ours ---- */

static u32 track_content(const struct packet *p)
{
	const u8 *bth = p->ip + (p->is_ipv6 ? 48 : 28), *at;
	u32 h = (0x811c9dc5u ^ p->opcode ^ (u32)p->solicited << 8) * 0x01000193u;

	for (at = bth + 12; at < p->payload + p->payload_len; at++)
		h = (h ^ *at) * 0x01000193u;
	return h;
}

static const char *track_length(const struct track *t, struct connection *c, const struct packet *p)
{
	if (!(p->flags & OP_PAYLOAD))
		return NULL;
	if (!(p->flags & OP_END) && p->payload_len != t->path_mtu)
		return "first or middle packet of another length than the path MTU";
	if (p->payload_len > t->path_mtu)
		return "longer than the path MTU";
	if (p->flags & OP_END && !(p->flags & OP_START) && !p->payload_len)
		return "last packet without payload";
	c->bytes = (p->flags & OP_START ? 0 : c->bytes) + p->payload_len;
	if (p->flags & OP_RETH)
		c->dma_len = p->dma_len;
	if (p->flags & OP_END && p->flags & OP_WRITE && c->bytes != c->dma_len)
		return "WRITE of another length than its RETH says";
	return NULL;
}

static const char *track_new(struct track *t, struct connection *c, const struct packet *p)
{
	u32 kind = p->flags & (OP_SEND | OP_WRITE), n = 1, i;
	bool is_wrong = p->flags & OP_START ? c->message != 0 : c->message != kind;

	c->message = p->flags & OP_END ? 0 : kind;
	c->asks = p->ackreq || p->flags & (OP_READ | OP_ATOMIC);
	if (p->flags & OP_READ)
		n = track_packets(t, p->dma_len);
	for (i = 0; i < n; i++)
		c->sent[(p->psn + i) & (RING - 1)] = (struct request){
			.psn = (p->psn + i) & ROCE_PSN_MASK,
			.is_known = true,
			.is_read = p->flags & OP_READ,
			.content = i ? 0 : track_content(p),
			.rkey = p->rkey,
			.va = p->va + (u64)i * t->path_mtu,
			.left = p->dma_len - i * t->path_mtu,
		};
	c->next_psn = (p->psn + n) & ROCE_PSN_MASK;
	return is_wrong ? "opcode out of sequence" : track_length(t, c, p);
}

/* A repetition equals its original; a READ may be requested again in part. */
static const char *track_again(const struct track *t, struct connection *c, const struct packet *p)
{
	const struct request *r = &c->sent[p->psn & (RING - 1)];

	if (c->service != XROCE_RC)
		return "repetition on an unreliable transport";
	if (!r->is_known || r->psn != p->psn)
		return "repetition of what was not sent";
	if (!(p->flags & OP_READ))
		return r->content == track_content(p) ? NULL : "repetition with other content";
	if (!r->is_read || r->rkey != p->rkey || r->va != p->va || p->dma_len > r->left ||
	    (p->dma_len < r->left && p->dma_len % t->path_mtu))
		return "repeated READ that is no part of the first";
	return NULL;
}

static const char *track_request(struct track *t, struct connection *c, const struct packet *p)
{
	const char *what;
	int ahead;

	if (p->flags & OP_DETH) {
		if (!p->qkey || (c->qkey && c->qkey != p->qkey))
			return "Q_Key";
		c->qkey = p->qkey;
	}
	if (!c->has_begun)
		c->next_psn = p->psn;
	c->has_begun = true;
	ahead = track_distance(c->next_psn, p->psn);
	if (ahead > 0)
		return "PSN skipped";
	if (ahead < 0)
		return track_again(t, c, p);
	what = track_new(t, c, p);
	/* Only a repetition may go without (docs/transport.md). */
	return what || p->migreq ? what : "MigReq";
}

unsigned int track_unfinished(const struct track *t)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < t->num; i++) {
		const struct connection *c = &t->c[i];

		n += c->message || (c->has_begun && c->service == XROCE_RC && !c->asks);
	}
	return n;
}

const char *track_ours(struct track *t, const struct packet *p)
{
	struct connection *c = track_find(t, p);

	if (!c)
		return "no connection";
	if (c->sport != p->udp_sport)
		return "UDP source port changed";
	if (!c->local && c->service == XROCE_RC && !t->has_sockets)
		return "UDP source port is not that of the two QPs";
	if (p->flags & OP_CNP)
		return p->becn && !p->psn ? NULL : "CNP without BECN or with a PSN";
	if (p->flags & OP_CREDIT)
		return p->opcode == OPCODE_CREDIT_PROBE && c->service != XROCE_RC && !p->psn &&
				       !p->credit_allowance ?
			       NULL :
			       "flow control of a service that has acknowledgements, or not a "
			       "probe";
	if (c->service != OPCODE_TRANSPORT(p->opcode))
		return "opcode of another transport";
	return p->flags & OP_RESPONSE ? track_response(t, c, p) : track_request(t, c, p);
}
