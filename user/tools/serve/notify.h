/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SERVE_NOTIFY_H
#define SERVE_NOTIFY_H

/* Tells systemd, as sd_notify(3) has it; nothing where it does not ask. */
void notify_systemd(const char *state);

#endif
