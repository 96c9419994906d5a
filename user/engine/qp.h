/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Queue pairs: the state that the requester, the responder and the state machine keep for one QP,
 * and the send queue that the application fills.
 *
 *   application (one producer at a time)          engine (under its owner's lock)
 *   sq_begin: load cons (acquire), first = prod
 *   sq_slot: load cons (acquire) for room         load prod (acquire), then first; work on WQEs in
 *                                                 place,
 *   sq_publish: store prod (release)  --------->  complete them, store cons (release)
 *
 * Only the engine touches the rest: all but the producer sides of the send and receive queues,
 * qp_state() and qp_engine(). On a device with several engines, "the engine" is the QP's owner
 * engine: see engine.h.
 */
#ifndef ENGINE_QP_H
#define ENGINE_QP_H

#include <xroce/stat.h>

#include "comp_cntr.h"
#include "cq.h"
#include "credit.h"
#include "mr.h"
#include "packet.h"
#include "types.h"
#include "rq.h"
#include "template.h"

#define QP_MAX_RD_ATOMIC 128 /* both as initiator and as responder */
#define QP_RATE_MIN		1	    /* kbit/s */
#define QP_RATE_MAX		100000000u
/* entries in struct qp itself; a larger ring is allocated on request */
#define QP_OWN_RD_ATOMIC 16
#define QP_MAX_SEND_SGE	 32
#define QP_MAX_INLINE	 1024
#define QP_MAX_WR	 32768

/* QP states, with the values of enum ibv_qp_state. */
enum qp_state { QPS_RESET, QPS_INIT, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE, QPS_ERR };

/* Whether started requests continue: SQD finishes them and starts no new ones. */
static inline bool requests_go_on(enum qp_state state)
{
	return state == QPS_RTS || state == QPS_SQD;
}

/* Send work request opcodes, with the values of enum ibv_wr_opcode. */
enum wr_opcode {
	WR_WRITE = 0,
	WR_WRITE_WITH_IMM = 1,
	WR_SEND = 2,
	WR_SEND_WITH_IMM = 3,
	WR_READ = 4,
	WR_CMP_SWAP = 5,
	WR_FETCH_ADD = 6,
	WR_LOCAL_INV = 7,
	WR_BIND_MW = 8,
	WR_SEND_WITH_INV = 9,
	WR_FLUSH = 14,
	WR_ATOMIC_WRITE = 15,
	WR_REFUSED = 16, /* internal: see send_wqe_refuse(). Applications may not post it */
	WR_OPCODES
};

/* Send flags, with the values of enum ibv_send_flags. */
enum {
	WR_FENCE = 1 << 0,
	WR_SIGNALED = 1 << 1,
	WR_SOLICITED = 1 << 2,
	WR_INLINE = 1 << 3,
	WR_RENDEZVOUS = 1 << 7, /* internal: see tag.c. Applications may not set it */
};

/*
 * A send WQE in its slot of the send queue. The producer fills all fields but the requester's and
 * may not touch the WQE after sq_publish(). With WR_INLINE the data follows the struct in place of
 * the SGEs. The first cache line holds the less common fields: a SEND, WRITE or READ of one element
 * uses only the second.
 */
struct send_wqe {
	union {
		struct {
			/* WR_FLUSH: placement type and selectivity, as in the FETH */
			u64 compare_add;
			/*
			 * WR_ATOMIC_WRITE: the 8 bytes as they lie in memory. With SGEs the
			 * requester reads them when it starts the WQE.
			 */
			u64 swap;
		};
		struct {
			u32 mw_key, new_key; /* WR_BIND_MW; inv_rkey is not used */
			u32 lkey;
			u32 access;
			u64 addr, length;
			void *window; /* the poster's, until the WQE is published */
		} bind;
		struct {
			struct path path;
			u32 remote_qpn;
			u32 remote_qkey;
		} ud;
		u32 refused_as;	/* WR_REFUSED: enum cqe_status */
	};
	u64 wr_id;
	u8 opcode;	/* enum wr_opcode */
	u8 flags;	/* WR_* */
	u8 num_sge;	/* 0 with WR_INLINE */
	u8 executed;	/* the requester's: a local request was executed */
	u32 length;	/* of the message, 0 .. 2^31 */
	u32 first_psn;	/* the requester's, as num_psn: valid from when the requester reaches it */
	u32 num_psn;	/* PSNs that the message takes, >= 1 */
	u64 remote_addr;
	u32 rkey;
	u32 xrc_srqn;	/* XRC: the remote SRQ */
	__be32 imm;	/* WR_*_WITH_IMM */
	u32 inv_rkey;	/* WR_SEND_WITH_INV, WR_LOCAL_INV */

	union {
		struct sge sge[0];
		u8 data[0];
	};
};
_Static_assert(offsetof(struct send_wqe, wr_id) == CACHE_LINE &&
		       offsetof(struct send_wqe, sge[1]) == 2 * CACHE_LINE,
	       "a line for most");

/*
 * In one cache line: usually one thread posts and also runs the engine, and the cache must serve
 * ten thousand QPs.
 */
struct sq {
	_Atomic u32 prod;
	_Atomic u32 cons;
	/* index of the WQE in the ring's first slot; see sq_begin() */
	_Atomic u32 first;
	u16 mask;
	u16 stride;		/* bytes per slot */
	u8 *ring;
	u16 max_wr;		/* entries that may be posted */
	u16 max_sge;
	u16 max_inline;
	bool lent;		/* the caller owns the ring's memory: sq_free() does not free it */
};

/*
 * Attributes of ibv_modify_qp(3); a field is valid when its QP_ATTR_* bit is in the mask. The bits
 * have the values of enum ibv_qp_attr_mask.
 */
enum {
	QP_ATTR_STATE = 1 << 0,
	QP_ATTR_CUR_STATE = 1 << 1,
	QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QP_ATTR_ACCESS_FLAGS = 1 << 3,
	QP_ATTR_PKEY_INDEX = 1 << 4,
	QP_ATTR_PORT = 1 << 5,
	QP_ATTR_QKEY = 1 << 6,
	QP_ATTR_AV = 1 << 7,
	QP_ATTR_PATH_MTU = 1 << 8,
	QP_ATTR_TIMEOUT = 1 << 9,
	QP_ATTR_RETRY_CNT = 1 << 10,
	QP_ATTR_RNR_RETRY = 1 << 11,
	QP_ATTR_RQ_PSN = 1 << 12,
	QP_ATTR_MAX_QP_RD_ATOMIC = 1 << 13,
	QP_ATTR_ALT_PATH = 1 << 14,
	QP_ATTR_MIN_RNR_TIMER = 1 << 15,
	QP_ATTR_SQ_PSN = 1 << 16,
	QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17,
	QP_ATTR_PATH_MIG_STATE = 1 << 18,
	QP_ATTR_CAP = 1 << 19,
	QP_ATTR_DEST_QPN = 1 << 20,
	QP_ATTR_RATE_LIMIT = 1 << 25,
};

/* ibv_modify_qp_rate_limit(3) */
struct rate_limit {
	u32 kbps;		/* 0 = none, else QP_RATE_MIN .. QP_RATE_MAX */
	/* only with a rate; 0 = the default. A burst holds at least one typical packet */
	u32 burst_bytes;
	u32 typical_bytes;	/* of a packet */
};

struct qp_attr {
	enum qp_state state;
	enum qp_state cur_state;
	u32 access;		/* MR_REMOTE_* that remote requests may use */
	u16 pkey_index;
	u8 port;
	u32 qkey;
	struct path path;	/* QP_ATTR_AV, resolved by the caller */
	u32 path_mtu;		/* bytes: 256 .. 4096 */
	struct rate_limit rate_limit;
	u8 timeout;		/* 0 .. 31: 4.096 us * 2^timeout, 0 = none */
	u8 retry_cnt;		/* 0 .. 7 */
	u8 rnr_retry;		/* 0 .. 7, 7 = unlimited */
	u32 rq_psn;
	u32 sq_psn;
	u8 max_rd_atomic;
	u8 max_dest_rd_atomic;
	u8 min_rnr_timer;	/* code 0 .. 31 */
	u32 dest_qpn;
	bool sqd_async_notify;
};

struct rss;

struct qp_init {
	/* XROCE_RC, XROCE_UC, XROCE_UD, XROCE_XRC, XROCE_RAW */
	enum xroce_transport transport;
	bool xrc_target;		/* XRC_RECV, else XRC_SEND */
	u32 xrcd;			/* XRC_RECV: XRC domain */
	u32 max_send_wr, max_recv_wr;	/* 0 .. QP_MAX_WR */
	u32 max_send_sge, max_recv_sge;
	u32 max_inline;			/* bytes */
	bool sq_sig_all;
	struct cq *send_cq, *recv_cq;	/* XRC_SEND has no recv_cq, XRC_RECV has neither */
	struct srq *srq;		/* or NULL */
	u32 pd;
	/*
	 * UD: longest payload, bytes; 0 = 4096. Raw packets: the link's MTU. Unused by connected
	 * QPs, which have their path MTU
	 */
	u32 ud_mtu;
	/*
	 * Raw packets: either a work queue, with only a recv_cq and a receive queue, or a QP with
	 * rss and neither CQs nor queues. The QP owns rss once it is created.
	 */
	bool is_wq;
	struct rss *rss;
	/* 24-bit QPN, drawn by the caller; 0: the engine draws one; 1: QP 1, UD */
	u32 qpn;
	/*
	 * Memory of sq_bytes() and rq_bytes() for the queues, aligned to cache lines, with any
	 * contents, the caller's again after qp_destroy(); NULL: the QP allocates its own
	 */
	void *sq_lent, *rq_lent;
	/*
	 * Counters of the QP, the caller's memory until qp_destroy(): zeros but for pid and
	 * made_ns. May be a shared map: nothing that matters is read from it. NULL: the QP
	 * allocates its own
	 */
	struct xroce_qp_stat *stat;
	void *owner;			/* the verbs layer's object */
};

/* Returns the bytes of a send queue's memory, whole cache lines. */
size_t sq_bytes(u32 max_wr, u32 max_sge, u32 max_inline);

/*
 * One remote READ or atomic that the responder may have to answer again; an entry of the ring of
 * max_dest_rd_atomic.
 */
struct resp_resource {
	bool used;
	bool replay;	    /* pending again for a duplicate: yields to a new request */
	bool keyless;	    /* READ, with replay: no key was left when the duplicate arrived */
	bool atomic;
	bool placed;	    /* FLUSH or ATOMIC WRITE: answered by an empty READ response */
	u32 pd;
	u32 first_psn;
	u32 num_psn;
	u32 cursor;	    /* next response packet to send, 0 .. num_psn */
	u32 stop;	    /* send up to here (a duplicate may ask for part) */
	/* first response packet of the current request: FIRST/ONLY are relative to it */
	u32 resume;
	u32 msn;	    /* MSN when the request was executed */
	u32 rkey;
	u64 va;
	u32 length;
	u32 end;	    /* READ: end of the current request, bytes from va */
	u64 original;	    /* atomic result */
};

/*
 * The responder's sequence state: its place on the PSN circle and in a message. Plain data without
 * pointers, so that it can move to a shared map.
 */
struct resp_sequence {
	u32 expected_psn;
	u32 msn;
	bool in_message;
	bool nak_sent;	    /* silent until expected_psn arrives */
	bool dropping;	    /* UC: the rest of this message is lost */
	bool have_recv;	    /* a receive WQE is held for this message */
	bool migreq;	    /* requests had MigReq: without it is a resend; see responder.c */
	u8 message_kind;    /* OP_SEND or OP_WRITE, with in_message */
	u32 offset;	    /* bytes of the message received */
	u32 rkey;
	u32 remaining;	    /* WRITE: bytes still to come */
	u64 va;		    /* WRITE: next byte's address */
};

/* Packets that arrived early, by PSN: see recovery.c. */
struct reorder {
	struct held *head, *tail;
	u32 count;
	u32 gap_psn;		 /* the first missing PSN when the first of the packets arrived */
};

/*
 * A SEND or WRITE touches only three cache lines: the current receive, which begins in the receive
 * queue's line before this struct, the sequence and the headers. A fourth holds the header of its
 * ACK.
 */
struct responder {
	struct recv_work recv;	 /* with seq.have_recv */
	struct reorder early;	 /* requests ahead of the expected PSN */
	struct resp_resource *resource; /* ring of resource_mask + 1: few, or allocated */
	/* one bit per index in resource: responses to be sent from its cursor on */
	u64 pending[2];
	u8 resource_head;	 /* next entry to take: the oldest */
	u8 resource_mask;
	u8 max_resources;	 /* max_dest_rd_atomic */
	bool overran;		 /* XRC: a receive of the QP found its SRQ's CQ overrun */
	bool run;		 /* a duplicate arrived; the last one was run_psn */
	u32 run_psn;
	u32 run_acked;		 /* the run up to run_psn was ACKed up to here */
	u8 align[12];
	struct resp_sequence seq;
	u32 ack_psn;
	u32 pd;			 /* of the current request: the QP's, or the XRC SRQ's */
	bool ack_due;		 /* a response is to be sent after all pending resources */
	u8 ack_syndrome;
	u8 num_pending;		 /* bits set in pending */
	bool established;	 /* COMM_EST was reported or is not needed */
	u8 min_rnr_timer;
	u8 tag_kind;		 /* enum tag_kind of the current SEND, 0 without tag matching */
	u16 recv_skip;		 /* bytes of the message that the receive does not store */
	struct srq *recv_srq;	 /* XRC: the SRQ that recv was taken from */
	struct header_in request; /* the headers of the last request */
	struct header_out header; /* of the last response */
	struct resp_resource few[QP_OWN_RD_ATOMIC];
};

/* The state of the loss that is being repaired, in requester.loss. */
enum {
	/* a NAK started a repair since the last time-out: ignore another */
	LOSS_NAKED = 1 << 0,
	LOSS_COUNTED = 1 << 1, /* a retry was used: from now on only the user's time-outs use one */
	LOSS_PROBED = 1 << 2,  /* going back sends one packet and waits for its answer */
	LOSS_LATE = 1 << 3,    /* a probe was postponed: this process was not running then */
	LOSS_GRACE = 1 << 4,   /* times the user's time-out was postponed as late: two bits */
	LOSS_GRACES = 3 * LOSS_GRACE, /* its largest value */
};

/* Selective retransmission of lost packets: see recovery.c. */
struct recovery {
	bool hole;		 /* [hole_psn, hole_end) is to be sent again, now */
	/* for the answer to the last hole; no new packets are sent until it arrives */
	bool waiting;
	/* the adaptive time-out resent the oldest packet, perhaps too early */
	bool probing;
	/* answers that showed that the peer drops early packets */
	u8 go_back_evidence;
	u32 hole_psn, hole_end;
	u32 end_psn;		 /* sent_psn when the loss was noticed */
	u8 losses;		 /* since the last selective attempt with such a peer */
};

/* Round-trip time and the time-out from it: see congestion.c. */
struct rtt {
	u64 deadline_ns;	 /* NSEC_NEVER when stopped */
	u64 sample_start_ns;	 /* 0 = no packet is being timed */
	u32 sample_psn;
	u32 smoothed_ns, variation_ns; /* 0 = not measured yet */
	u8 backoff;		 /* doublings of the time-out */
	bool probe;		 /* struct rto_probe is in use */
};

/*
 * The last packet that the adaptive time-out resent, kept to see whether its answer was only late,
 * and the least time-out after a late answer. See congestion.c.
 */
struct rto_probe {
	u32 sent;		 /* repetitions not answered yet; 0: the next four are invalid */
	u32 psn;		 /* of the resent packet */
	u32 sample_psn;		 /* of the packet that was being timed when psn was resent */
	u64 start_ns;		 /* when sample_psn was sent; 0 = none was timed */
	u64 rtt_ns;		 /* round trip of sample_psn; 0 = not answered yet */
	u64 least_ns, until_ns;	 /* of the adaptive time-out; 0 = none */
};

/*
 * Two rate limits, the application's and that from congestion notifications (DCQCN): see
 * congestion.c. qp->rate_limited is set if either is active.
 */
struct rate {
	u64 limit;		 /* the application's, bytes/s; 0 = none */
	u64 ahead_ns;		 /* with limit: packets may leave this long before next_ns */
	bool reduced;		 /* by notifications, to current */
	u64 current, target;	 /* bytes/s */
	u32 alpha;		 /* 1/65536 */
	u32 stage;		 /* increases since the last cut */
	u64 alpha_ns, increase_ns; /* when each was last updated */
	u64 next_ns;		 /* when the next packet may leave */
	u64 cut_ns;		 /* time of the last cut; 0 = none since the limit began */
	u64 data_sent_ns;	 /* with ECN-capable packets: when the last data packet was sent */
	u64 cnp_sent_ns;	 /* when this side last sent a notification */
};

/*
 * A SEND or WRITE touches only the fields up to the flags of recovery, and the headers. The struct
 * begins in the send queue's cache line before it.
 */
struct requester {
	u32 next_psn;		 /* PSN of the next packet to be sent */
	/* oldest unacknowledged PSN: everything before it is complete */
	u32 unacked_psn;
	u32 sent_psn;		 /* one past the highest PSN ever sent */
	u32 tx;			 /* index of the WQE being sent; sq.cons <= tx <= sq.prod */
	u32 assigned;		 /* index of the first WQE that has no PSNs yet */
	u32 tx_packet;		 /* PSNs of the WQE at tx that were used already */
	u32 cwnd;		 /* congestion window: packets in flight, in 1/256 */
	u32 since_ackreq;	 /* packets since AckReq was last set */
	/*
	 * index of the WQE with message sequence number 1, if all since then had been one message:
	 * local requests are none, a READ may be several. credit_recount() corrects it
	 */
	u32 first_index;
	/* highest message sequence number that may consume a receive WQE */
	u32 credit_limit;
	u64 ack_deadline_ns;	 /* NSEC_NEVER when nothing is outstanding */
	struct rtt rtt;
	/* the peer advertises end-to-end credits, and credit_limit counts */
	bool credits_used;
	bool rnr_wait;		 /* until rnr_until_ns */
	/* SQ_DRAINED is to be reported when all started requests are complete */
	bool drained_notify;
	u8 loss;		 /* LOSS_* of the packet at unacked_psn; 0 on progress */
	u8 timeout, retry_cnt, rnr_retry;
	u8 retries_left, rnr_retries_left;
	u8 max_rd_atomic;
	/* outstanding READ requests and atomics: a ring of the last PSN of each, oldest first */
	u8 rd_atomic_head;
	u8 rd_atomic_out;
	struct recovery recovery;
	struct reorder early;	 /* READ and atomic responses ahead of unacked_psn */
	u64 rnr_until_ns;
	u32 *rd_atomic_last;	 /* ring of rd_atomic_mask + 1: few, or allocated */
	u8 rd_atomic_mask;
	u8 refusal;		 /* code of a NAK that arrived early, or 0 */
	u8 align[2];
	u32 refused_psn;	 /* PSN of that NAK */
	u32 few[QP_OWN_RD_ATOMIC];
	struct header_in response; /* of the last response */
	struct header_out header; /* of the last request */
};

/*
 * A QP on a tag-matching SRQ sends for the application and for the engine, which fetches rendezvous
 * data. The application fills the queue `posted`. The engine moves its WQEs to the QP's send queue,
 * whose only producer is then the engine: see tag.c.
 */
struct shared_sends {
	struct sq posted;	/* a slot is free again when its WQE has completed */
	u32 moved;		/* index in posted of the next WQE to be moved */
	u32 fetching;		/* slots of the send queue that rendezvous use or have reserved */
};

struct engine;

/*
 * struct qp: the hot fields come first, in one cache line the QP's identity and peer, then
 * requester and responder, each after its queue. Fields for losses, setup and queries come last.
 */
/*
 * Access rights in struct qp: MR_REMOTE_*, and from QP_FLUSH_SHIFT on MR_FLUSH_* with the bit order
 * of the FETH's placement types.
 */
#define QP_FLUSH_SHIFT 4

static inline u8 qp_granted(u32 access)
{
	return (u8)((access & (MR_REMOTE_WRITE | MR_REMOTE_READ | MR_REMOTE_ATOMIC)) |
		    (access & (MR_FLUSH_GLOBAL | MR_FLUSH_PERSISTENT)) >> (8 - QP_FLUSH_SHIFT));
}
_Static_assert(MR_FLUSH_GLOBAL >> 8 == 1 && MR_FLUSH_PERSISTENT >> 8 == 2, "as in the FETH");

struct qp {
	/* also read by the application's threads */
	/* owner engine: changes with all engines of the device held */
	_Atomic(struct engine *) engine cache_aligned;
	u32 qpn;
	_Atomic u8 state;	 /* enum qp_state */
	u8 transport;		 /* enum xroce_transport */
	bool sq_sig_all : 1;
	bool xrc_target : 1;
	bool tag_matching : 1;	 /* on a tag-matching SRQ: shared is set */
	bool tells_xdp : 1;	 /* expect is set: XDP wakes for responses */
	bool sends_single : 1;	 /* UD and raw packets: each request is one frame */
	bool is_wq : 1;		 /* a work queue: see raw.h */
	/* the engine's */
	/* READY_*: on the engine's list of QPs that may have something to send */
	u8 ready;
	bool rate_limited;
	bool cnp_due : 1;	 /* a CNP is to be sent */
	bool is_failing : 1;	 /* a fault on request failed a send WQE: ERR or SQE follows */
	bool is_counted : 1;	 /* an entry of counter[] is set */
	u8 access;		 /* rights of remote requests: qp_granted() */
	/* the application's threads' */
	_Atomic u8 doorbell;	 /* 1 while on an engine's doorbell stack */
	u16 pkey;
	u16 path_mtu;
	u32 pd;
	u32 dest_qpn;
	struct cq *send_cq, *recv_cq;
	struct srq *srq;
	struct xroce_qp_stat *stat; /* the engine writes, anyone reads */
	struct sq sq;
	struct requester req;
	struct rq rq cache_aligned;
	struct responder resp;
	struct path path;
	struct rate rate;
	struct rto_probe probe;
	struct credit_peer *credit;	 /* UC and UD: the current receiver */
	struct credit_peer credit_own;	 /* UC's only one, and UD's before it has sent */
	struct credit_peers *credit_peers; /* UD, else NULL */
	/* wait for peers that have never answered: shorter after each failure */
	u32 credit_stranger_ns;
	u32 credit_cookie;		 /* cookie of the last probe */
	u32 qkey;
	u32 xrcd;
	u32 groups;		     /* number of multicast groups that the QP is attached to */
	u32 num_flows;		     /* raw packets: number of flows of the QP */
	struct rss *rss;	     /* raw packets: the work queues that get the frames, or NULL */
	struct shared_sends *shared; /* with tag_matching, else NULL */
	struct qp *doorbell_next; /* of the pushing thread, then of the thread that takes the QP */
	struct xroce_qp_stat *stat_own; /* what stat_free() frees, or NULL: the caller's memory */
	/* by operation, or NULL; the verbs layer's. Kept until the QP is destroyed */
	struct comp_cntr *counter[COUNTED_OPS];
	void *owner;
	struct qp_attr attr;	 /* as last set, for query */
	/* Responses that XDP waits for, written by requester.c */
	struct xroce_expect *expect; /* NULL: nothing */
	u32 expect_index;	 /* index in sq of the WQE that expect describes, */
	bool expect_set;	 /* if expect describes one */
	/* IPv4 and UDP sockets: of the peer's requests, and of its responses */
	struct icrc_peer icrc_peer[2];
	/* Events to report, written by cq.c */
	u32 events;		 /* EVENT_* bits to report */
	bool event_queued;
	struct qp *event_next;
};
/* Whether a member begins a cache line. */
#define QP_LINE(member) (offsetof(struct qp, member) % CACHE_LINE == 0)
_Static_assert(offsetof(struct qp, sq) == CACHE_LINE &&
		       offsetof(struct qp, req.recovery.hole_psn) == 3 * CACHE_LINE,
	       "two lines for requests");
_Static_assert(QP_LINE(req.header) && QP_LINE(req.response) && QP_LINE(resp.header) &&
		       QP_LINE(resp.request),
	       "one for headers");
_Static_assert(QP_LINE(rq) && QP_LINE(resp.recv.sge[1]), "one for the receive at hand");
_Static_assert(QP_LINE(resp.seq) && offsetof(struct qp, resp.request) ==
					    offsetof(struct qp, resp.seq) + CACHE_LINE,
	       "one for the sequence");
#undef QP_LINE

/* ---- the application's side: any thread, one producer at a time ---- */

static inline enum qp_state qp_state(const struct qp *qp)
{
	/* acquire: pairs with the stores in qp_enter_state(), engine_qp_error(), qp_send_error() */
	return (enum qp_state)atomic_load_explicit(&((struct qp *)qp)->state, memory_order_acquire);
}

/*
 * Returns the QP's owner engine. Any thread: a hint without the lock of an engine of the device;
 * stable under one.
 */
static inline struct engine *qp_engine(const struct qp *qp)
{
	/* relaxed: the engine itself does not change, and its users take its lock */
	return atomic_load_explicit(&((struct qp *)qp)->engine, memory_order_relaxed);
}

/* Returns the queue that the application fills. */
static inline struct sq *qp_posting(const struct qp *qp)
{
	return qp->tag_matching ? &qp->shared->posted : &((struct qp *)qp)->sq;
}

/*
 * Starts posting a list of WQEs; no slot may be in use. If all earlier WQEs are completed, the list
 * starts at the ring's first slot. So a deep but seldom filled queue uses few cache lines, not all
 * of its memory.
 */
void sq_begin(struct sq *sq);
/* Returns slot n (0 = next) of the unpublished ones, or NULL if the send queue is full. */
struct send_wqe *sq_slot(struct sq *sq, u32 n);
/* Hands n filled slots to the engine. engine_doorbell() must follow. */
void sq_publish(struct sq *sq, u32 n);

/*
 * Checks whether a WQE may be posted. Returns 0; -EINVAL for an opcode that no service has, bad
 * flags or too many elements; -ENOMEM for too much inline data. Errors that adapters detect are
 * posted and fail in their turn: an opcode that the service lacks (LOC_QP_OP_ERR), an atomic that
 * is not 8 bytes, a message over 2^31 bytes (LOC_LEN_ERR). Keys and UD lengths are checked when the
 * WQE is sent.
 */
int send_wqe_check(const struct qp *qp, struct send_wqe *wqe);
/* Turns the WQE into a request that fails with this status in its turn. */
void send_wqe_refuse(struct send_wqe *wqe, enum cqe_status status);

/* ---- the owner's side: with all engines of the device held ---- */

/*
 * [all] Creates a QP in RESET with a QPN and e as its owner. Returns 0, -ENOMEM, -EINVAL, or
 * -EEXIST if the caller's QPN is not available: another QP uses its slot, or did until just now.
 * Only engine 0 owns QPs of XRC, tag matching and raw packets.
 */
int qp_create(struct engine *e, const struct qp_init *init, struct qp **out);
/*
 * [all] Destroys a QP and purges its completions; the CQs' consumer sides must be held as well.
 * Here and below, e is any engine of the device.
 */
void qp_destroy(struct engine *e, struct qp *qp);
/*
 * [all] Abandons a QP that no engine runs any more: sets ERR without flushing or reporting. Only
 * qp_destroy() may follow.
 */
void qp_abandon(struct qp *qp);

/*
 * [all] ibv_modify_qp(3). Returns 0, -EINVAL (no such transition; an attribute missing, not allowed
 * or out of range) or -ENOMEM (for READs and atomics past QP_OWN_RD_ATOMIC); an error changes
 * nothing. For a transition to RESET, the CQs' consumer sides must be held.
 */
int qp_modify(struct engine *e, struct qp *qp, const struct qp_attr *attr, u32 mask, u64 now_ns);

/* Returns the current attributes; sq_psn and rq_psn are the next PSNs. The owner engine is held. */
void qp_query(const struct qp *qp, struct qp_attr *attr);

/* Returns a transition's attribute masks; false: no such transition. (tests and qp_modify) */
bool qp_transition(enum xroce_transport t, bool xrc_target, enum qp_state from, enum qp_state to,
		   u32 *required, u32 *optional);

#endif
