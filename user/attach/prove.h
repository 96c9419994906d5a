/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ATTACH_PROVE_H
#define ATTACH_PROVE_H

#include "../os/ask.h"

/*
 * A socket that proves what the calling thread may do (os/ask.h), to be closed by the caller
 * when the broker has answered; *port is its port. Returns the descriptor or -errno. A capability
 * that the thread does not have is no error.
 */
int prove_open(const struct ask_challenge *challenge, u32 *port);

#endif
