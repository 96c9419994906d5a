/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream: an rsocket of SOCK_STREAM, on an RC connection of rdma_cm.
 *
 * Its state follows the connection's events and the peer's messages. One thread of the process
 * handles the events (rsocket_connect.c); any caller takes messages from the completion queue. The
 * queue pair and buffers are created once the route is known.
 */
#ifndef RSOCKET_STREAM_H
#define RSOCKET_STREAM_H

#include "rsocket_object.h"
#include "rsocket_protocol.h"

enum stream_state {
	STREAM_NEW,	  /* may be bound */
	STREAM_LISTENING,
	STREAM_ADDRESS,	  /* rconnect(): resolving the address */
	STREAM_ROUTE,	  /* resolving the route */
	STREAM_REQUESTED, /* the REQ was sent */
	STREAM_ASKED,	  /* received a REQ, not answered yet */
	STREAM_ANSWERED,  /* answered, not established yet */
	STREAM_CONNECTED,
	STREAM_FAILED,	  /* never connected */
	STREAM_ENDED,	  /* no more messages; received data can be read */
};

struct stream_queue {
	struct stream *first, **end;
	u32 count;
	u16 *numbers; /* by `share` of the streams; NULL: not counted */
};

struct mapping {
	struct mapping *next;
	struct ibv_mr *mr;
	u64 offset;
	int index; /* in the peer's table; -1: local */
};

struct stream {
	struct rsocket rs;
	struct rdma_cm_id *id;

	/* under rs.lock */
	enum stream_state state;
	bool reads, writes; /* CONNECTED: neither side has ended that direction */
	bool shut_write;    /* we ended it */
	bool peer_ended;    /* the peer sends no more */
	bool told;	    /* the result of a non-blocking rconnect() was returned */
	u32 tries;	    /* resolution attempts */
	struct sockaddr_storage peer, bound;
	void *route; /* RDMA_ROUTE */
	socklen_t route_bytes;
	s64 keepalive_at, keepalive_ns; /* for the thread that sends keepalives */
	struct stream *keepalive_next;
	bool announces;		 /* `announced` waits for a free slot of the send queue */
	enum wire_ctrl announced;

	struct stream_credit credit;
	struct wire_conn asked;
	struct rdma_conn_param asked_param;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed;
	u32 requests;	     /* send queue slots for messages with a credit */
	u32 inlined;	     /* inline limit of a message */
	u8 *receive, *send;
	void *list;	     /* WIRE_SLOTS entries and the table */
	size_t receive_bytes, send_bytes, list_bytes;
	struct ibv_mr *receive_mr, *send_mr, *list_mr;

	/* the peer's mapped buffers, from its messages; our buffers that the peer may write */
	struct wire_iomap *table;
	u32 table_size;
	u32 peer_table_size;
	struct mapping *mapped, *unsent;
	bool *peer_used; /* used entries of the peer's table */

	/* of a stream that the thread ends: under the lock of rsocket_close.c */
	struct stream *ending_next;
	bool is_ending, is_renewed; /* is_renewed: entered since its last look */
	s64 began_at, ends_at; /* ns; ends_at: of the last try */
	s64 look_at, look_ns;  /* ns: the next look, and the time between two */

	/* a listener, under its rs.lock */
	u32 backlog;
	bool listen_shut;
	struct stream_queue waiting, answered, ready;
	struct listen_shares *shares; /* NULL before rlisten() */
	/* a listener in the list of those with waiting requests: under the lock of that list */
	bool is_crowded;
	struct stream *crowded_next;
	/* a queued connection, under the listener's rs.lock */
	struct stream *listener, *next;
	struct stream_queue *queue;
	s64 answered_at; /* ns */
	u32 share; /* hash of the peer's address (rsocket_listen.c) */
};

static inline struct stream *stream_of(struct rsocket *rs)
{
	return container_of(rs, struct stream, rs);
}

static inline bool stream_is_opening(const struct stream *s)
{
	return s->state >= STREAM_ADDRESS && s->state <= STREAM_ANSWERED;
}

/* ---- rsocket_stream.c; under the lock unless noted ---- */

struct stream *stream_alloc(int domain);
/* Creates queue pair and buffers, for an id with a device. Returns 0 or -errno. */
int stream_make(struct stream *s);
void stream_tell(const struct stream *s, u8 bytes[WIRE_CONN_BYTES]);
/* Applies the peer's parameters: both can send from now on. */
void stream_begin(struct stream *s, const struct wire_conn *peer);
/* Undoes stream_make(). */
void stream_unmake(struct stream *s);
/* Ends the messages. error: returned by the next call; 0: the next call reports the end. */
void stream_finish(struct stream *s, int error);
/* The connection was not established. error: positive. */
void stream_fail(struct stream *s, int error);

bool stream_progress(struct stream *s);
int stream_arm(struct stream *s);
void stream_disarm(struct stream *s);
short stream_events(struct stream *s, short wanted);
/* Not under the lock: there are no other users. */
void stream_destroy(struct stream *s);
bool stream_post(struct stream *s, struct ibv_send_wr *wr);

/* Returns the connection's error, once, or `otherwise`, for a call that cannot proceed. */
int stream_error(struct stream *s, int otherwise);

enum { STREAM_SEND, STREAM_CONTROL, STREAM_GOODBYE, STREAM_RECEIVE };
static inline u64 stream_wr_id(u32 kind, u32 ring_bytes)
{
	return (u64)kind << 32 | ring_bytes;
}

/* ---- rsocket_close.c ---- */

/* Under the lock. Does not wait. */
int stream_shutdown(struct stream *s, int how);
/*
 * Not under the lock: the work of rclose() before the table's reference is released. Waits for the
 * peer only with SO_LINGER, up to its time.
 */
void stream_close(struct stream *s);
/* Posts an announcement that waits for a slot, if there is one now. Under the lock. */
void stream_announce(struct stream *s);
/*
 * Looks at the streams that end, and releases those that have ended. In the thread of
 * rsocket_connect.c. Returns milliseconds until the next look; -1: none.
 */
int ending_run(void);
/* Whether the thread, the caller, has a reference to the stream until ending_run(). */
bool ending_has(const struct stream *s);
/* Forgets the parent's streams in a forked child. */
void ending_fork(void);

/* ---- rsocket_connect.c; not under the lock ---- */

/* Creates an id with events for the thread. Returns 0 or -errno. */
int connect_id(struct stream *s);
int connect_start(struct stream *s, const struct sockaddr *address, socklen_t bytes);
/* SO_KEEPALIVE and TCP_KEEPIDLE; under the lock of s. */
void connect_keepalive(struct stream *s, bool on);
/* Wakes the thread after a change of what it must do and when. In any context. */
void connect_wake(void);

/* ---- rsocket_listen.c; not under the lock ---- */

int listen_start(struct stream *s, int backlog);
int listen_accept(struct stream *s, struct stream **accepted);
/*
 * Handles a REQ, before its event is acknowledged. After that the caller destroys the id if its
 * context is NULL, and puts the returned stream, if any.
 */
struct stream *listen_asked(struct stream *s, struct rdma_cm_event *e);
/* Handle events of an incoming connection. listen_failed() is true: the caller must put it. */
void listen_established(struct stream *s);
bool listen_failed(struct stream *s);
/* Answers waiting requests of a listener while there is room. Also after listen_failed(). */
void listen_next(struct stream *l);
/* The listener's device is gone: raccept() fails with ENODEV, then with EINVAL. Under its lock. */
void listen_device_gone(struct stream *l);
void listen_end(struct stream *s);
/*
 * Gives up answered connections whose place others wait for, in the thread of rsocket_connect.c.
 * Returns milliseconds until the next look; -1: none.
 */
int listen_run(void);
/* Forgets the parent's listeners in a forked child. */
void listen_fork(void);

/* ---- rsocket_transfer.c; not under the lock ---- */

ssize_t stream_send(struct stream *s, const struct iovec *iov, int n, int flags);
ssize_t stream_receive(struct stream *s, const struct iovec *iov, int n, int flags);

/* ---- rsocket_transfer.c: mapped buffers; under the lock ---- */

/* Copies an entry that the peer wrote; false: no such entry. */
bool iomap_changed(struct stream *s, u32 index);
void iomap_free(struct stream *s);
/* *offset: the peer's offset of the buffer; -1 becomes its address. Returns 0 or -errno. */
int iomap_add(struct stream *s, void *buf, size_t n, int prot, off_t *offset);
int iomap_remove(struct stream *s, void *buf, size_t n);
/* Not under the lock. */
ssize_t iomap_write(struct stream *s, const u8 *buf, size_t n, u64 offset, int flags);

#endif
