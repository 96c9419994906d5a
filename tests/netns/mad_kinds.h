/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attributes of the MADs of the connection manager. */
#ifndef NETNS_MAD_KINDS_H
#define NETNS_MAD_KINDS_H

enum mad {
	MAD_NONE,
	MAD_REQ = 0x10,
	MAD_MRA,
	MAD_REJ,
	MAD_REP,
	MAD_RTU,
	MAD_DREQ,
	MAD_DREP,
	MAD_SIDR_REQ,
	MAD_SIDR_REP,
	MAD_LAP,
	MAD_APR
};

#endif
