/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of clients (os/ask.h), read as hostile: any process that may connect sends them. */
#ifndef BROKER_MESSAGE_H
#define BROKER_MESSAGE_H

#include "../os/ask.h"

/*
 * Checks a message of len bytes with msg_flags from recvmsg(). Returns 0, -EPROTONOSUPPORT (another
 * version) or -EBADMSG (malformed, or sent with descriptors).
 */
int message_check(const struct ask *ask, size_t len, int msg_flags);

/*
 * Reads one message without waiting. Returns 1 (*ask is valid), 0 (none now), -ECONNRESET (hung up)
 * or an error of message_check(). No descriptor ever enters this process.
 */
int message_read(int fd, struct ask *ask);

/*
 * Sends an answer with its num_fds descriptors, without waiting. Returns 0 or -errno: -EAGAIN if
 * the client does not read.
 */
int message_answer(int fd, const struct ask_answer *answer, const int *fds);

/* Returns whether there are answers that the client has not read. */
bool message_is_unread(int fd);

#endif
