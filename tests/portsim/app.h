/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The application: threads that post, poll, arm and sleep, each on its own QPs. The work of the
 * verbs between an application and a port (the queue of a channel's events, the loop of
 * ibv_get_cq_event(3)) is done here, in the same order as in user/verbs/events.c and cq.c.
 *
 * Each message is counted, and its number determines its bytes: a message that is lost, repeated or
 * has another's bytes is noticed.
 */
#ifndef PORTSIM_APP_H
#define PORTSIM_APP_H

#include <pthread.h>

#include "made.h"

#define APP_PD		  1
#define APP_MESSAGE_MAX	  6000u
#define APP_RECEIVES	  16u
#define APP_CQS		  8u
#define APP_ENDS	  6u

struct app_thread;

struct app_channel {
	struct port_channel *pc;
	pthread_mutex_t lock;
	struct app_cq *head, **tail; /* CQs with events */
	bool raised;
	u32 extras; /* events without a completion that were provoked */
	u32 extra_events;
};

struct app_cq {
	struct cq cq;
	struct port *port;
	u32 port_number, vector;
	struct app_channel *channel;
	struct app_thread *thread;
	struct app_cq *event_next;
	u32 events_pending, events, armings;
	bool outstanding; /* armed, and no event has been taken since */
	u32 popped;	  /* completions */
	u32 armed_at;	  /* completions pushed at the last arming */
	u32 owed;	  /* armings followed by a push and a poll: their events */
};

/* One end of a connection. */
struct app_end {
	struct port *port;
	u32 port_number;
	struct qp *qp;
	struct app_cq *send, *recv;
	struct app_end *peer;
	struct app_thread *thread;
	struct mr *mr;
	u8 *bytes;  /* APP_RECEIVES receive buffers, one to send from, one for WRITEs and READs */
	u32 to_send, posted, completed;	    /* requests */
	u32 to_receive, receives, received; /* messages that take a receive */
	u32 told;	/* messages of ours that take a receive of the peer's, posted */
	u32 window;
};

enum app_mode {
	APP_POLL,     /* never sleeps on a channel */
	APP_EVENT,    /* sleeps in ibv_get_cq_event() */
	APP_OWN_LOOP, /* sleeps on the channel's descriptor, and does not block in the library */
	APP_MIXED,
	APP_MODES
};

struct app_thread {
	const char *name;
	enum app_mode mode;
	struct actor *actor;
	struct app_channel *channel; /* NULL: polls only */
	struct app_cq *cq[APP_CQS];
	u32 num_cqs;
	struct app_end *end[APP_ENDS];
	u32 num_ends;
	u64 compute_max_ns; /* now and then it does something else */
	bool waiting;	    /* in ibv_get_cq_event(), or on the descriptor */
	bool done;
	u32 idle;	    /* rounds in which it found nothing to do */
};

/* The event handler, to be set before the first port. */
void app_begin(void);

struct app_channel *app_channel_new(void);
void app_channel_free(struct app_channel *ch);
/* Makes a CQ on the thread's channel, if any. */
struct app_cq *app_cq_new(struct app_thread *t, u32 port, u32 vector);
void app_cq_free(struct app_cq *cq);

struct app_connect {
	u32 port[2];
	struct app_thread *thread[2];
	struct app_cq *send[2], *recv[2];
	u32 requests[2]; /* from each side */
	u32 window;
	u32 path_mtu;
	u8 timeout;
};
/* Two QPs, connected; ends[2] are given to the threads. Requests of each end are drawn. */
void app_connect(const struct app_connect *c, struct app_end *ends[2]);
void app_end_free(struct app_end *e);

/* What a thread does, until all its ends are done. */
void app_thread_main(void *thread);

/* Single steps, for a scripted thread. Each returns true if it did anything. */
bool app_post_receives(struct app_end *e);
/* A list of one or more. */
bool app_post(struct app_end *e);
bool app_poll(struct app_thread *t);
void app_arm(struct app_cq *cq);
/* ibv_get_cq_event(). NULL if there is none and `block` is false. */
struct app_cq *app_get_event(struct app_channel *ch, bool block);

/* The port of that number: from app_ports_open() to app_ports_close(). */
void app_ports_open(u32 n);
void app_ports_close(void);
struct port *app_port(u32 number);

/* All CQs that are there, for inspect.c. */
void app_each_cq(void (*fn)(struct app_cq *cq, void *arg), void *arg);

#endif
