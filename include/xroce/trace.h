/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records for `xroce capture` and `xroce trace`, shared by the XDP programs, the library, and the
 * tracer, which is another process.
 *
 * Without a tracer, XDP loads one word for each packet, the library one for each batch, and no
 * memory is allocated. A tracer takes one of XROCE_TRACERS slots, creates a ring buffer and puts
 * it into xroce_tracer. It then sets the slot's bit in `listening`, XDP's word, and changes
 * `traced`, the library's. Records without room are dropped and counted; no sender waits for a
 * tracer.
 *
 * A slot is leased. A killed tracer no longer renews until_ns; after that time XDP or
 * xroce_trace_tx clears the slot's bit.
 *
 * No client of a broker can read or write the words that XDP uses, so no client can hide from its
 * user or root. `traced` is in the client's own memory, which the client can write but not freeze
 * (user/broker/readonly_maps.h).
 */
#ifndef XROCE_TRACE_H
#define XROCE_TRACE_H

#include <xroce/abi.h>

#define XROCE_MAP_TRACE	  ".data.trace"
#define XROCE_MAP_TRACER  "xroce_tracer"
#define XROCE_TRACERS	  4
#define XROCE_TRACE_LEASE 2000000000ull /* ns; renewed several times within it */

/* Classes of records that a tracer requests. */
enum {
	XROCE_TRACE_RECEIVED = 1 << 0, /* packets that XDP passed on to a QP */
	XROCE_TRACE_DROPPED = 1 << 1,  /* packets that XDP dropped */
	XROCE_TRACE_SENT = 1 << 2,
	XROCE_TRACE_EVENTS = 1 << 3,   /* engine events */
};

/*
 * `traced` of struct xroce_engine: a tracer may be active. A tracer adds 2 and sets the bit. The
 * library, or the broker for a process that reports by a socket, clears the bit if no tracer wants
 * its records and no new tracer started since the check.
 */
#define XROCE_TRACED	  1u
#define XROCE_TRACED_STEP 2u

/* A slot. The tracer writes all fields but recorded and lost; XDP and xroce_trace_tx read. */
struct xroce_tracer {
	__u64 until_ns; /* CLOCK_MONOTONIC; 0: the slot is free */
	__u32 owner;	/* the tracer's pid */
	__u32 what;	/* XROCE_TRACE_* */
	__u32 qpn;	/* only this QP; 0: all QPs */
	__u32 bytes;	/* limit for each packet */
	__u32 has_peer;	/* only packets from or to this address */
	__u32 pad;
	__u8 peer[16];
	/* packets and events recorded, and lost for lack of room: the programs count */
	__u64 recorded;
	__u64 lost;
};
_Static_assert(sizeof(struct xroce_tracer) == 64, "a cache line each");

/* The value of map XROCE_MAP_TRACE, one page of memory. */
struct xroce_trace {
	__u32 listening; /* one bit per slot in use */
	__u32 pad[15];
	struct xroce_tracer tracer[XROCE_TRACERS];
};

/* xroce_tracer (ARRAY_OF_MAPS of XROCE_TRACERS): the ring buffer of each tracer. */

/* Kind of a record. */
enum {
	XROCE_RECORD_RECEIVED = 1,
	XROCE_RECORD_DROPPED,
	/* a batch from the library: struct xroce_trace_record, then its entries */
	XROCE_RECORD_TRACE,
	/* the reader splits such a record into these: cqe.qpn is the QP's, src_qpn the peer's */
	XROCE_RECORD_SENT,
	XROCE_RECORD_LOOPED, /* sent to this same process: never on the wire */
	XROCE_RECORD_EVENT,  /* drop: enum xroce_event; data: struct xroce_trace_entry */
};

/*
 * Events of a QP that an engine records: one line defines the number, the name and text that
 * `xroce trace` prints, and the entry in xroce(8). A counted event has the name of its counter
 * (struct xroce_engine_stats).
 */
#define XROCE_EVENTS(X)                                                                            \
	X(implied_naks, "response to a later request: the responses before it are lost")           \
	X(rx_rnr_naks, "RNR NAK received: the peer has no receive WQE")                            \
	X(rx_sequence_naks, "sequence NAK received: packets are missing at the peer")              \
	X(rx_ce, "packet received with a congestion mark")                                         \
	X(rx_cnps, "CNP received: the rate is cut")                                                \
	X(credit_waits, "waits for the peer's credits")                                            \
	X(duplicate_requests, "duplicate request received")                                        \
	X(flow_waits, "waits for the receiver's limit")                                            \
	X(remote_errors, "NAK sent: the peer's request is refused")                                \
	X(tx_cnps, "CNP sent")                                                                     \
	X(tx_retransmitted, "request retransmitted")                                               \
	X(rx_writes, "RDMA WRITE executed")                                                        \
	X(rx_reads, "RDMA READ executed")                                                          \
	X(rx_atomics, "atomic executed")                                                           \
	X(tx_sequence_naks, "sequence NAK sent: packets are missing")                              \
	X(tx_rnr_naks, "RNR NAK sent: no receive WQE")                                             \
	X(late_deadlines, "time-out noticed late and postponed")                                   \
	X(rto_probes, "no answer: oldest request retransmitted before the time-out")               \
	X(rto_spurious, "the retransmission was answered too: nothing was lost")                   \
	X(timeouts, "time-out")                                                                    \
	X(state, "state")                                                                          \
	X(error, "error")

enum xroce_event {
	XROCE_EVENT_none,
#define X(name, text) XROCE_EVENT_##name,
	XROCE_EVENTS(X)
#undef X
	XROCE_EVENT_END
};

/*
 * The traced process writes it, and counts the records lost before it. With its records it is a
 * report, which a process that may not call bpf(2) sends to its broker (ASK_REPORTS_BY_SOCKET).
 */
struct xroce_trace_record {
	__u64 time_ns; /* CLOCK_MONOTONIC, when it was recorded; else the program's time */
	__u32 packets, events;
	__u32 lost_packets, lost_events;
	__u32 bytes; /* of the struct xroce_trace_entry that follow */
	__u32 pad;
};

/*
 * The context of xroce_trace_tx (BPF_PROG_RUN), which the kernel copies both ways: 16 KiB, room for
 * three packets of maximum length. xroce_trace_tx returns which of XROCE_TRACE_SENT and _EVENTS
 * tracers want; 0: none.
 */
#define XROCE_TRACE_ENTRIES_BYTES (16384u - 40 - (__u32)sizeof(struct xroce_trace_record))

struct xroce_trace_report {
	__u64 head[5];	/* the struct xroce_record, written by the program */
	struct xroce_trace_record record;
	__u8 entries[XROCE_TRACE_ENTRIES_BYTES];
};
_Static_assert(sizeof(struct xroce_trace_report) == 16384, "whole pages");

/* The traced process writes it: a reader checks every field. */
struct xroce_trace_entry {
	__u32 qpn;
	__u32 peer_qpn;	/* 0 for UD */
	__u16 size;	/* bytes of data; the next entry begins at a multiple of 8 */
	__u8 kind;	/* XROCE_RECORD_SENT, LOOPED, EVENT */
	__u8 event;	/* enum xroce_event */
	/* of an event: the oldest PSN not acknowledged, the next expected PSN; or */
	__u32 value;	/* of state: the new state; of error: enum xroce_status */
	__u32 more;	/* of error: enum xroce_reason */
	__u32 pad;
	__u8 data[];	/* of a packet: the whole packet */
};
_Static_assert(sizeof(struct xroce_trace_entry) == 24, "whole words");

/*
 * A record: a packet's CQE, in which rx_time_ns is always set, and its bytes. For a packet or event
 * from the library, rx_time_ns is when the library recorded it, before the packets leave. For a
 * dropped packet, only flags, l3_offset and, if it was read, qpn are set. The record's size gives
 * the number of bytes, at most len; a tracer may ask for fewer.
 */
struct xroce_record {
	struct xroce_rx_cqe cqe;
	__u32 len;	/* length of the whole packet */
	__u8 kind;	/* XROCE_RECORD_* */
	__u8 drop;	/* enum xroce_drop; 0 unless dropped */
	__u16 queue;	/* receive queue */
	__u8 data[];
};
_Static_assert(sizeof(struct xroce_record) == 40, "as xroce_rx_record");

#endif
