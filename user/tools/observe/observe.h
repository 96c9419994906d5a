/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whatever can be looked into: the ports of this network namespace, that is, each process's program
 * and maps on an interface, as far as this user may see them. Root (CAP_SYS_ADMIN) opens maps by
 * their numbers; others are given those of their own processes by the broker (ASK_MAPS), to be
 * read.
 *
 * A process can write its own maps, so what is read from them is checked where it is used.
 */
#ifndef OBSERVE_H
#define OBSERVE_H

#include <net/if.h>

#include <xroce/abi.h>

#include "../../attach/ask.h"
#include "../../os/netdev.h"

#define OBSERVED_NAME_MAX 16 /* of a map, as the kernel keeps it */
/* What commands give a broker for an answer: some processes that begin at once come first. */
#define OBSERVE_ASK_NS (5 * NSEC_PER_SEC)

struct observed_iface {
	char name[IF_NAMESIZE];
	u32 ifindex;
	u32 mtu;
	bool is_up;
	u32 broker_prog_id; /* 0: it has no broker, or it cannot be seen */
	pid_t broker_pid;   /* 0: none */
	u32 alone_prog_id;  /* the program of the process that was found alone last, */
	pid_t alone_pid;    /* and whose it is */
	bool is_hidden;	    /* somebody has it whose maps this user may not see */
	bool is_silent;	    /* and was asked, and did not answer in time */
	bool asks;	    /* asker is a conversation with its broker */
	bool is_left;	    /* its broker, or the process that had it alone, was killed */
	bool is_partial;    /* its broker lists no clients of other users to this one */
	u64 silent_until_ns; /* its broker is not asked before */
	struct asker *asker; /* stays where it is until observer_end() */
};

enum observed_kind {
	OBSERVED_ALONE,	 /* it has the interface alone, */
	OBSERVED_FIRST,	 /* or had, and receives by its sockets: a client of a broker as well */
	OBSERVED_CLIENT,
	OBSERVED_BROKER, /* what is no client's: its own program and maps; root sees it */
};

struct observed_map {
	char name[OBSERVED_NAME_MAX];
	int fd;
	u32 type, max_entries, key_size, value_size;
};

struct observed {
	struct observed_iface *iface;
	enum observed_kind kind;
	u32 client; /* its number with the broker, if it has one */
	u32 prog_id;
	u32 pid, uid; /* 0 and ~0: cannot be told */
	u32 qps;      /* numbers that the broker gave it */
	u32 services;
	char command[32];
	struct ask_client sent; /* a client's: frames to the wire and to QPs here, refused ones */
	u32 num_maps, room;
	struct observed_map *maps; /* while it is open */
};

struct observer {
	u32 num_ifaces;
	struct observed_iface *ifaces;
	u32 num, room;
	struct observed *ports;
	u64 ask_ns; /* how long a broker may take for an answer; 0: as long as programs wait */
	u64 silent_ns; /* and how long one that took longer is not asked again */
};

/*
 * All interfaces, or the one that dev names (an interface, or its device xroce_NAME). Returns 0,
 * -ENODEV, -EOPNOTSUPP or -errno as netdev_find().
 */
int observer_begin(struct observer *o, const char *dev);
/*
 * Interfaces that have come since, and new names: none that there were moves or goes, but no struct
 * observed_iface stays where it was. Returns as observer_begin().
 */
int observer_follow(struct observer *o, const char *dev);
/*
 * The interfaces that there are now. Where some have come, gone or got another name, all begins
 * anew: the ports are forgotten, and conversations with brokers end. Returns 0, also if dev is
 * gone, which may come back; or -errno.
 */
int observer_renew(struct observer *o, const char *dev);
void observer_end(struct observer *o);
/* The ports that there are now; those of before are forgotten. Returns 0 or -errno. */
int observer_list(struct observer *o);

/*
 * The maps of a port. Returns 0; -EPERM (not for this user); -ENOENT (it has ended); -errno. Then
 * observed_close().
 */
int observed_open(struct observed *p);
void observed_close(struct observed *p);

/*
 * The port's map of that name, of which it may have several: the one behind before, or the first of
 * NULL. NULL: there are no more.
 */
const struct observed_map *observed_map(const struct observed *p, const char *name,
					const struct observed_map *before);
/*
 * Adds the elements of a map of the port, of all CPUs, to so many counters, which are what its
 * values begin with. Returns 0, -ENOENT or -errno.
 */
int observed_sum(const struct observed *p, const char *name, u64 *sum, size_t counters);
/*
 * Calls fn for each element of the port's maps of that name, whose values come cut or filled up
 * with zeros to size bytes: a program of another version may have shorter or longer ones. key is of
 * key_size bytes, of arrays a u32. At most so many of a map as it has entries. Returns how many, or
 * -errno.
 */
typedef void observed_fn(void *arg, const struct observed *p, const void *key, const void *value);
int observed_each(const struct observed *p, const char *name, size_t size, observed_fn *fn,
		  void *arg);
/* The element of an array. Returns 0, -ENOENT or -errno. */
int observed_get(const struct observed *p, const char *name, u32 key, void *value, size_t size);

#endif
