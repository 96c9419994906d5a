/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "counter_names.h"

/* Fields of engines (E), of XDP (D), of drops by engines (R) and by XDP (X). */
#define E(field) (offsetof(struct sums, engine.field) + 1)
#define D(field) (offsetof(struct sums, rx.field) + 1)
#define R(field) (offsetof(struct sums, refused.field) + 1)
#define X(field) (offsetof(struct sums, xdp.field) + 1)

const struct counter_name counter_names[] = {
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
const u32 counter_num_names = ARRAY_SIZE(counter_names);

static u64 counter_term(const struct sums *s, u32 at)
{
	return at ? *(const u64 *)((const u8 *)s + at - 1) : 0;
}

u64 counter_value(const struct sums *s, const struct counter_name *c)
{
	u64 value = 0, less = 0;

	for (u32 i = 0; i < ARRAY_SIZE(c->plus); i++)
		value += counter_term(s, c->plus[i]);
	for (u32 i = 0; i < ARRAY_SIZE(c->minus); i++)
		less += counter_term(s, c->minus[i]);
	return (value > less ? value - less : 0) / (c->divisor ? c->divisor : 1);
}

const char *counter_family(enum name_family family)
{
	static const char *const names[] = { [NAME_MLX5] = "mlx5",
					     [NAME_RXE] = "rxe",
					     [NAME_PORT] = "port" };

	return family < NAME_FAMILIES ? names[family] : "";
}
