/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How the parts of `xroce doctor` report, and what they know of each other's findings. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "../cli.h"
#include "../json.h"

enum level { LEVEL_OK, LEVEL_WARN, LEVEL_FAIL };

struct doctor {
	u32 failures;
	struct json *json;  /* NULL: lines */
	const char *iface;  /* that it looks at; NULL: the host */
	bool brokered;	  /* an interface that is looked at has a broker for this user */
	bool may_bpf;	  /* CAP_BPF and CAP_NET_ADMIN where they count: BPF can be asked */
	bool multibuffer; /* AF_XDP takes frames of several buffers */
};

/*
 * One line: "ok|warn|FAIL  what: finding -> remedy", the finding by printf's rules; without a
 * remedy if that is NULL. Counts failures.
 */
void finding(struct doctor *d, enum level level, const char *what, const char *remedy,
	     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* doctor_host.c: privileges, limits, kernel and library. */
void doctor_host(struct doctor *d);
/* doctor_iface.c: one interface. */
bool doctor_has_broker(const struct netdev *dev); /* that this user may ask */
void doctor_iface(struct doctor *d, const struct netdev *dev);

#endif
