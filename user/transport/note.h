/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What an engine notes of its QPs while somebody looks (xroce/trace.h), in memory that its caller
 * hands it; without, it notes nothing.
 */
#ifndef TRANSPORT_NOTE_H
#define TRANSPORT_NOTE_H

#include <xroce/trace.h>

#include "types.h"

struct engine;

#define ENGINE_NOTES 256u

struct engine_note {
	u32 qpn, peer_qpn;
	enum xroce_event event;
	u32 value, more; /* as in struct xroce_told */
};

struct engine_notes {
	/* of the QP whose packet engine_output() gave last */
	u32 output_qpn, output_peer_qpn;
	u32 num;	/* the caller sets it to 0 when it has taken them */
	u32 lost;	/* there was no room: taken more seldom than they come */
	struct engine_note note[ENGINE_NOTES];
};

/* From here on; NULL: no longer. The memory stays the caller's, which it may free after that. */
void engine_set_notes(struct engine *e, struct engine_notes *notes);

#endif
