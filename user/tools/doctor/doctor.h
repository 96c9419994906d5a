/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the parts of `xroce doctor` report findings, and the state that they share. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "../cli.h"
#include "../json.h"

enum level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL };

struct doctor {
	u32 failures;
	struct json *json;  /* NULL: print lines */
	const char *iface;  /* being checked; NULL: the host */
	bool brokered;	  /* an interface being checked has a broker for this user */
	bool may_bpf;	  /* capabilities of the first user namespace, and bpf(2) is not refused */
	bool may_use_udp; /* a port may be made of UDP sockets */
	bool multibuffer; /* AF_XDP supports frames of several buffers */
};

/*
 * Prints one line: "ok|warn|FAIL  what: finding -> remedy". fmt and its arguments give the finding,
 * as for printf(3). remedy may be NULL. Counts failures.
 */
void finding(struct doctor *d, enum level level, const char *what, const char *remedy,
	     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* doctor_iface.c: one interface. */
bool doctor_has_broker(const struct netdev *dev); /* accepts this user */
void doctor_iface(struct doctor *d, const struct netdev *dev);

#endif
