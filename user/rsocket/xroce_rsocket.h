/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private calls of librspreload.so into our librdmacm.so.1, of the same build. */
#ifndef RSOCKET_XROCE_RSOCKET_H
#define RSOCKET_XROCE_RSOCKET_H

#include <poll.h>
#include <signal.h>

/*
 * Returns a new descriptor that stands for the rsocket in the program, or -1 and errno. The caller
 * owns the descriptor, and calls this once per rsocket. The rsocket's own descriptor is replaced.
 */
int xroce_rsocket_stand_in(int socket);
/*
 * From now on the kernel's poll state of the stand-in follows the rsocket, until rclose(). Returns
 * 0, or -1 and errno. A repeated call changes nothing.
 */
int xroce_rsocket_watch(int socket);
/*
 * rpoll() that sleeps with this signal mask, set by the kernel together with the sleep; NULL: the
 * thread's own. A pending signal of the mask does not end a call that does not sleep.
 */
int xroce_rsocket_ppoll(struct pollfd *fds, nfds_t nfds, int timeout, const sigset_t *mask);
/* Returns the readable bytes of a stream or the length of the next datagram, or -1 and errno. */
int xroce_rsocket_unread(int socket);

#endif
