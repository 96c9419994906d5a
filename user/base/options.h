/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the environment chooses. Each is read when it is asked for; a word that is not known is
 * named once on standard error and ignored: a program must not fail over a tuning variable.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include "../transport/engine.h"

/* XROCE_TX: the way that frames leave. */
enum tx_choice { TX_AUTO, TX_XSK, TX_TAP, TX_LIVE, TX_GSO };
enum tx_choice options_tx(void);
/* XROCE_XDP: how the receiving program is attached. */
enum xdp_choice { XDP_CHOICE_AUTO, XDP_CHOICE_NATIVE, XDP_CHOICE_GENERIC };
enum xdp_choice options_xdp(void);
/* XROCE_SHARDS: how many at most, 1 .. XROCE_MAX_SHARD. */
u32 options_shards(void);
/* XROCE_OFF, XROCE_ECN: fill in what they choose of an engine. */
void options_engine(struct engine_config *config);

#endif
