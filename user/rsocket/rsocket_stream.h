/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A stream: an rsocket of SOCK_STREAM, on an RC connection of rdma_cm.
 *
 * Its state follows the events of the connection, which one thread of the process takes
 * (rsocket_connect.c), and the messages of the peer, which whoever calls takes from the completion
 * queue. What it holds besides its id (queue pair, buffers) is made once the route is known.
 */
#ifndef RSOCKET_STREAM_H
#define RSOCKET_STREAM_H

#include "rsocket_flow.h"
#include "rsocket_object.h"

enum stream_state {
	STREAM_NEW,	  /* may be bound */
	STREAM_LISTENING,
	STREAM_ADDRESS,	  /* rconnect(): its address is resolved */
	STREAM_ROUTE,	  /* its route */
	STREAM_REQUESTED, /* the REQ was sent */
	STREAM_ASKED,	  /* a REQ came; not answered yet */
	STREAM_ANSWERED,  /* answered; not established yet */
	STREAM_CONNECTED,
	STREAM_FAILED,	  /* never connected */
	STREAM_ENDED,	  /* no more messages; what was received can be read */
};

struct stream_queue {
	struct stream *first, **end;
	u32 count;
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
	bool reads, writes; /* CONNECTED: neither we nor the peer ended that direction */
	bool shut_write;    /* we did */
	bool peer_ended;    /* the peer sends no more */
	bool told;	    /* of a rconnect() that did not wait: its end */
	u32 tries;	    /* to resolve */
	struct sockaddr_storage peer, bound;
	void *route; /* RDMA_ROUTE */
	socklen_t route_bytes;
	s64 keepalive_at, keepalive_ns; /* of the thread that sends them */
	struct stream *keepalive_next;

	struct flow flow;
	struct wire_conn asked;
	struct rdma_conn_param asked_param;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed;
	u32 requests;	     /* the QP's places for messages with a credit */
	u32 inlined;	     /* that a message may have */
	u8 *receive, *send;
	void *list;	     /* WIRE_SLOTS entries and the table */
	size_t receive_bytes, send_bytes, list_bytes;
	struct ibv_mr *receive_mr, *send_mr, *list_mr;

	/* the peer's buffers, as its messages said; ours that the peer may write */
	struct wire_iomap *table;
	u32 table_size;
	u32 peer_table_size;
	struct mapping *mapped, *unsent;
	bool *peer_used; /* entries of the peer's table */

	/* a listener, under its rs.lock */
	u32 backlog;
	bool listen_shut;
	struct stream_queue waiting, answered, ready;
	/* one of those that wait, under the listener's rs.lock */
	struct stream *listener, *next;
	struct stream_queue *queue;
};

static inline struct stream *stream_of(struct rsocket *rs)
{
	return container_of(rs, struct stream, rs);
}

static inline bool stream_is_opening(const struct stream *s)
{
	return s->state >= STREAM_ADDRESS && s->state <= STREAM_ANSWERED;
}

/* ---- rsocket_stream.c; under the lock unless said ---- */

struct stream *stream_alloc(int domain);
/* Queue pair and buffers, for an id that has a device. 0 or -errno. */
int stream_make(struct stream *s);
void stream_tell(const struct stream *s, u8 bytes[WIRE_CONN_BYTES]);
/* The peer said this: both can send from now on. */
void stream_begin(struct stream *s, const struct wire_conn *peer);
/* What stream_make() made goes. */
void stream_unmake(struct stream *s);
/* No more messages. error: what the next call is told, 0: it is told of the end. */
void stream_finish(struct stream *s, int error);
/* The connection did not come to be. error: positive. */
void stream_fail(struct stream *s, int error);

bool stream_progress(struct stream *s);
int stream_arm(struct stream *s);
void stream_disarm(struct stream *s);
short stream_events(struct stream *s, short wanted);
/* Not under the lock: nobody else has it. */
void stream_destroy(struct stream *s);
int stream_shutdown(struct stream *s, int how);
/* Not under the lock: what rclose() does before the last reference goes. */
void stream_close(struct stream *s);
bool stream_post(struct stream *s, struct ibv_send_wr *wr);

/* What a call tells that can do nothing: the error of the connection, once, or `otherwise`. */
int stream_error(struct stream *s, int otherwise);

enum { STREAM_SEND, STREAM_CONTROL, STREAM_GOODBYE, STREAM_RECEIVE };
static inline u64 stream_wr_id(u32 kind, u32 ring_bytes)
{
	return (u64)kind << 32 | ring_bytes;
}

/* ---- rsocket_connect.c; not under the lock ---- */

/* An id whose events the thread takes. 0 or -errno. */
int connect_id(struct stream *s);
int connect_start(struct stream *s, const struct sockaddr *address, socklen_t bytes);
/* SO_KEEPALIVE and TCP_KEEPIDLE; under the lock of s. */
void connect_keepalive(struct stream *s, bool on);

/* ---- rsocket_listen.c; not under the lock ---- */

int listen_start(struct stream *s, int backlog);
int listen_accept(struct stream *s, struct stream **accepted);
/* A REQ, before its event is acknowledged. After that its id is to be destroyed if the context is
 * NULL, and the stream that is returned, if any, is to be put. */
struct stream *listen_asked(struct stream *s, struct rdma_cm_event *e);
/* Events of a connection that came: true: it is nobody's, and goes when they are acknowledged. */
bool listen_established(struct stream *s);
bool listen_failed(struct stream *s);
/* The listener's device has gone: raccept() fails with ENODEV, then with EINVAL. Under its lock. */
void listen_device_gone(struct stream *l);
void listen_end(struct stream *s);

/* ---- rsocket_transfer.c; not under the lock ---- */

ssize_t stream_send(struct stream *s, const struct iovec *iov, int n, int flags);
ssize_t stream_receive(struct stream *s, const struct iovec *iov, int n, int flags);
/* Under both locks: waits until the next message may have at least one byte. 0 or -errno. */
int stream_wait_room(struct stream *s, s64 deadline);

/* ---- rsocket_iomap.c; under the lock, and those that send under sending as well ---- */

int iomap_send(struct stream *s, s64 deadline);
/* The peer wrote an entry. */
bool iomap_changed(struct stream *s, u32 index);
void iomap_free(struct stream *s);
/* *offset: where the peer finds the buffer; -1 becomes its address. Returns 0 or -errno. */
int iomap_add(struct stream *s, void *buf, size_t n, int prot, off_t *offset);
int iomap_remove(struct stream *s, void *buf, size_t n);
/* Not under the lock. */
ssize_t iomap_write(struct stream *s, const u8 *buf, size_t n, u64 offset, int flags);

#endif
