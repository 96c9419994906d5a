/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Messages of clients (os/ask.h), read as hostile: any process that may open the socket sends
 * them.
 */
#ifndef BROKER_MESSAGE_H
#define BROKER_MESSAGE_H

#include "../os/ask.h"

/*
 * Is it an ask, as recvmsg() gave it: len bytes, with those msg_flags? Returns 0, -EPROTONOSUPPORT
 * (of another version) or -EBADMSG (no ask, or descriptors came with it).
 */
int message_check(const struct ask *ask, size_t len, int msg_flags);

/*
 * Takes one message. Returns 1 (*ask is valid), 0 (there is none now), -ECONNRESET (hung up) or
 * what message_check() says; no descriptor has entered this process. Does not wait.
 */
int message_read(int fd, struct ask *ask);

/*
 * Sends the answer, with its num_fds descriptors. Does not wait: returns 0 or -errno, -EAGAIN if
 * the client does not read.
 */
int message_answer(int fd, const struct ask_answer *answer, const int *fds);

/* Has the client answers that it has not read? */
bool message_is_unread(int fd);

#endif
