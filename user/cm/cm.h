/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One process's connection manager on a set of interfaces. MADs, time and calls in; MADs, a
 * deadline and events out. No system call, no clock, no lock, no memory but what cm_create() gets:
 * its owner serialises all calls and is its only link with QP1, with the verbs and with users.
 *
 * A turn of the owner: cm_input() for each MAD that came in, cm_expire() when cm_deadline_ns() has
 * come, or a call of a user; then cm_next_event() until it is empty (an event that nobody takes
 * holds back the MADs that would make others), and cm_output() until it is empty.
 *
 * A connection (struct cm_conn) is also what SIDR asks and answers by. It has a communication id of
 * this CM's range from its making to its end, so that whoever shares QP1 out among processes knows
 * from a MAD alone whose it is (cm_mad_names()). The owner names it by pointer, from the event or
 * call that made it until its own cm_close(). The CM keeps it beyond that for as long as the peer
 * may repeat itself.
 *
 * Calls that return int return 0, or a negative errno:
 *   -EINVAL    the connection is in a state that has no such call, or data is longer than the
 *	       MAD's private data
 *   -ENOBUFS   no connection or listener is left
 */
#ifndef CM_H
#define CM_H

#include "mad.h"

struct cm;
struct cm_conn;
struct cm_listener;

struct cm_options {
	u64 (*random)(void *arg); /* ids and hashes; cryptographic outside tests */
	void *random_arg;
	/* Communication ids: id_count from id_first on, without 0, at least twice the capacity. */
	u32 id_first, id_count;
	u64 ca_guid;
	/* connections at once; what is over, closed and still kept gives way to what is new */
	u32 capacity;
	u32 incoming;	/* of these at most so many that peers began; 0: three quarters */
	u32 half_open;	/* connections that a peer began and has not completed; 0: a quarter */
	u32 listeners;
};

/*
 * Which way MADs go: the addresses of their packets. A connection takes MADs with these addresses
 * alone.
 */
struct cm_path {
	struct gid local, remote;
	u32 interface; /* the owner's name for it; compared, not understood */
	u32 flow_label;
	u8 traffic_class, hop_limit, sl;
	u8 life; /* of a packet, 4.096 us x 2^life: part of the time-outs */
};

enum cm_state {
	CM_IDLE,	/* nothing goes on; waits for cm_close() */
	CM_REQ_SENT,	/* active side, waits for the REP */
	CM_REP_RCVD,	/* active side, waits for cm_ready() */
	CM_REQ_RCVD,	/* passive side, waits for cm_accept() or cm_reject() */
	CM_REP_SENT,	/* passive side, waits for the RTU */
	CM_ESTABLISHED,
	CM_DREQ_SENT,	/* waits for the DREP */
	CM_DREQ_RCVD,	/* waits for cm_disconnect() */
	CM_TIMEWAIT,	/* disconnected; late packets may still be under way */
	CM_REFUSED,	/* over: the REJ or SIDR_REP is repeated if it was lost */
	CM_SIDR_SENT,	/* waits for the SIDR_REP */
	CM_SIDR_RCVD,	/* waits for cm_sidr_reply() */
	CM_STATE_END
};

enum cm_event_kind {
	CM_EVENT_REQUEST,	/* mad.req: a REQ; conn is new, context the listener's */
	CM_EVENT_REPLY,		/* mad.rep: the REP; call cm_ready() or cm_reject() */
	CM_EVENT_ESTABLISHED,	/* passive side; mad: the RTU, or kind 0 after cm_establish() */
	CM_EVENT_DELAYED,	/* mad.mra: the peer needs longer */
	CM_EVENT_REJECTED,	/* mad.rej */
	CM_EVENT_UNREACHABLE,	/* no answer to REQ, REP or SIDR_REQ (mad.kind says which) */
	CM_EVENT_DISCONNECT,	/* mad.dreq: the peer disconnects; call cm_disconnect() */
	/* mad: the DREP, or the peer's DREQ that crossed ours; kind 0: nobody answered */
	CM_EVENT_DISCONNECTED,
	CM_EVENT_TIMEWAIT_EXIT, /* the QP may be used again */
	CM_EVENT_SIDR_REQUEST,	/* mad.sidr_req; conn is new, context the listener's */
	CM_EVENT_SIDR_REPLY,	/* mad.sidr_rep */
};

struct cm_event {
	enum cm_event_kind kind;
	struct cm_conn *conn;
	struct cm_listener *listener; /* of REQUEST and SIDR_REQUEST, else NULL */
	void *context;
	struct cm_path path;
	struct cm_ip_header ip; /* of REQUEST and SIDR_REQUEST, of services that have one */
	/* What brought it. Of a REQ and SIDR_REQ with an IP header data begins behind that. */
	struct cm_mad mad;
};

/* A MAD to be sent from QP1 to QP1. */
struct cm_send {
	struct cm_path path;
	u8 mad[CM_MAD_BYTES];
};

struct cm_stats {
	u64 received[CM_KIND_END]; /* whole MADs, by kind */
	u64 dropped[CM_DROP_END];
	u64 sent[CM_KIND_END];
	u64 repeated;	 /* of those sent: after a time-out */
	u64 unsent;	 /* refusals that found no room to be sent */
	u64 gave_up;	 /* requests without an answer */
	u64 made_room;	 /* connections that were over and gave way to new ones */
	u32 in_use;	 /* connections, each with its id */
	u32 closed;	 /* of these: closed by the owner, kept for what the peer may repeat */
	u32 incoming;	 /* of these: begun by a peer */
	u32 half_open;	 /* of these: not completed */
	u32 peers;	 /* addresses that have some of these */
};

/* Returns 0, -EINVAL or -ENOMEM. */
int cm_create(const struct cm_options *options, struct cm **out);
/* Says nothing to anybody: what is to be said, cm_close() said. */
void cm_destroy(struct cm *cm);

/* ---- listeners ---- */

enum { CM_IPV4 = 1, CM_IPV6 = 2 };

struct cm_service {
	u64 id;
	/*
	 * The address that must be asked for, all 0 for any of the families (CM_IPV4, CM_IPV6). One
	 * that names the address comes before one of one family, and that before one of both.
	 */
	struct gid address;
	u8 families;
	u32 backlog; /* requests that wait for cm_take() at most; 0: as many as may come in */
	void *context;
};

/* Also -EADDRINUSE: that service, address and families are listened to. */
int cm_listen(struct cm *cm, const struct cm_service *service, struct cm_listener **out);
/* Requests whose events nobody has taken yet are rejected; the others stay the owner's. */
void cm_unlisten(struct cm *cm, struct cm_listener *l, u64 now_ns);

/*
 * The user has seen this request, which makes room in the backlog. cm_accept(), cm_reject(),
 * cm_sidr_reply() and cm_close() do the same.
 */
void cm_take(struct cm *cm, struct cm_conn *conn);

/* ---- connections ---- */

/*
 * Sends a REQ and repeats it req->max_retries times, each 2 x life of the path + what
 * req->remote_response_timeout says after the one before. Of *req the CM itself sets ca_guid and
 * the primary path but for its ack_timeout. For an IP service data begins with the header
 * (cm_ip_header_put()).
 */
int cm_connect(struct cm *cm, const struct cm_path *path, const struct cm_req *req,
	       const void *data, u32 len, void *context, u64 now_ns, struct cm_conn **out);

/*
 * In CM_REQ_SENT, CM_SIDR_SENT: a peer where nobody listens is asked again, so many times at most,
 * 2 ms after its refusal, then 4, 8 and so on; the user hears of the last refusal alone. A server
 * that begins to listen a moment late is found.
 */
void cm_ask_again(struct cm_conn *conn, u8 times);
/* In CM_REQ_RCVD. Of *rep the CM itself sets ca_guid and failover. */
int cm_accept(struct cm *cm, struct cm_conn *conn, const struct cm_rep *rep, const void *data,
	      u32 len, u64 now_ns);
/* In CM_REP_RCVD: sends the RTU. */
int cm_ready(struct cm *cm, struct cm_conn *conn, const void *data, u32 len, u64 now_ns);
/* In CM_REQ_RCVD, CM_REP_RCVD, CM_REP_SENT. */
int cm_reject(struct cm *cm, struct cm_conn *conn, const struct cm_rej *rej, const void *data,
	      u32 len, u64 now_ns);
/*
 * In CM_REQ_RCVD, CM_REP_RCVD: sends a MRA, the peer gives 4.096 us x 2^service_timeout more. It is
 * sent again for each REQ or REP that comes again.
 */
int cm_delay(struct cm *cm, struct cm_conn *conn, u8 service_timeout, const void *data, u32 len,
	     u64 now_ns);
/* The same, but for the first MRA: nothing is sent before the peer repeats itself. */
int cm_prepare_delay(struct cm *cm, struct cm_conn *conn, u8 service_timeout);
/* In CM_REP_SENT: a packet has come over the connection, so the RTU was on its way. */
int cm_establish(struct cm *cm, struct cm_conn *conn, u64 now_ns);
/* In CM_ESTABLISHED: sends a DREQ. In CM_DREQ_RCVD: sends the DREP. */
int cm_disconnect(struct cm *cm, struct cm_conn *conn, const void *data, u32 len, u64 now_ns);

/* ---- service id resolution, for UD ---- */

/* Sends a SIDR_REQ, as cm_connect() a REQ, with these time-outs. */
struct cm_times {
	u8 response_timeout, max_retries;
};
int cm_sidr_request(struct cm *cm, const struct cm_path *path, const struct cm_sidr_req *req,
		    const struct cm_times *times, const void *data, u32 len, void *context,
		    u64 now_ns, struct cm_conn **out);
/* In CM_SIDR_RCVD. Of *rep the CM itself sets service_id. */
int cm_sidr_reply(struct cm *cm, struct cm_conn *conn, const struct cm_sidr_rep *rep,
		  const void *data, u32 len, u64 now_ns);

/*
 * The owner is done with it, in whatever state: the peer is told what that state asks for, no event
 * comes for it any more, and the pointer is void.
 */
void cm_close(struct cm *cm, struct cm_conn *conn, u64 now_ns);

enum cm_state cm_conn_state(const struct cm_conn *conn);
u32 cm_conn_id(const struct cm_conn *conn);
/* The time that the QP is to rest in CM_TIMEWAIT. */
u64 cm_conn_timewait_ns(const struct cm_conn *conn);
void cm_conn_set_context(struct cm_conn *conn, void *context);

/* ---- MADs, time, events ---- */

/*
 * A MAD came in, over a path whose local and remote GIDs and interface are those of its packet (the
 * rest goes into an answer). Returns CM_DROP_none if it was used, else the reason, which is
 * counted.
 */
enum cm_drop cm_input(struct cm *cm, const struct cm_path *path, const void *mad, u32 len,
		      u64 now_ns);
/* The next MAD to be sent; false: none. */
bool cm_output(struct cm *cm, struct cm_send *send);

/* When cm_expire() is to be called; NSEC_NEVER: not at all. */
u64 cm_deadline_ns(const struct cm *cm);
void cm_expire(struct cm *cm, u64 now_ns);

bool cm_next_event(struct cm *cm, struct cm_event *event);

const struct cm_stats *cm_stats(const struct cm *cm);

/* ---- for whoever shares QP1 out among several CMs: no state ---- */

enum cm_names {
	CM_NAMES_ID,	  /* the CM in whose range id lies */
	CM_NAMES_SERVICE, /* the CM that listens there, or that has begun with that REQ before */
	CM_NAMES_PEER,	  /* no id of its own: any CM may know the peer's (REJ for a time-out) */
};
enum cm_names cm_mad_names(const struct cm_mad *m, u32 *id, u64 *service_id);

/*
 * The answer to a MAD that is nobody's, into reply: REJ to a REQ and REP, DREP to a DREQ, APR to a
 * LAP, SIDR_REP to a SIDR_REQ. False: none is due.
 */
bool cm_refuse(const struct cm_mad *m, struct cm_mad *reply);

#endif
