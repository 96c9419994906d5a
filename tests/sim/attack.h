/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Packets that the peer of a QP never sent: they carry its addresses, a P_Key that matches and a
 * right ICRC. An attacker on the peer's host can make such packets; it sees no packet of the
 * connection.
 */
#ifndef SIM_ATTACK_H
#define SIM_ATTACK_H

#include "pair.h"

/*
 * Delivers p, with dest_qpn, P_Key and payload_len filled in, to victim, whose peer is on node
 * `from`.
 */
int attack_deliver(struct world *w, const struct side *victim, u32 from, struct packet p,
		   const void *payload, u32 len);

#endif
