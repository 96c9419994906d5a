/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Observable ports of this network namespace: each process's program and maps on an interface, as
 * far as this user may see them. Root (CAP_SYS_ADMIN) opens maps by ID. Other users receive
 * read-only descriptors from the broker, for the maps of their processes (ASK_MAPS).
 *
 * A process can write its own maps, so values read from them are checked where they are used.
 */
#ifndef OBSERVE_H
#define OBSERVE_H

#include <net/if.h>

#include <xroce/abi.h>
#include <xroce/stat.h>
#include <xroce/trace.h>

#include "../../client/ask.h"
#include "../../os/netdev.h"
#include "../counters.h"

#define OBSERVED_NAME_MAX 16 /* bytes of a map name in the kernel */
/* Longest wait of a command for a broker's answer: a broker first serves processes that start. */
#define OBSERVE_ASK_NS (5 * NSEC_PER_SEC)
/* The pause after that before the next question, of commands that ask repeatedly. */
#define OBSERVE_SILENT_NS (5 * NSEC_PER_SEC)

struct observed_iface {
	char name[IF_NAMESIZE];
	u32 ifindex;
	u32 mtu;
	bool is_up;
	u32 broker_prog_id; /* 0: no broker, or not visible */
	pid_t broker_pid;   /* 0: none */
	u32 silent_prog_id; /* program ID of the last process found whose broker was silent */
	pid_t silent_pid;   /* PID of that process; 0: unknown */
	bool is_hidden;	    /* in use by a process whose maps this user may not see */
	bool is_silent;	    /* the broker did not answer in time */
	bool asks;	    /* asker is connected to the broker */
	bool is_left;	    /* the broker or the exclusive process was killed */
	bool is_partial;    /* the broker hides other users' clients from this user */
	u64 silent_until_ns; /* CLOCK_MONOTONIC; the broker is not asked earlier */
	struct asker *asker; /* address stable until observer_end() */
};

enum observed_kind {
	OBSERVED_SILENT, /* its broker does not answer */
	OBSERVED_SOLE,	 /* a client with sockets of its own */
	OBSERVED_CLIENT,
	OBSERVED_BROKER, /* the broker's own program and maps; visible to root */
};

struct observed_map {
	char name[OBSERVED_NAME_MAX];
	u32 id; /* never reused; of a file in memory: its inode */
	int fd;
	const u8 *memory; /* of a process at a broker with UDP sockets; else NULL */
	u32 type, max_entries, key_size, value_size;
};

struct observed {
	struct observed_iface *iface;
	enum observed_kind kind;
	u32 client; /* client number at the broker, if any */
	u32 prog_id;
	u32 pid, uid; /* 0 and ~0: unknown */
	u32 services;
	char command[32];
	struct ask_client sent; /* client's frames to the wire, to local QPs, refused */
	u32 num_maps, room;
	struct observed_map *maps; /* while the port is open */
};

struct observer {
	u32 num_ifaces;
	struct observed_iface *ifaces;
	u32 num, room;
	struct observed *ports;
	u64 ask_ns; /* time limit of a broker's answer; 0: the asker's default */
	u64 silent_ns; /* after a broker exceeded ask_ns, pause before the next question */
};

/* ---- a reading of a port ---- */

/*
 * A queue pair, joined by QPN from two maps: the engine's view (xroce_qp_stat) and XDP's
 * (xroce_qp). The process wrote all of it: the QPN is in bounds, nothing else is trusted.
 */
struct qp_view {
	struct xroce_qp_stat stat; /* qpn 0: an older library without this map */
	struct xroce_qp steer;
	bool has_stat, has_steer;  /* XDP has no entry for a QP in RESET */
	u32 qpn;
};

/* The elements of a map, in its order. An element with PID 0 has no object. */
struct snapshot_list {
	void *elements; /* of size bytes each, beginning with the PID */
	u32 size, num;
	u32 used; /* elements with an object; num: the process may have more objects */
};

enum snapshot_kind { SNAPSHOT_CQ, SNAPSHOT_SRQ, SNAPSHOT_MR, SNAPSHOT_KINDS };

/* The maps of struct sums, in its order. */
enum snapshot_sum { SUM_ENGINE, SUM_RX, SUM_SOCK, SUM_XDP, SUM_REFUSED, SNAPSHOT_SUMS };

/* The parts of a reading. */
#define SNAPSHOT_CQS	  (1u << SNAPSHOT_CQ)
#define SNAPSHOT_SRQS	  (1u << SNAPSHOT_SRQ)
#define SNAPSHOT_MRS	  (1u << SNAPSHOT_MR)
#define SNAPSHOT_QPS	  (1u << 3)
#define SNAPSHOT_COUNTERS (1u << 4)
#define SNAPSHOT_WAKEUPS  (1u << 5)
#define SNAPSHOT_ENGINE	  (1u << 6)

/* The contents of a port's maps. Unread parts, and maps that the port lacks, are 0. */
struct snapshot {
	struct sums sums;
	u32 has;		  /* bits 1 << enum snapshot_sum: maps that sums was read from */
	/* with SNAPSHOT_WAKEUPS: receive queues whose socket has received frames */
	u32 queues;
	u64 wakeups, unannounced; /* of all completion vectors */
	struct xroce_engine *engine; /* PID and rdma_cm listeners, as the process wrote them */
	u32 num_qps;
	struct qp_view *qps; /* sorted by QPN */
	u32 stats_used, stats_num; /* elements of the map with struct xroce_qp_stat */
	struct snapshot_list lists[SNAPSHOT_KINDS]; /* xroce_cq_stat, _srq_stat, _mr_stat */
};

/* Reads the given parts of an open port. Returns 0, or -ENOMEM; snapshot_end() is due for both. */
int snapshot_read(struct snapshot *s, const struct observed *p, u32 parts);
/*
 * Reads the given parts of our program prog_id, which needs CAP_SYS_ADMIN. Returns as
 * observed_open(), or -ENOMEM; snapshot_end() is due for all results.
 */
int snapshot_read_program(struct snapshot *s, u32 prog_id, u32 parts);
/*
 * The same of a client of the asker's broker. A client of a broker with UDP sockets has no program:
 * the broker passes its maps.
 */
int snapshot_read_client(struct snapshot *s, struct asker *asker, const struct ask_client *c,
			 u32 parts);
void snapshot_end(struct snapshot *s);
/* Returns whether the map of a part of s->sums was readable. */
static inline bool snapshot_has(const struct snapshot *s, enum snapshot_sum sum)
{
	return s->has & 1u << sum;
}
/* Closes the maps of an open port that a reading of the given parts does not need. */
void snapshot_keep(struct observed *p, u32 parts);
/* Returns the ID of the port's map of a part of struct sums; 0: none. */
u32 snapshot_sum_id(const struct observed *p, enum snapshot_sum sum);
/* Sets the part of s that is read from one map to 0. */
void snapshot_sum_clear(struct sums *s, enum snapshot_sum sum);
/* Returns the element with that index, or NULL if it has no object. */
const void *snapshot_object(const struct snapshot *s, enum snapshot_kind kind, u32 nth);

/*
 * Sets *lost to the records that tracer `number` has lost, from a map of struct xroce_trace; leaves
 * it as it is if the map cannot be read. number: below XROCE_TRACERS.
 */
void observe_trace_lost(int page_fd, u32 number, u64 *lost);
/*
 * Returns the size of a tracer's ring in bytes, or 0 if fd is none. Sets *is_file if it is a file,
 * whose writer is a process (host/client.h), and not the kernel.
 */
u32 observe_ring_bytes(int fd, bool *is_file);

/* ---- finding ports ---- */

/*
 * Begins with all interfaces, or with dev: an interface, or its device xroce_NAME. Returns 0,
 * -ENODEV, -EOPNOTSUPP or -errno as netdev_find().
 */
int observer_begin(struct observer *o, const char *dev);
/*
 * Adds new interfaces and updates names. Entries keep their index and none is removed, but a struct
 * observed_iface may move in memory. Returns as observer_begin().
 */
int observer_follow(struct observer *o, const char *dev);
/*
 * Updates the list of interfaces. If an interface was added, removed or renamed, the observer
 * restarts: it forgets the ports and closes the connections to brokers. Returns 0, also if dev does
 * not exist now (it may return), or -errno.
 */
int observer_renew(struct observer *o, const char *dev);
void observer_end(struct observer *o);
/* Replaces the list of ports by the current one. Without memory it ends the process. */
void observer_list(struct observer *o);

/*
 * Opens the maps of a port; observed_close() closes them. Returns 0; -EPERM (not for this user);
 * -ENOENT (the process has exited); -errno.
 */
int observed_open(struct observed *p);
void observed_close(struct observed *p);

/*
 * Opens each port of this host whose program is_known() rejects, and calls fn with a reading of the
 * given parts: also of other network namespaces, with an interface named "". Only root sees these.
 * Returns false if this user lacks the privilege.
 */
typedef void observe_fn(void *arg, const struct observed *p, const struct snapshot *s);
bool observe_foreign(bool (*is_known)(void *arg, u32 prog_id), u32 parts, observe_fn *fn,
		     void *arg);

/* ---- the XDP hook of an interface, its driver, and the process that uses it ---- */

struct xdp_hook {
	u32 prog_id;	    /* 0: nothing attached */
	bool native;	    /* attached in the driver; otherwise generic */
	char prog_name[16]; /* "" without the privilege to read it */
	/* bpf_link that holds the program; 0: none, or no privilege to read it */
	u32 link_id;
	bool is_dispatcher; /* libxdp's dispatcher, which calls programs of several owners */
	u32 ours_id;	    /* ID of our program, on the hook or in the dispatcher; 0: none */
	const char *ours_name; /* the name of such programs */
	bool is_broker;	    /* a broker's program, which calls its clients' programs */
	char others[128];   /* the dispatcher's other programs, by name: "a, b", or "" */
};

/* Returns 0 or -errno. */
int observe_hook(u32 ifindex, struct xdp_hook *hook);

struct xdp_driver {
	char name[32]; /* "" if the driver reports none */
	bool native;
	bool zero_copy;
	bool multibuffer;
	bool told; /* by the kernel (6.3 on); otherwise derived from the driver's name */
};

/* Fills *driver with the capabilities of dev's driver. */
void observe_driver(const struct netdev *dev, struct xdp_driver *driver);

/*
 * Finds the process that uses an interface, a broker or an exclusive one. Results as of
 * netdev_holder().
 */
int observe_holder(u32 ifindex, pid_t *pid, char *comm, size_t n);

#endif
