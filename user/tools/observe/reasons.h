/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers that maps have, in words. Of those that are none "?". */
#ifndef OBSERVE_REASONS_H
#define OBSERVE_REASONS_H

#include <xroce/stat.h>

#include "../../engine/types.h"

/* Why a QP stopped working (enum xroce_reason); the names of drops (enum xroce_drop). */
const char *reason_text(u32 reason);
const char *drop_name(u32 drop);

#endif
