/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process that owns an interface alone admits others. It listens at the broker's path (the door).
 * When another process (the visitor) asks for a port, it starts a broker, which inherits the
 * socket, the interface's name and the bpf_link, and becomes the broker's first client. It keeps
 * its program, its sockets and its ways out: the broker's program calls its program for packets to
 * its QPs. New are a TAP device for frames to other processes, and an AF_XDP socket for frames from
 * them, on the hairpin: a TAP device of the broker.
 *
 * When the broker ends, for any reason, the process puts its own program back and owns the
 * interface alone again. Both changes of the program are atomic: no packet is lost.
 *
 * The steps are here, their order and locks in port/share.c. None is on the data path.
 */
#ifndef ATTACH_FIRST_H
#define ATTACH_FIRST_H

#include "../os/netdev.h"
#include "../run/shard_io.h"
#include "broker_socket.h"

struct attachment;

struct first {
	struct broker_socket door; /* fd -1: no other process is admitted */
	int alone_fd;	  /* declares that to others (netdev_say_alone()); -1: not */
	bool door_is_lent; /* a broker has a copy of the door, or may have */
	u32 client;	  /* our client number at the broker */
	/* descriptors from the broker; -1: none */
	int tap_fd, clients_fd, mux_fd;
	int hairpin_fd;	  /* from the first broker, and kept for later ones */
	struct umem umem;
	struct xsk_set local; /* the socket on the hairpin, also kept */
	/* the broker draws QP numbers; guarded by port.numbers */
	bool joined;
};

void first_init(struct attachment *m);
/* Listens, if others may be admitted. If that fails, the process stays alone. */
void first_listen(const struct netdev *dev, struct attachment *m);
/* Admits no others: a broker cannot take over the link of the program, or cannot be started. */
void first_forbid(struct attachment *m);
/* Returns the door, or after first_join() the connection to the broker; -1: none. */
int first_fd(const struct attachment *m);

/*
 * Accepts a connection at the door. Returns it if it asks for a port. Otherwise returns -EAGAIN,
 * after it has answered a question for P_Keys and closed the connection.
 */
int first_answer(struct attachment *m);

/* Answers the visitor's question with -EBUSY. */
void first_refuse(int visitor_fd);

/*
 * Starts the broker for that visitor, joins it, and opens the socket for frames of other processes.
 * Returns 0; or -errno with the failed step in *step (NULL: already reported), and the caller then
 * calls first_leave().
 */
int first_join(const struct netdev *dev, struct attachment *m, int visitor_fd, const char **step);
/* Claims all QP numbers at the broker, which draws new ones from now on. Returns 0 or -errno. */
int first_tell_numbers(struct attachment *m);
/* Puts the broker's program onto the interface in place of ours. Returns 0 or -errno. */
int first_change_program(struct attachment *m);
/* Has the broker admit others, after first_change_program(). Returns 0 or -errno. */
int first_open(struct attachment *m);
/* Puts our program back, as the broker's drops packets to QPs that the broker does not know. */
void first_put_program_back(struct attachment *m);
/* Does the same, and QP numbers are drawn by this process again. */
void first_put_back(struct attachment *m);
/* Closes the broker's descriptors and connection: alone again. After first_put_back(). */
void first_leave(struct attachment *m);

/*
 * For the end of the port. first_detach() closes the door, and a broker that continues without us
 * passes no more packets; first_close() closes the rest.
 */
void first_detach(struct attachment *m);
void first_close(struct attachment *m);
/* In a forked child: closes its copy of the door. */
void first_abandon(struct attachment *m);

#endif
