/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Why a work request failed, for struct ibv_wc's vendor_err, where the status alone is ambiguous.
 * Programs and logs use the numbers; none is ever reused.
 */
#ifndef ENGINE_VENDOR_ERR_H
#define ENGINE_VENDOR_ERR_H

#define VENDOR_ERRORS(X)                                                                           \
	X(FLUSHED, 1, "flushed: the QP entered the error state before this request ran")           \
	X(LKEY, 2, "L_Key: unknown, of another PD, out of bounds, or without the access right")    \
	X(TIMEOUT, 3, "retry_cnt time-outs without an answer")                                     \
	X(SEQUENCE_RETRY, 4, "retry_cnt sequence NAKs without progress")                           \
	X(RNR, 5, "rnr_retry RNR NAKs")                                                            \
	X(NAK_INVALID_REQUEST, 6, "NAK: remote invalid request")                                   \
	X(NAK_REMOTE_ACCESS, 7, "NAK: remote access error")                                        \
	X(NAK_REMOTE_OPERATION, 8, "NAK: remote operational error")                                \
	X(BAD_RESPONSE, 9, "a response that contradicts its request")                              \
	X(RECV_TOO_SHORT, 10, "the receive is shorter than the message")                           \
	X(TOO_LONG, 11, "message longer than the transport or the path MTU allows")                \
	X(REMOTE_ACCESS_HERE, 12, "a peer's request was refused: its receive is consumed")         \
	X(CQ_OVERRUN, 13, "the CQ overran")                                                        \
	X(INVALIDATE, 14, "the R_Key to invalidate does not belong to this QP")                    \
	X(TAG_CONSUMED, 15, "the tag to delete is no longer in the list")                          \
	X(RENDEZVOUS, 16, "the application must fetch this message into the tag's buffer")         \
	X(MEMORY, 17, "the key is valid, but its memory is not accessible")                        \
	X(REQUEST, 18, "the transport service does not have this request or length")

enum vendor_err {
	VERR_NONE = 0,
#define X(name, number, text) VERR_##name = number,
	VENDOR_ERRORS(X)
#undef X
};

/* Returns the text, or NULL for an unknown number. Duplicate numbers do not compile. */
static inline const char *vendor_err_text(unsigned int number)
{
	switch (number) {
#define X(name, number, text) \
	case VERR_##name:     \
		return text;
		VENDOR_ERRORS(X)
#undef X
	}
	return NULL;
}

#endif
