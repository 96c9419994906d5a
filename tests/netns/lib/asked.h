/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client's end of the conversation with a broker (user/os/ask.h), without the library: for
 * programs that misuse it on purpose.
 */
#ifndef NETNS_ASKED_H
#define NETNS_ASKED_H

#include "../../../user/os/ask.h"

/* A connection to the broker that has proved what this process may do, or -errno. */
int asked_reach(const char *path);
/* The proof alone (user/os/ask.h): its error, -EPIPE when the broker has hung up. */
s32 asked_prove(int sock);
/*
 * Ask one thing and take its answer; its error, or -EPIPE when the broker has hung up. The
 * descriptors that came are in fds, which has room for `room`; their number in *count.
 */
s32 asked(int sock, u32 what, u32 number, int *fds, u32 room, u32 *count);
/* ASK_DRAW: 0 and the number, or the error. */
s32 asked_draw(int sock, u32 *qpn);
/* ASK_HELLO with these bits: dies without a port. Returns how many descriptors came. */
u32 asked_port(int sock, u32 hello, int fds[32]);

#endif
