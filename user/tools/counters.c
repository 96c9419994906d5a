/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stddef.h>

#include "../engine/cq.h"
#include "counters.h"

#define ENGINE(field, text) { #field, text, offsetof(struct sums, engine.field), false, false }
#define XDP(field, text)    { "xdp_" #field, text, offsetof(struct sums, rx.field), false, false }
#define SOCK(field, text) \
	{ "sock_" #field, text, offsetof(struct sums, sock.field), false, false }
#define GAUGE(field, text)  { #field, text, offsetof(struct sums, engine.field), false, true }

const struct counters_field counters_fields[] = {
	ENGINE(rx_packets, "packets processed by the engines"),
	ENGINE(tx_packets, "packets sent"),
	ENGINE(tx_bytes, "bytes of whole frames sent"),
	ENGINE(loopback_packets, "packets to this process itself, which no interface carries"),
	ENGINE(tx_acks, "acknowledgements sent"),
	ENGINE(rx_acks, "acknowledgements received"),
	ENGINE(tx_retransmitted, "request packets retransmitted"),
	ENGINE(tx_retransmitted_bytes, "bytes of frames retransmitted"),
	ENGINE(timeouts, "time-outs of IBV_QP_TIMEOUT"),
	ENGINE(rto_probes, "packets retransmitted earlier, after the adaptive time-out"),
	ENGINE(rto_spurious, "of these, unnecessary: the answer was late and nothing was lost"),
	ENGINE(late_deadlines, "time-outs noticed late and postponed"),
	ENGINE(tx_sequence_naks, "PSN sequence error NAKs sent: a packet was missing here"),
	ENGINE(rx_sequence_naks, "PSN sequence error NAKs received: a packet was missing there"),
	ENGINE(implied_naks, "responses that showed that an earlier response is missing"),
	ENGINE(tx_rnr_naks, "RNR NAKs sent: no receive was posted here"),
	ENGINE(rx_rnr_naks, "RNR NAKs received: no receive was posted there"),
	ENGINE(duplicate_requests, "duplicate requests"),
	ENGINE(remote_errors, "fatal NAKs sent"),
	ENGINE(cq_overruns, "completion queues that overran"),
	ENGINE(tx_no_room, "times that the transmit ring was full"),
	ENGINE(rx_held, "packets received early and kept until their turn"),
	ENGINE(credit_waits, "messages that waited for the peer's credits"),
	ENGINE(rx_ce, "data packets marked \"congestion experienced\""),
	ENGINE(tx_cnps, "congestion notifications sent"),
	ENGINE(rx_cnps, "congestion notifications received"),
	ENGINE(tx_xsk, "frames that left through the AF_XDP socket"),
	ENGINE(tx_tap, "frames that left through the TAP device"),
	ENGINE(tx_live, "frames that left as XDP live frames"),
	ENGINE(tx_lost, "frames that the kernel refused"),
	GAUGE(tx_pacer, "current limit of frames redirected in 50 us"),
	ENGINE(tx_slowed, "times that this limit was halved because the interface lost frames"),
	ENGINE(tx_tap_writes, "system calls for tx_tap"),
	ENGINE(tx_live_runs, "system calls for tx_live"),
	ENGINE(tx_gso, "frames sent in UDP super-packets or together with them"),
	ENGINE(tx_gso_sends, "packets that carried these frames"),
	ENGINE(tx_udp, "frames that left through UDP sockets"),
	ENGINE(tx_udp_sends, "datagrams that carried these frames"),
	ENGINE(rx_handed, "frames handed over to the engine that owns their QP"),
	ENGINE(qps_moved, "QPs that moved to where their packets arrive"),
	ENGINE(flow_probes, "UC and UD: requests for the receiver's limit"),
	ENGINE(flow_answers, "UC and UD: answers with the limit of this receiver"),
	ENGINE(flow_waits, "UC and UD: times that a QP waited for such an answer"),
	ENGINE(tx_gave_up, "times that sending by super-packets was given up"),
	ENGINE(rx_writes, "RDMA WRITEs of peers executed"),
	ENGINE(rx_reads, "RDMA READs of peers executed"),
	ENGINE(rx_atomics, "atomics of peers executed"),
	ENGINE(req_errors, "send requests completed with an error other than flushed"),
	ENGINE(req_retry_exceeded, "of these: no answer from the peer"),
	ENGINE(req_rnr_exceeded, "of these: the peer never posted a receive"),
	ENGINE(req_remote_access, "of these: remote access error"),
	ENGINE(req_remote_invalid, "of these: remote invalid request"),
	ENGINE(req_remote_operation, "of these: remote operational error"),
	ENGINE(req_flushed, "send requests flushed"),
	ENGINE(resp_flushed, "receives flushed"),
	ENGINE(resp_errors, "receives completed with an error other than flushed"),
	ENGINE(resp_length, "of these: shorter than the message"),
	ENGINE(resp_access, "QPs stopped by a peer's request without the access right"),
	ENGINE(resp_invalid, "QPs stopped by a peer's invalid request"),
	ENGINE(tx_copies_lost, "copies of sent packets for local flows and groups lost"),
	XDP(redirected, "frames that XDP redirected to this process"),
	XDP(redirected_bytes, "bytes of these frames"),
	XDP(dropped, "frames that XDP dropped"),
	XDP(passed, "frames to the RoCEv2 port, but not to an address of the interface"),
	XDP(cq_wakeups, "wake-ups for completions"),
	XDP(engine_wakeups, "wake-ups of worker threads"),
	XDP(super_packets, "of xdp_redirected, UDP super-packets"),
	XDP(super_segments, "packets in these super-packets"),
	SOCK(rx_frames, "frames taken from the receive rings"),
	SOCK(rx_super_packets, "of these, cut into packets"),
	SOCK(rx_super_segments, "packets of these"),
	SOCK(rx_left, "frames left in a ring when it was closed"),
	SOCK(rx_ring_full, "frames lost: a receive ring was full"),
	SOCK(rx_dropped, "frames lost: no receive buffer"),
	SOCK(rx_fill_ring_empty, "times that the kernel found no receive buffer"),
	SOCK(rx_invalid_descs, "receive buffers that the kernel refused"),
	SOCK(tx_invalid_descs, "frames to send that the kernel refused"),
	SOCK(tx_ring_empty, "times that the kernel found no frame to send"),
#define X(name, text) { "drop_" #name, text, offsetof(struct xroce_drops, name), true, false },
	XROCE_DROP_REASONS(X)
#undef X
};
const u32 counters_num_fields = ARRAY_SIZE(counters_fields);

u64 counters_get(const struct sums *s, const struct counters_field *f)
{
	if (f->is_drop)
		return counter_plus(*(const u64 *)((const u8 *)&s->xdp + f->offset),
				    *(const u64 *)((const u8 *)&s->refused + f->offset));
	return *(const u64 *)((const u8 *)s + f->offset);
}

const char *counters_text(u32 offset)
{
	for (u32 i = 0; i < counters_num_fields; i++)
		if (!counters_fields[i].is_drop && counters_fields[i].offset == offset)
			return counters_fields[i].text;
	return "";
}

u64 counters_dropped(const struct sums *s)
{
	u64 all = 0;

	for (u32 i = 0; i < counters_num_fields; i++)
		if (counters_fields[i].is_drop)
			all = counter_plus(all, counters_get(s, &counters_fields[i]));
	return all;
}

u64 counters_lost(const struct sums *s)
{
	return counter_plus(counter_plus(s->sock.rx_ring_full, s->sock.rx_dropped),
			    s->xdp.ring_full);
}

/* ---- the names that adapter tools use ---- */

/* Fields of engines (E), of XDP (D), of drops by engines (R) and by XDP (X). */
#define E(field) (offsetof(struct sums, engine.field) + 1)
#define D(field) (offsetof(struct sums, rx.field) + 1)
#define R(field) (offsetof(struct sums, refused.field) + 1)
#define X(field) (offsetof(struct sums, xdp.field) + 1)

const struct counters_name counters_names[] = {
	{ NAME_MLX5, "out_of_sequence", "packets",
	  "packets ahead of the expected PSN",
	  { E(rx_held), R(psn_ahead) }, { 0 }, 0 },
	{ NAME_MLX5, "packet_seq_err", "NAKs",
	  "PSN sequence error NAKs received",
	  { E(rx_sequence_naks) }, { 0 }, 0 },
	{ NAME_MLX5, "duplicate_request", "packets",
	  "duplicate requests",
	  { E(duplicate_requests) }, { 0 }, 0 },
	{ NAME_MLX5, "implied_nak_seq_err", "events",
	  "responses that showed that an earlier response is missing",
	  { E(implied_naks) }, { 0 }, 0 },
	{ NAME_MLX5, "local_ack_timeout_err", "events",
	  "time-outs of IBV_QP_TIMEOUT",
	  { E(timeouts) }, { 0 }, 0 },
	{ NAME_MLX5, "rnr_nak_retry_err", "NAKs",
	  "RNR NAKs received",
	  { E(rx_rnr_naks) }, { 0 }, 0 },
	{ NAME_MLX5, "out_of_buffer", "NAKs",
	  "requests without a receive: RNR NAKs sent, and datagrams dropped",
	  { E(tx_rnr_naks), R(no_receive) }, { 0 }, 0 },
	{ NAME_MLX5, "rx_icrc_encapsulated", "packets",
	  "packets with a wrong ICRC",
	  { R(icrc) }, { 0 }, 0 },
	{ NAME_MLX5, "np_cnp_sent", "packets",
	  "congestion notifications sent",
	  { E(tx_cnps) }, { 0 }, 0 },
	{ NAME_MLX5, "np_ecn_marked_roce_packets", "packets",
	  "data packets marked \"congestion experienced\"",
	  { E(rx_ce) }, { 0 }, 0 },
	{ NAME_MLX5, "rp_cnp_handled", "packets",
	  "congestion notifications handled",
	  { E(rx_cnps) }, { 0 }, 0 },
	{ NAME_MLX5, "rp_cnp_ignored", "packets",
	  "congestion notifications that no sent packet can have caused",
	  { R(cnp) }, { 0 }, 0 },
	{ NAME_MLX5, "rx_write_requests", "requests",
	  "RDMA WRITEs executed for peers",
	  { E(rx_writes) }, { 0 }, 0 },
	{ NAME_MLX5, "rx_read_requests", "requests",
	  "RDMA READs executed for peers",
	  { E(rx_reads) }, { 0 }, 0 },
	{ NAME_MLX5, "rx_atomic_requests", "requests",
	  "atomics executed for peers",
	  { E(rx_atomics) }, { 0 }, 0 },
	{ NAME_MLX5, "req_cqe_error", "requests",
	  "send requests completed with an error",
	  { E(req_errors), E(req_flushed) }, { 0 }, 0 },
	{ NAME_MLX5, "req_cqe_flush_error", "requests",
	  "of these, flushed",
	  { E(req_flushed) }, { 0 }, 0 },
	{ NAME_MLX5, "req_remote_access_errors", "requests",
	  "of these, remote access errors",
	  { E(req_remote_access) }, { 0 }, 0 },
	{ NAME_MLX5, "req_remote_invalid_request", "requests",
	  "of these, remote invalid requests",
	  { E(req_remote_invalid) }, { 0 }, 0 },
	{ NAME_MLX5, "req_transport_retries_exceeded", "requests",
	  "of these, no answer from the peer",
	  { E(req_retry_exceeded) }, { 0 }, 0 },
	{ NAME_MLX5, "req_rnr_retries_exceeded", "requests",
	  "of these, the peer never posted a receive",
	  { E(req_rnr_exceeded) }, { 0 }, 0 },
	{ NAME_MLX5, "resp_cqe_error", "requests",
	  "receives completed with an error",
	  { E(resp_errors), E(resp_flushed) }, { 0 }, 0 },
	{ NAME_MLX5, "resp_cqe_flush_error", "requests",
	  "of these, flushed",
	  { E(resp_flushed) }, { 0 }, 0 },
	{ NAME_MLX5, "resp_local_length_error", "requests",
	  "of these, shorter than the message",
	  { E(resp_length) }, { 0 }, 0 },
	{ NAME_MLX5, "resp_remote_access_errors", "events",
	  "QPs stopped by a peer's request without the access right",
	  { E(resp_access) }, { 0 }, 0 },
	{ NAME_RXE, "sent_pkts", "packets",
	  "packets sent",
	  { E(tx_packets) }, { 0 }, 0 },
	{ NAME_RXE, "rcvd_pkts", "packets",
	  "packets processed by the engines",
	  { E(rx_packets) }, { 0 }, 0 },
	{ NAME_RXE, "duplicate_request", "packets",
	  "duplicate requests",
	  { E(duplicate_requests) }, { 0 }, 0 },
	{ NAME_RXE, "out_of_seq_request", "packets",
	  "requests and responses ahead of the expected PSN",
	  { E(rx_held), R(psn_ahead) }, { 0 }, 0 },
	{ NAME_RXE, "rcvd_rnr_err", "NAKs",
	  "RNR NAKs received",
	  { E(rx_rnr_naks) }, { 0 }, 0 },
	{ NAME_RXE, "send_rnr_err", "NAKs",
	  "RNR NAKs sent",
	  { E(tx_rnr_naks) }, { 0 }, 0 },
	{ NAME_RXE, "rcvd_seq_err", "NAKs",
	  "PSN sequence error NAKs received",
	  { E(rx_sequence_naks) }, { 0 }, 0 },
	{ NAME_RXE, "retry_exceeded_err", "requests",
	  "send requests without an answer",
	  { E(req_retry_exceeded) }, { 0 }, 0 },
	{ NAME_RXE, "retry_rnr_exceeded_err", "requests",
	  "send requests for which the peer never posted a receive",
	  { E(req_rnr_exceeded) }, { 0 }, 0 },
	{ NAME_RXE, "completer_retry_err", "events",
	  "recoveries started: time-outs, sequence NAKs, missing responses",
	  { E(timeouts), E(rx_sequence_naks), E(implied_naks) }, { 0 }, 0 },
	{ NAME_RXE, "send_err", "packets",
	  "frames that the kernel refused",
	  { E(tx_lost) }, { 0 }, 0 },
	{ NAME_PORT, "port_rcv_data", "4 bytes",
	  "frames that XDP redirected",
	  { D(redirected_bytes) }, { 0 }, 4 },
	{ NAME_PORT, "port_rcv_packets", "packets",
	  "packets that XDP redirected, counting those in super-packets",
	  { D(redirected), D(super_segments) }, { D(super_packets) }, 0 },
	{ NAME_PORT, "port_xmit_data", "4 bytes",
	  "frames sent, also to QPs of this process",
	  { E(tx_bytes) }, { 0 }, 4 },
	{ NAME_PORT, "port_xmit_packets", "packets",
	  "packets sent through the interface",
	  { E(tx_packets) }, { E(loopback_packets), E(tx_lost) }, 0 },
	{ NAME_PORT, "port_rcv_errors", "packets",
	  "frames that are not well-formed packets, and wrong ICRCs",
	  { R(icrc), X(bth_short), X(opcode), X(pad) }, { 0 }, 0 },
	{ NAME_PORT, "port_xmit_discards", "packets",
	  "frames that the kernel refused",
	  { E(tx_lost) }, { 0 }, 0 },
	{ NAME_PORT, "port_xmit_wait", "events",
	  "times that the transmit ring was full",
	  { E(tx_no_room) }, { 0 }, 0 },
};
#undef E
#undef D
#undef R
#undef X
const u32 counters_num_names = ARRAY_SIZE(counters_names);

static u64 counters_term(const struct sums *s, u32 at)
{
	return at ? *(const u64 *)((const u8 *)s + at - 1) : 0;
}

u64 counters_value(const struct sums *s, const struct counters_name *c)
{
	u64 value = 0, less = 0;

	for (u32 i = 0; i < ARRAY_SIZE(c->plus); i++)
		value = counter_plus(value, counters_term(s, c->plus[i]));
	for (u32 i = 0; i < ARRAY_SIZE(c->minus); i++)
		less = counter_plus(less, counters_term(s, c->minus[i]));
	return (value > less ? value - less : 0) / (c->divisor ? c->divisor : 1);
}

const char *counters_family(enum name_family family)
{
	static const char *const names[] = { [NAME_MLX5] = "mlx5",
					     [NAME_RXE] = "rxe",
					     [NAME_PORT] = "port" };

	return family < NAME_FAMILIES ? names[family] : "";
}

/* ---- texts ---- */

const char *counters_reason(u32 reason)
{
	const char *text = vendor_err_text(reason);

	if (text)
		return text;
	switch (reason) {
	case XROCE_REASON_NONE:
		return "the application set the error state";
	case XROCE_REASON_PEER_INVALID:
		return "the peer sent an invalid request";
	case XROCE_REASON_PEER_ACCESS:
		return "the peer requested access that its R_Key does not permit";
	case XROCE_REASON_PORT_LOST:
		return "the interface or its broker was removed";
	default:
		return "?";
	}
}

const char *counters_drop(u32 drop)
{
	static const char *const names[] = {
#define X(name, text) [XROCE_DROP_##name] = #name,
		XROCE_DROP_REASONS(X)
#undef X
	};

	return drop && drop < ARRAY_SIZE(names) ? names[drop] : "?";
}
