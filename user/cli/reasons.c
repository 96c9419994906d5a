/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stddef.h>

#include "../transport/vendor_err.h"
#include "reasons.h"

const char *reason_text(u32 reason)
{
	const char *text = vendor_err_text(reason);

	if (text)
		return text;
	switch (reason) {
	case XROCE_REASON_NONE:
		return "the application asked for the error state";
	case XROCE_REASON_PEER_INVALID:
		return "a request of the peer's was invalid";
	case XROCE_REASON_PEER_ACCESS:
		return "a request of the peer's asked for what its R_Key does not open";
	case XROCE_REASON_PORT_LOST:
		return "the interface has gone, or its broker";
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

const char *drop_text(u32 drop)
{
	static const char *const texts[] = {
#define X(name, text) [XROCE_DROP_##name] = text,
		XROCE_DROP_REASONS(X)
#undef X
	};

	return drop && drop < ARRAY_SIZE(texts) ? texts[drop] : "?";
}

const char *status_text(u32 status)
{
	switch (status) {
	case XROCE_STATUS_SUCCESS:
		return "success";
	case XROCE_STATUS_LOC_LEN_ERR:
		return "local length error";
	case XROCE_STATUS_LOC_QP_OP_ERR:
		return "local QP operation error";
	case XROCE_STATUS_LOC_PROT_ERR:
		return "local protection error";
	case XROCE_STATUS_WR_FLUSH_ERR:
		return "Work Request Flushed Error";
	case XROCE_STATUS_MW_BIND_ERR:
		return "memory management operation error";
	case XROCE_STATUS_BAD_RESP_ERR:
		return "bad response error";
	case XROCE_STATUS_LOC_ACCESS_ERR:
		return "local access error";
	case XROCE_STATUS_REM_INV_REQ_ERR:
		return "remote invalid request error";
	case XROCE_STATUS_REM_ACCESS_ERR:
		return "remote access error";
	case XROCE_STATUS_REM_OP_ERR:
		return "remote operation error";
	case XROCE_STATUS_RETRY_EXC_ERR:
		return "transport retry counter exceeded";
	case XROCE_STATUS_RNR_RETRY_EXC_ERR:
		return "RNR retry counter exceeded";
	case XROCE_STATUS_TM_ERR:
		return "TM error";
	case XROCE_STATUS_TM_RNDV_INCOMPLETE:
		return "TM software rendezvous";
	default:
		return "?";
	}
}
