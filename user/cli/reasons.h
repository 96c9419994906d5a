/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers that maps have, in words. Of those that are none "?". */
#ifndef CLI_REASONS_H
#define CLI_REASONS_H

#include <xroce/stat.h>

#include "../transport/types.h"

/* Why a QP stopped working (enum xroce_reason); drops' names and texts (enum xroce_drop). */
const char *reason_text(u32 reason);
const char *drop_name(u32 drop);
const char *drop_text(u32 drop);
/* As ibv_wc_status_str() has it. */
const char *status_text(u32 status);

#endif
