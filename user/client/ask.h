/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client's side of the conversation with an interface's broker (os/ask.h): one question at a
 * time. A silence of ASK_MAX_NS or a malformed answer ends the conversation, as the broker's death
 * does: the descriptor reports a hang-up (POLLRDHUP), and further questions fail.
 */
#ifndef CLIENT_ASK_H
#define CLIENT_ASK_H

#include <pthread.h>

#include "../os/ask.h"
#include "../os/clock.h"
#include "../os/fd_id.h"

/*
 * The longest silence. A broker handles one question at a time. On a busy machine the kernel takes
 * seconds to verify its programs, or to make a device while network namespaces are destroyed, and
 * all clients wait; then the broker tells them that it works (-EINPROGRESS). A client that stops
 * waiting loses all its QPs.
 */
#define ASK_MAX_NS (20 * NSEC_PER_SEC)

struct asker {
	int fd;		      /* -1: no broker, or a forked child */
	struct fd_id id;      /* of fd: the program may have closed it */
	u64 max_ns;	      /* the longest silence of the broker: by default ASK_MAX_NS */
	bool has_proved; /* guarded by lock: the proof (os/ask.h) was accepted */
	/* set by ask_list(): clients of other users are not listed */
	bool withholds;
	pthread_mutex_t lock; /* held from a question to its answer */
};

/* Returns whether there is a conversation, whose descriptor the program has not closed. */
static inline bool ask_is_whole(const struct asker *a)
{
	return a->fd >= 0 && fd_id_is(a->fd, a->id);
}

/* Initialises an asker without a conversation. */
void ask_init(struct asker *a);
/*
 * Connects to an interface's broker. Returns 0; -ENOENT: no broker listens; -EACCES: its socket
 * does not admit this user; -EPERM: it runs neither as root nor as this user; -ETIMEDOUT; -errno.
 */
int ask_connect(struct asker *a, u64 netns, u32 ifindex);
/* Takes fd, which is connected to a broker that this process starts. */
void ask_begin(struct asker *a, int fd);
/* Ends the conversation, if there is one: the broker takes back everything that it gave. */
void ask_close(struct asker *a);
/* In a forked child: closes its copy of the parent's fd, and initialises the lock again. */
void ask_abandon(struct asker *a);

/*
 * The questions, for any thread. ask_hello() comes before all others, as it changes fd. Each
 * returns the broker's answer, 0 or -errno. If the conversation is over, each returns -ETIMEDOUT,
 * -EPROTO (malformed answer), -EPROTONOSUPPORT (another version) or -EPIPE. Returned descriptors
 * are close-on-exec and belong to the caller; an error returns none.
 */
/* how: bits of enum ask_hello. The last descriptors of fds are not set without sockets. */
int ask_hello(struct asker *a, u32 how, struct ask_port *port, int fds[ASK_SOCKETS_FDS]);
/* Returns the descriptor of the TAP device for frames to other processes. */
int ask_others(struct asker *a);
/* Sets *qpn to a QP number that no other client has: 24 bits, neither 0 nor 1. */
int ask_draw(struct asker *a, u32 *qpn);
int ask_claim(struct asker *a, u32 qpn);
int ask_release(struct asker *a, u32 qpn);
/* Returns the descriptor of a ring buffer for wake-up records; *slot: its key in xroce_channel. */
int ask_ring(struct asker *a, u32 *slot);

int ask_bind(struct asker *a, const struct ask_service *service);
int ask_unbind(struct asker *a, const struct ask_service *service);

/* Directs packets to a multicast group to this process as well, until ask_detach(). */
int ask_attach(struct asker *a, const struct gid *group);
int ask_detach(struct asker *a, const struct gid *group);

/* Returns once datagrams that a broker with UDP sockets has received are in this process's ring. */
int ask_arrived(struct asker *a);

/* Sends ASK_LEAVE, which has no answer. Does nothing without a conversation. */
void ask_leave(struct asker *a);

/* Gets the P_Key table of the interface, and by what its broker receives; needs no port. */
int ask_kind(struct asker *a, struct ask_kind *kind);
/*
 * The same in a separate conversation. If the broker does not answer within ASK_KIND_NS, the table
 * has only the default P_Key, and udp is 0. Without a broker returns false and leaves *kind
 * unchanged.
 */
#define ASK_KIND_NS (2 * NSEC_PER_SEC)
bool ask_kind_of(u64 netns, u32 ifindex, struct ask_kind *kind);

/*
 * For `xroce list`, `xroce stop` and other observers. Gets the client with the lowest number from
 * `from` on; its number + 1 is the next `from`. The list then has every client that lives from
 * beginning to end of the listing. Also returns -EPROTO for an invalid number.
 */
int ask_list(struct asker *a, u32 from, struct ask_client *client);
int ask_stop(struct asker *a);
/*
 * Gets read-only descriptors of maps of client `number`, beginning with map `first`. Returns how
 * many, up to ASK_FDS; 0 after the last map; or an error as above.
 */
int ask_maps(struct asker *a, u32 number, u32 first, struct ask_client *client, int fds[ASK_FDS]);
/*
 * Sends packets and events of client `number` to a ring buffer, until ask_untrace() for the
 * client's program. Both return the counter of losses: its value at the start and at the end.
 */
int ask_trace(struct asker *a, u32 number, const struct ask_trace *want, struct ask_traced *traced,
	      int fds[ASK_TRACE_FDS]);
int ask_untrace(struct asker *a, u32 prog_id, u64 *lost);
/* Returns the broker's PID; 0: in another PID namespace, or unknown. */
pid_t ask_server(const struct asker *a);

/* Returns whether an error of a question means the end of the conversation, not an answer. */
static inline bool ask_is_over(int err)
{
	return err == -ETIMEDOUT || err == -EPROTO || err == -EPROTONOSUPPORT || err == -EPIPE;
}

#endif
