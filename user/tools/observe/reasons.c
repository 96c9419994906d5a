/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stddef.h>

#include "../../engine/cq.h"
#include "reasons.h"

const char *reason_text(u32 reason)
{
	const char *text = vendor_err_text(reason);

	if (text)
		return text;
	switch (reason) {
	case XROCE_REASON_NONE:
		return "the application set the error state";
	case XROCE_REASON_PEER_INVALID:
		return "the peer sent an invalid request";
	case XROCE_REASON_PEER_ACCESS:
		return "the peer requested access that its R_Key does not permit";
	case XROCE_REASON_PORT_LOST:
		return "the interface or its broker was removed";
	default:
		return "?";
	}
}

const char *drop_name(u32 drop)
{
	static const char *const names[] = {
#define X(name, text) [XROCE_DROP_##name] = #name,
		XROCE_DROP_REASONS(X)
#undef X
	};

	return drop && drop < ARRAY_SIZE(names) ? names[drop] : "?";
}
