/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Records: reading a batch, splitting into packets, merging by time, decoding as text and JSON. */
#include "records.h"

#include <netinet/ip.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <xroce/stat.h>

#include "../../engine/icrc.h"
#include "../../os/gid_text.h"
#include "../counters.h"

/* ---- a batch ---- */

void trace_record_begin(struct trace_record *t, const u8 *bytes, u32 size)
{
	*t = (struct trace_record){ .bytes = bytes,
				    .at = sizeof(struct xroce_trace_record),
				    .size = size };
}

bool trace_record_next(struct trace_record *t, struct xroce_trace_entry *entry, const u8 **data)
{
	const u32 at = t->at;
	u32 whole;

	if (at > t->size || t->size - at < sizeof(*entry))
		return false;
	memcpy(entry, t->bytes + at, sizeof(*entry));
	whole = (u32)(sizeof(*entry) + entry->size + 7) & ~7u;
	t->at = t->size;
	if (whole > t->size - at || entry->kind < XROCE_RECORD_SENT ||
	    entry->kind > XROCE_RECORD_EVENT ||
	    (entry->kind == XROCE_RECORD_EVENT) != !entry->size || entry->size > PACKET_FRAME_MAX)
		return false;
	t->at = at + whole;
	*data = t->bytes + at + sizeof(*entry);
	return true;
}

/* ---- packets of a record ---- */

void packets_begin(struct packets *p, struct xroce_record *r, u32 size, bool ids_are_unknown)
{
	struct segments *s = &p->segments;
	bool is_super = r->cqe.flags & XROCE_RX_GSO;

	p->record = r;
	p->ids_are_unknown = ids_are_unknown;
	p->have = min_u32(size - (u32)sizeof(*r), r->len);
	p->num = 1;
	p->next = 0;
	p->is_cut_off = is_super && p->have < r->len;
	if (!is_super || p->is_cut_off)
		return;
	memset(s->id, 0, sizeof(s->id));
	/* no headroom: segments are copied and r->data stays unchanged */
	s->part[0] = (struct segment_part){ .data = r->data, .len = p->have };
	s->parts = 1;
	if (segments_begin(s, r->cqe.l3_offset))
		p->num = segments_left(s);
}

/* Writes the identification and the flag that explain the packet's ICRC, if any do. */
static void write_identification(const struct rx_frame *frame)
{
	static struct icrc_unknown unknown; /* for packets of the last length */
	struct packet p;
	u32 difference, tail;
	bool may_fragment;
	u16 id;
	u8 *ip;

	if (packet_parse(&p, frame) != XROCE_DROP_none || p.is_ipv6)
		return;
	difference = packet_icrc_difference(&p);
	tail = packet_bytes(&p) - ICRC_BEFORE_TAIL - ROCE_ICRC_BYTES;
	if (unknown.tail != tail)
		icrc_unknown_init(&unknown, tail);
	if (!difference || !icrc_unknown_solve(&unknown, difference, &id, &may_fragment))
		return;
	/* records are in memory of this process */
	ip = (u8 *)(uintptr_t)p.ip;
	put16(ip + offsetof(struct iphdr, id), get16(ip + offsetof(struct iphdr, id)) ^ id);
	ip[offsetof(struct iphdr, frag_off)] ^= may_fragment ? IP_DF >> 8 : 0;
	put16(ip + offsetof(struct iphdr, check), 0);
	put16(ip + offsetof(struct iphdr, check), ~fold16(sum16(ip, sizeof(struct iphdr))));
}

bool packets_next(struct packets *p, struct one_packet *out)
{
	struct rx_frame frame = { .data = p->record->data, .len = p->have };

	if (p->next == p->num || (p->num > 1 && !segments_next(&p->segments, &frame)))
		return false;
	if (p->ids_are_unknown && frame.len == (p->num > 1 ? frame.len : p->record->len))
		write_identification(&frame);
	*out = (struct one_packet){ .data = frame.data, .have = frame.len,
				    .len = p->num > 1 ? frame.len : p->record->len,
				    .nth = ++p->next };
	return true;
}

/* ---- merging ---- */

#define RECORDS_FIRST 1024u

int records_put(struct records *s, struct traced *from, const struct xroce_record *head,
		const void *data, u32 bytes)
{
	const u32 size = (u32)sizeof(*head) + bytes;
	const u32 room = s->room ? 2 * s->room : RECORDS_FIRST;
	struct held_record *more = s->of;
	struct xroce_record *copy;

	if (s->num == s->room) {
		more = reallocarray(s->of, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		s->of = more;
		s->room = room;
	}
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, head, sizeof(*head));
	memcpy(copy->data, data, bytes);
	more[s->num++] = (struct held_record){ .time_ns = head->cqe.rx_time_ns,
					       .nth = s->count++,
					       .size = size,
					       .from = from,
					       .record = copy };
	return 0;
}

static int records_compare(const void *a, const void *b)
{
	const struct held_record *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->nth < y->nth ? -1 : 1;
}

u32 records_give(struct records *s, u64 until_ns, traced_fn *fn, void *arg)
{
	u32 n = 0;

	/* of is NULL before the first record */
	if (s->num)
		qsort(s->of, s->num, sizeof(*s->of), records_compare);
	for (; n < s->num && (s->of[n].time_ns < until_ns || until_ns == NSEC_NEVER); n++) {
		const struct held_record *h = &s->of[n];

		s->late += h->time_ns < s->last_ns;
		s->last_ns = max_u64(s->last_ns, h->time_ns);
		fn(arg, h->from, h->record, h->size);
		free(h->record);
	}
	s->num -= n;
	if (n && s->num)
		memmove(s->of, s->of + n, s->num * sizeof(*s->of));
	return n;
}

void records_free(struct records *s)
{
	for (u32 i = 0; i < s->num; i++)
		free(s->of[i].record);
	free(s->of);
	*s = (struct records){ 0 };
}

/* ---- decoding: packets ---- */

bool decode_parse(const u8 *frame, u32 len, struct packet *p)
{
	const struct rx_frame f = { .data = frame, .len = len };

	return packet_parse(p, &f) == XROCE_DROP_none;
}

struct text {
	char *at;
	size_t left;
};

static void more(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void more(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	if ((size_t)n >= t->left)
		n = t->left ? (int)t->left - 1 : 0;
	t->at += n;
	t->left -= (size_t)n;
}

/* Returns the name of an AETH syndrome. */
static const char *decode_syndrome(u8 syndrome)
{
	static const char *const naks[] = { "NAK: PSN sequence", "NAK: invalid request",
					    "NAK: remote access", "NAK: remote operation" };
	const u8 value = syndrome & AETH_VALUE_MASK;

	switch (syndrome & AETH_CLASS_MASK) {
	case AETH_ACK: return "ACK";
	case AETH_RNR_NAK: return "RNR NAK";
	case AETH_NAK: return value < ARRAY_SIZE(naks) ? naks[value] : "NAK: reserved";
	default: return "reserved";
	}
}

void decode_text(const struct packet *p, char *text, size_t n)
{
	struct text t = { text, n };

	*text = 0;
	more(&t, "%s QP 0x%06x PSN %u", opcode_name(p->opcode), p->dest_qpn, p->psn);
	if (p->flags & OP_AETH)
		more(&t, ", %s, MSN %u", decode_syndrome(p->syndrome), p->msn);
	if (p->flags & OP_DETH)
		more(&t, ", from QP 0x%06x, Q_Key 0x%08x", p->src_qpn, p->qkey);
	if (p->flags & OP_XRC_ETH)
		more(&t, ", SRQ %u", p->xrc_srqn);
	if (p->flags & OP_RETH)
		more(&t, ", %u bytes at 0x%llx, R_Key 0x%08x", p->dma_len,
		     (unsigned long long)p->va, p->rkey);
	if (p->flags & OP_ATOMIC_ETH)
		more(&t, ", at 0x%llx, R_Key 0x%08x, value %llu, compare %llu",
		     (unsigned long long)p->va, p->rkey, (unsigned long long)p->swap_add,
		     (unsigned long long)p->compare);
	if (p->flags & OP_ATOMIC_ACK_ETH)
		more(&t, ", was %llu", (unsigned long long)p->original);
	if (p->flags & OP_IMM)
		more(&t, ", immediate 0x%08x", ntohl(p->imm));
	if (p->flags & OP_IETH)
		more(&t, ", invalidates R_Key 0x%08x", p->inv_rkey);
	if (p->flags & OP_PAYLOAD)
		more(&t, ", payload %u", p->payload_len);
	if (p->solicited)
		more(&t, ", solicited");
	if (p->ackreq)
		more(&t, ", requests an ACK");
	if ((p->tos & 3) == 3)
		more(&t, ", congestion experienced");
}

void decode_json(const struct packet *p, struct json *j)
{
	char address[GID_TEXT];

	json_text(j, "source", gid_text(p->src.raw, address));
	json_text(j, "destination", gid_text(p->dst.raw, address));
	json_text(j, "opcode", opcode_name(p->opcode));
	json_number(j, "dest_qpn", p->dest_qpn);
	json_number(j, "psn", p->psn);
	json_number(j, "pkey", p->pkey);
	json_number(j, "payload", p->payload_len);
	json_boolean(j, "solicited", p->solicited);
	json_boolean(j, "ack_requested", p->ackreq);
	json_boolean(j, "congestion", (p->tos & 3) == 3);
	if (p->flags & OP_AETH) {
		json_text(j, "syndrome", decode_syndrome(p->syndrome));
		json_number(j, "msn", p->msn);
	}
	if (p->flags & OP_DETH) {
		json_number(j, "source_qpn", p->src_qpn);
		json_number(j, "qkey", p->qkey);
	}
	if (p->flags & (OP_RETH | OP_ATOMIC_ETH)) {
		json_number(j, "address", p->va);
		json_number(j, "rkey", p->rkey);
	}
	if (p->flags & OP_RETH)
		json_number(j, "length", p->dma_len);
	if (p->flags & OP_ATOMIC_ETH) {
		json_number(j, "value", p->swap_add);
		json_number(j, "compare", p->compare);
	}
	if (p->flags & OP_ATOMIC_ACK_ETH)
		json_number(j, "original", p->original);
	if (p->flags & OP_IMM)
		json_number(j, "immediate", ntohl(p->imm));
	if (p->flags & OP_IETH)
		json_number(j, "invalidated_rkey", p->inv_rkey);
}

bool decode_is_trouble(const struct packet *p)
{
	return p->flags & OP_CNP || (p->tos & 3) == 3 ||
	       (p->flags & OP_AETH && (p->syndrome & AETH_CLASS_MASK) != AETH_ACK);
}

/* ---- decoding: drops ---- */

const char *decode_drop(u8 drop, const char **name)
{
	static const char *const texts[][2] = {
#define X(reason, text) { #reason, text },
		XROCE_DROP_REASONS(X)
#undef X
	};

	if (!drop || XROCE_DROP_INDEX(drop) >= ARRAY_SIZE(texts)) {
		*name = "unknown";
		return "unknown reason";
	}
	*name = texts[XROCE_DROP_INDEX(drop)][0];
	return texts[XROCE_DROP_INDEX(drop)][1];
}

/* ---- decoding: events ---- */

static const char *const event_texts[][2] = {
	[XROCE_EVENT_none] = { "unknown", "unknown event" },
#define X(name, text) [XROCE_EVENT_##name] = { #name, text },
	XROCE_EVENTS(X)
#undef X
};

static u8 decode_known(u8 event)
{
	return event < XROCE_EVENT_END ? event : XROCE_EVENT_none;
}

const char *decode_event_name(u8 event)
{
	return event_texts[decode_known(event)][0];
}

static const char *decode_state(u32 state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

/* Returns the name of an enum xroce_status. */
static const char *decode_status(u32 status)
{
	switch (status) {
#define X(name) case XROCE_STATUS_##name: return #name;
		X(SUCCESS)
		X(LOC_LEN_ERR)
		X(LOC_QP_OP_ERR)
		X(LOC_PROT_ERR)
		X(WR_FLUSH_ERR)
		X(MW_BIND_ERR)
		X(BAD_RESP_ERR)
		X(LOC_ACCESS_ERR)
		X(REM_INV_REQ_ERR)
		X(REM_ACCESS_ERR)
		X(REM_OP_ERR)
		X(RETRY_EXC_ERR)
		X(RNR_RETRY_EXC_ERR)
		X(TM_ERR)
		X(TM_RNDV_INCOMPLETE)
#undef X
	}
	return "unknown";
}

void decode_event(const struct xroce_trace_entry *entry, char *text, size_t n)
{
	const char *what = event_texts[decode_known(entry->event)][1];

	if (entry->event == XROCE_EVENT_state)
		snprintf(text, n, "%s %s", what, decode_state(entry->value));
	else if (entry->event == XROCE_EVENT_error)
		snprintf(text, n, "%s %s: %s (%u)", what, decode_status(entry->value),
			 counters_reason(entry->more), entry->more);
	else
		snprintf(text, n, "%s; oldest PSN not acknowledged %u, next expected %u", what,
			 entry->value, entry->more);
}

void decode_event_json(const struct xroce_trace_entry *entry, struct json *j)
{
	json_text(j, "event", decode_event_name(entry->event));
	json_text(j, "text", event_texts[decode_known(entry->event)][1]);
	if (entry->event == XROCE_EVENT_state) {
		json_text(j, "state", decode_state(entry->value));
	} else if (entry->event == XROCE_EVENT_error) {
		json_text(j, "status", decode_status(entry->value));
		json_number(j, "reason", entry->more);
		json_text(j, "reason_text", counters_reason(entry->more));
	} else {
		json_number(j, "unacked_psn", entry->value);
		json_number(j, "expected_psn", entry->more);
	}
}

bool decode_event_is_trouble(const struct xroce_trace_entry *entry)
{
	switch (entry->event) {
	case XROCE_EVENT_rx_writes:
	case XROCE_EVENT_rx_reads:
	case XROCE_EVENT_rx_atomics:
	case XROCE_EVENT_credit_waits:
	case XROCE_EVENT_flow_waits:
		return false;
	case XROCE_EVENT_state:
		return entry->value == XROCE_QPS_ERR || entry->value == XROCE_QPS_SQE;
	}
	return true;
}
