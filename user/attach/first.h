/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that has an interface alone lets others in. It listens where a broker would. When the
 * first comes and asks for a port, it starts a broker, which inherits the socket, the interface's
 * name and the bpf_link, and becomes that one's first client. It keeps its own program, its
 * sockets and its ways out: the broker's program calls its program for what is to its QPs. What is
 * new is a device that frames to other processes leave by, and a socket by which theirs come.
 *
 * When the broker ends, however it ends, the process puts its own program back and has the
 * interface alone again. The change of programs is atomic, both ways: no packet is lost.
 *
 * port/share.c has the order of it and the locks; here are its steps. None is on the data path.
 */
#ifndef ATTACH_FIRST_H
#define ATTACH_FIRST_H

#include "../os/netdev.h"
#include "../run/shard_io.h"
#include "broker_socket.h"

struct attachment;

struct first {
	struct broker_socket door; /* fd -1: nobody is let in, */
	int alone_fd;	  /* and this says so to others (netdev_say_alone()) */
	bool door_is_lent; /* a broker has a copy, or may have */
	u32 client;	  /* our number with the broker */
	/* what it gave; -1: there is none */
	int tap_fd, clients_fd, mux_fd;
	int hairpin_fd;	  /* of the first broker, and kept for those that follow */
	struct umem umem;
	struct xsk_set local; /* the socket on the hairpin, kept as well */
	/* numbers are the broker's to give; under the lock of the port's numbers */
	bool joined;
};

void first_init(struct attachment *m);
/*
 * Listen, if others may be let in. It is no error if that cannot be: then the process stays alone.
 */
void first_listen(const struct netdev *dev, struct attachment *m);
/* The program is not held by a link that a broker could take over, or none can be started. */
void first_forbid(struct attachment *m);
/* Where others knock, or, when one has been let in, the connection to the broker. -1: none. */
int first_fd(const struct attachment *m);

/*
 * Somebody knocks. Returns a connection on which a port has been asked for, or -EAGAIN: there is
 * none, and whoever was there wanted something else.
 */
int first_answer(struct attachment *m);

/* It is told that the interface is in use, and no more. */
void first_refuse(int visitor_fd);

/*
 * Starts the broker, for that visitor, and joins it; opens the socket for frames of other
 * processes. Returns 0, or -errno and the step that failed, NULL: it has been said; then comes
 * first_leave().
 */
int first_join(const struct netdev *dev, struct attachment *m, int visitor_fd, const char **step);
/* All numbers that are steered are told to the broker, which gives new ones from here on. */
int first_tell_numbers(struct attachment *m);
/* The broker's program comes to the interface in place of our own; */
int first_change_program(struct attachment *m);
/* and others are let in. */
int first_open(struct attachment *m);
/* Our own program comes back: the broker's knows no number that it has not given. */
void first_put_program_back(struct attachment *m);
/* It does, and the numbers are ours. */
void first_put_back(struct attachment *m);
/* What the broker gave is closed: alone again, and listening. After first_put_back(). */
void first_leave(struct attachment *m);

/*
 * With the port's end. Packets come no more, of a broker that goes on without us; or nobody comes
 * any more.
 */
void first_detach(struct attachment *m);
void first_close(struct attachment *m);
/* In a forked child. */
void first_abandon(struct attachment *m);

#endif
