/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CLIENT_PROVE_H
#define CLIENT_PROVE_H

#include "../os/ask.h"

/*
 * Opens a socket that proves the calling thread's capabilities (os/ask.h), and sets *port to its
 * port. Returns the descriptor, which the caller closes after the broker's answer, or -errno. A
 * missing capability is no error.
 */
int prove_open(const struct ask_challenge *challenge, u32 *port);

#endif
