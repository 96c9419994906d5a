/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process's end of the conversation with the broker of an interface (os/ask.h): one question
 * at a time, each answered within ASK_MAX_NS. An answer that is late or not as it must be ends the
 * conversation, as the broker's death does: whoever watches the descriptor finds it hung up, and
 * all further questions fail.
 */
#ifndef ATTACH_ASK_H
#define ATTACH_ASK_H

#include <pthread.h>

#include "../os/ask.h"
#include "../os/clock.h"

/*
 * A broker does one thing at a time. On a busy machine the kernel needs seconds to verify its
 * programs, or to make a device while network namespaces end, and whoever asks meanwhile waits: one
 * that gives up has lost all its QPs.
 */
#define ASK_MAX_NS (20 * NSEC_PER_SEC)

struct asker {
	int fd;		      /* -1: no broker, or a forked child */
	u64 max_ns;	      /* ASK_MAX_NS */
	/* the broker is not to hear of the end of the conversation before it is closed */
	bool ends_quietly;
	bool has_proved; /* under lock: what this process may do, or it need not (os/ask.h) */
	/* the last ask_list(): clients of other users would not be listed */
	bool withholds;
	pthread_mutex_t lock; /* from a question to its answer */
};

/* No conversation yet. */
void ask_init(struct asker *a);
/*
 * With the broker of an interface. Returns 0; -ENOENT: there is none; -EACCES: not for this user;
 * -EPERM: its socket is neither root's nor this user's; -ETIMEDOUT, -errno.
 */
int ask_connect(struct asker *a, u64 netns, u32 ifindex);
/* The descriptor, connected already to a broker of this process's, is *a's. */
void ask_begin(struct asker *a, int fd);
/* The broker takes back all that it has given. A conversation that has not begun is ignored. */
void ask_close(struct asker *a);
/* In a forked child: the conversation is the parent's, whatever its threads were at. */
void ask_abandon(struct asker *a);

/*
 * The questions, by any thread; ask_hello() before all others, as it changes the descriptor. Each
 * returns what the broker says, 0 or -errno, or, if the conversation ends or has ended, -ETIMEDOUT,
 * -EPROTO (an answer that is none), -EPROTONOSUPPORT (that of another version), -EPIPE. Descriptors
 * are close-on-exec and the caller's; none after an error.
 */
int ask_hello(struct asker *a, struct ask_port *port, int fds[ASK_FDS]);
/* *qpn is a number that nobody else has, of 24 bits, and not 0. */
int ask_draw(struct asker *a, u32 *qpn);
int ask_claim(struct asker *a, u32 qpn);
int ask_release(struct asker *a, u32 qpn);
/* Returns the descriptor of a ring buffer for wake-up records. */
int ask_ring(struct asker *a);

int ask_bind(struct asker *a, const struct ask_service *service);
int ask_unbind(struct asker *a, const struct ask_service *service);

/* Packets to a multicast group come to this process as well; no longer. */
int ask_attach(struct asker *a, const struct gid *group);
int ask_detach(struct asker *a, const struct gid *group);

/* Of the process that had the interface alone. */
int ask_join(struct asker *a, bool native, struct ask_port *port, int fds[ASK_JOIN_FDS]);
int ask_open(struct asker *a);
/* Nothing is answered. A conversation that is over, or has not begun, is ignored. */
void ask_leave(struct asker *a);

/* The P_Key table of the interface, for whoever has no port yet. */
int ask_pkeys(struct asker *a, struct pkey_table *pkeys);
/*
 * The same in a conversation of its own, with a broker or a process that has the interface alone.
 * Where they say nothing within ASK_PKEYS_NS, the table has the default P_Key alone. Returns false
 * if nobody is there: then the table is *pkeys, as it was.
 */
#define ASK_PKEYS_NS (2 * NSEC_PER_SEC)
bool ask_pkeys_of(u64 netns, u32 ifindex, struct pkey_table *pkeys);

/*
 * For `xroce list`, `xroce stop` and what looks into processes. The client of the lowest number
 * from `from` on; the one behind it is asked for by its number + 1, so that the list has each
 * client that is there from beginning to end, whoever comes and goes. Also -EPROTO: a number that
 * is none.
 */
int ask_list(struct asker *a, u32 from, struct ask_client *client);
int ask_stop(struct asker *a);
/*
 * Of the client of that number, descriptors of maps, to be read: the first-th and those behind it.
 * Returns how many came, up to ASK_FDS; 0: there are no more; or as the others.
 */
int ask_maps(struct asker *a, u32 number, u32 first, struct ask_client *client, int fds[ASK_FDS]);
/*
 * Packets and events of the client of that number come to a ring buffer; no longer. Of ASK_UNTRACE
 * *lost is what is said of the whole.
 */
int ask_trace(struct asker *a, u32 number, const struct ask_trace *want, struct ask_traced *traced,
	      int fds[ASK_TRACE_FDS]);
int ask_untrace(struct asker *a, u32 prog_id, u64 *lost);
/* The broker's process; 0: not of this pid namespace, or it cannot be told. */
pid_t ask_server(const struct asker *a);

/* The conversation ended, or the broker said so: which of the two an error of a question is. */
static inline bool ask_is_over(int err)
{
	return err == -ETIMEDOUT || err == -EPROTO || err == -EPROTONOSUPPORT || err == -EPIPE;
}

#endif
