/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The MADs of the golden captures golden/v4-cm-*.pcap, which the kernel's CM sent, in order. */
#ifndef CM_CAPTURE_H
#define CM_CAPTURE_H

#include "../../user/cm/mad.h"
#include "golden.h"

#define CAPTURE_MAX 32

struct capture {
	struct golden golden;
	u32 num;
	struct capture_mad {
		const char *file;
		u32 index;	/* of its packet in the file */
		bool from_client; /* 10.9.0.1 */
		const u8 *mad;	/* CM_MAD_BYTES */
	} mad[CAPTURE_MAX];
};

int capture_load(struct capture *c);
void capture_free(struct capture *c);
/* or NULL */
const u8 *capture_mad(const struct capture *c, const char *file, u32 index);

#endif
