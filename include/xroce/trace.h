/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is recorded while somebody looks (`xroce capture`, `xroce trace`): shared by the XDP
 * programs, the library, and the tracer, which is another process.
 *
 * Nobody looks: XDP loads one word for each packet, the library one for each batch, and no memory
 * is there for it. A tracer takes one of XROCE_TRACERS places, makes a ring buffer of its own and
 * puts it into xroce_tracer; then it sets the place's bit in listening, XDP's word, and changes
 * traced, the library's. Records that find no room are lost and counted: nobody waits for a tracer.
 *
 * A place is leased. A tracer that was killed moves until_ns no more, and XDP, or xroce_tell, which
 * finds that it has passed, takes the bit out of the word.
 *
 * What XDP goes by no client of a broker can write, nor read: none can keep its user or root from
 * looking. traced is in memory of the client's own, which it can write and not freeze
 * (user/broker/readonly_maps.h).
 */
#ifndef XROCE_TRACE_H
#define XROCE_TRACE_H

#include <xroce/abi.h>

#define XROCE_MAP_TRACE	  ".data.trace"
#define XROCE_MAP_TRACER  "xroce_tracer"
#define XROCE_TRACERS	  4
#define XROCE_TRACE_LEASE 2000000000ull /* ns; a tracer renews it several times as often */

/* What a tracer wants. */
enum {
	XROCE_TRACE_RECEIVED = 1 << 0, /* packets that XDP handed on to a QP */
	XROCE_TRACE_DROPPED = 1 << 1,  /* and those that it dropped */
	XROCE_TRACE_SENT = 1 << 2,
	XROCE_TRACE_EVENTS = 1 << 3,   /* of the engine */
};

/*
 * traced of struct xroce_engine: somebody may look. A tracer adds 2 to it and sets the bit; the
 * library takes the bit out if nobody wants what it tells, and no tracer has come since it looked.
 */
#define XROCE_TRACED	  1u
#define XROCE_TRACED_STEP 2u

/* A place. The tracer writes all but recorded and lost, XDP and xroce_tell read. */
struct xroce_tracer {
	__u64 until_ns;	/* CLOCK_MONOTONIC; 0: the place is free */
	__u32 owner;	/* the tracer's pid */
	__u32 what;	/* XROCE_TRACE_* */
	__u32 qpn;	/* of this QP alone; 0: of all */
	__u32 bytes;	/* of each packet, at most */
	__u32 has_peer;	/* of packets from or to this address alone */
	__u32 pad;
	__u8 peer[16];
	/* packets and events that found room, and that did not: the programs count */
	__u64 recorded;
	__u64 lost;
};
_Static_assert(sizeof(struct xroce_tracer) == 64, "a cache line each");

/* In the map XROCE_MAP_TRACE, which is one page of memory. */
struct xroce_trace {
	__u32 listening; /* a bit for each place that is in use */
	__u32 pad[15];
	struct xroce_tracer tracer[XROCE_TRACERS];
};

/* xroce_tracer (ARRAY_OF_MAPS of XROCE_TRACERS): the ring buffer of each tracer. */

/* What a record is. */
enum {
	XROCE_RECORD_RECEIVED = 1,
	XROCE_RECORD_DROPPED,
	/*
	 * what the library told in one piece: struct xroce_tale, and so many of struct xroce_told
	 * as it says
	 */
	XROCE_RECORD_TALE,
	/* the reader makes these of that: cqe.qpn is the QP's, src_qpn its peer's */
	XROCE_RECORD_SENT,
	XROCE_RECORD_LOOPED, /* sent to this process itself: it never left */
	XROCE_RECORD_EVENT,  /* drop: enum xroce_event; data: struct xroce_told */
};

/*
 * What an engine tells of a QP, beside its packets: a line makes the number and the text. Those
 * that are counted have the name of their counter (struct xroce_engine_stats).
 */
#define XROCE_EVENTS(X)                                                                            \
	X(implied_naks, "an answer came for a later request: those before it are lost")            \
	X(rx_rnr_naks, "RNR NAK received: the peer has no receive WQE")                            \
	X(rx_sequence_naks, "sequence NAK received: the peer misses packets")                      \
	X(rx_ce, "packet received that met congestion")                                            \
	X(rx_cnps, "CNP received: the rate is cut")                                                \
	X(credit_waits, "waits for the peer's credits")                                            \
	X(duplicate_requests, "request received again")                                            \
	X(flow_waits, "waits to hear what the receiver can take")                                  \
	X(remote_errors, "NAK sent: the peer's request is refused")                                \
	X(tx_cnps, "CNP sent")                                                                     \
	X(tx_retransmitted, "request sent again")                                                  \
	X(rx_writes, "RDMA WRITE executed")                                                        \
	X(rx_reads, "RDMA READ executed")                                                          \
	X(rx_atomics, "atomic executed")                                                           \
	X(tx_sequence_naks, "sequence NAK sent: packets are missing")                              \
	X(tx_rnr_naks, "RNR NAK sent: no receive WQE")                                             \
	X(late_deadlines, "time-out noticed late, and put off")                                    \
	X(rto_probes, "no answer: the oldest request is sent again, before the time-out")          \
	X(rto_spurious, "the repetition was answered too: nothing was lost")                       \
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

/* Whoever is looked at writes it, and counts what of it was lost before. */
struct xroce_tale {
	__u32 packets, events;
	__u32 lost_packets, lost_events;
	__u32 bytes;	/* of struct xroce_told, behind it */
	__u32 pad;
};

/*
 * What xroce_tell is run with (BPF_PROG_RUN), which the kernel copies both ways: 16 KiB, which is
 * room for three packets of the longest. It returns which of XROCE_TRACE_SENT and _EVENTS somebody
 * wants; 0: nobody.
 */
#define XROCE_TOLD_BYTES (16384u - 40 - (__u32)sizeof(struct xroce_tale))

struct xroce_telling {
	__u64 head[5];	/* the struct xroce_record: the program writes it */
	struct xroce_tale tale;
	__u8 told[XROCE_TOLD_BYTES];
};
_Static_assert(sizeof(struct xroce_telling) == 16384, "whole pages");

/* The process that is looked at writes it: a reader checks all of it. */
struct xroce_told {
	__u32 qpn;
	__u32 peer_qpn;	/* 0 of UD */
	__u16 size;	/* bytes of data; what follows begins at a multiple of 8 */
	__u8 kind;	/* XROCE_RECORD_SENT, LOOPED, EVENT */
	__u8 event;	/* enum xroce_event */
	/* of an event: the oldest PSN not acknowledged, the next that is expected; or */
	__u32 value;	/* of state: the new one; of error: enum xroce_status */
	__u32 more;	/* of error: enum xroce_reason */
	__u32 pad;
	__u8 data[];	/* of a packet: it, whole */
};
_Static_assert(sizeof(struct xroce_told) == 24, "whole words");

/*
 * A record: of a packet, its CQE, in which rx_time_ns is always set, and its bytes. Of what the
 * library told that is when it did, before the packets leave. Of a dropped
 * one qpn is set if it was read, flags and l3_offset, and no more. There are as many bytes as the
 * record has room for, len at most: the rest was not wanted.
 */
struct xroce_record {
	struct xroce_rx_cqe cqe;
	__u32 len;	/* of the whole packet */
	__u8 kind;	/* XROCE_RECORD_* */
	__u8 drop;	/* enum xroce_drop; 0 unless dropped */
	__u16 queue;	/* that it came by */
	__u8 data[];
};
_Static_assert(sizeof(struct xroce_record) == 40, "as xroce_rx_record");

#endif
