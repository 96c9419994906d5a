/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SERVE_NOTIFY_H
#define SERVE_NOTIFY_H

/* Sends state to systemd as sd_notify(3); does nothing without $NOTIFY_SOCKET. */
void notify_systemd(const char *state);

#endif
