/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stddef.h>

#include <xroce/stat.h>

#include "../../engine/cq.h"
#include "decode.h"

/* ---- packets ---- */

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
	more(&t, "%s QP %u PSN %u", opcode_name(p->opcode), p->dest_qpn, p->psn);
	if (p->flags & OP_AETH)
		more(&t, ", %s, MSN %u", decode_syndrome(p->syndrome), p->msn);
	if (p->flags & OP_DETH)
		more(&t, ", from QP %u, Q_Key 0x%08x", p->src_qpn, p->qkey);
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

static void decode_address(const struct gid *gid, char text[INET6_ADDRSTRLEN])
{
	if (gid_is_ipv4(gid))
		inet_ntop(AF_INET, gid->raw + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

void decode_json(const struct packet *p, struct json *j)
{
	char address[INET6_ADDRSTRLEN];

	decode_address(&p->src, address);
	json_text(j, "source", address);
	decode_address(&p->dst, address);
	json_text(j, "destination", address);
	json_text(j, "opcode", opcode_name(p->opcode));
	json_number(j, "dest_qpn", p->dest_qpn);
	json_number(j, "psn", p->psn);
	json_number(j, "pkey", p->pkey);
	json_number(j, "payload", p->payload_len);
	json_bool(j, "solicited", p->solicited);
	json_bool(j, "ack_requested", p->ackreq);
	json_bool(j, "congestion", (p->tos & 3) == 3);
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

/* ---- drops ---- */

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

/* ---- events ---- */

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

static const char *decode_reason(u32 reason)
{
	const char *text = vendor_err_text(reason);

	switch (reason) {
	case XROCE_REASON_PEER_INVALID: return "the peer sent an invalid request";
	case XROCE_REASON_PEER_ACCESS: return "the peer requested access that its R_Key does not "
					      "permit";
	case XROCE_REASON_PORT_LOST: return "the interface or its broker was removed";
	}
	return text ? text : "unknown";
}

void decode_event(const struct xroce_told *told, char *text, size_t n)
{
	const char *what = event_texts[decode_known(told->event)][1];

	if (told->event == XROCE_EVENT_state)
		snprintf(text, n, "%s %s", what, decode_state(told->value));
	else if (told->event == XROCE_EVENT_error)
		snprintf(text, n, "%s %s: %s (%u)", what, decode_status(told->value),
			 decode_reason(told->more), told->more);
	else
		snprintf(text, n, "%s; oldest PSN not acknowledged %u, next expected %u", what,
			 told->value, told->more);
}

void decode_event_json(const struct xroce_told *told, struct json *j)
{
	json_text(j, "event", decode_event_name(told->event));
	json_text(j, "text", event_texts[decode_known(told->event)][1]);
	if (told->event == XROCE_EVENT_state) {
		json_text(j, "state", decode_state(told->value));
	} else if (told->event == XROCE_EVENT_error) {
		json_text(j, "status", decode_status(told->value));
		json_number(j, "reason", told->more);
		json_text(j, "reason_text", decode_reason(told->more));
	} else {
		json_number(j, "unacked_psn", told->value);
		json_number(j, "expected_psn", told->more);
	}
}

bool decode_event_is_trouble(const struct xroce_told *told)
{
	switch (told->event) {
	case XROCE_EVENT_rx_writes:
	case XROCE_EVENT_rx_reads:
	case XROCE_EVENT_rx_atomics:
	case XROCE_EVENT_credit_waits:
	case XROCE_EVENT_flow_waits:
		return false;
	case XROCE_EVENT_state:
		return told->value == XROCE_QPS_ERR || told->value == XROCE_QPS_SQE;
	}
	return true;
}
