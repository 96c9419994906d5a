/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "sums.h"

#define ENGINE(field, text) { #field, text, offsetof(struct sums, engine.field), false, false }
#define XDP(field, text)    { "xdp_" #field, text, offsetof(struct sums, rx.field), false, false }
#define SOCK(field, text) \
	{ "sock_" #field, text, offsetof(struct sums, sock.field), false, false }
#define GAUGE(field, text)  { #field, text, offsetof(struct sums, engine.field), false, true }

const struct sums_field sums_fields[] = {
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
	XDP(engine_wakeups, "wake-ups of service threads"),
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
const u32 sums_num_fields = ARRAY_SIZE(sums_fields);

#define WORDS(s) (sizeof(s) / sizeof(u64))

void sums_read(const struct observed *p, struct sums *s)
{
	memset(s, 0, sizeof(*s));
	observed_sum(p, XROCE_MAP_ENGINE_STAT, (u64 *)&s->engine, WORDS(s->engine));
	observed_sum(p, XROCE_MAP_RX, (u64 *)&s->rx, WORDS(s->rx));
	observed_sum(p, XROCE_MAP_SOCK, (u64 *)&s->sock, WORDS(s->sock));
	observed_sum(p, XROCE_MAP_DROP, (u64 *)&s->xdp, WORDS(s->xdp));
	observed_sum(p, XROCE_MAP_ENGINE_DROP, (u64 *)&s->refused, WORDS(s->refused));
}

u64 sums_get(const struct sums *s, const struct sums_field *f)
{
	if (f->is_drop)
		return *(const u64 *)((const u8 *)&s->xdp + f->offset) +
		       *(const u64 *)((const u8 *)&s->refused + f->offset);
	return *(const u64 *)((const u8 *)s + f->offset);
}

void sums_add(struct sums *to, const struct sums *s)
{
	for (size_t i = 0; i < WORDS(*s); i++)
		((u64 *)to)[i] += ((const u64 *)s)[i];
}

u64 sums_dropped(const struct sums *s)
{
	u64 all = 0;

	for (u32 i = 0; i < sums_num_fields; i++)
		if (sums_fields[i].is_drop)
			all += sums_get(s, &sums_fields[i]);
	return all;
}

u64 sums_lost(const struct sums *s)
{
	return s->sock.rx_ring_full + s->sock.rx_dropped + s->xdp.ring_full;
}
