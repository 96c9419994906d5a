/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiting calls that a signal may end, as read(2) has it. */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>

/* A handler has ended a wait in poll(2): would read(2) go on waiting? */
bool signals_restart(void);

#endif
