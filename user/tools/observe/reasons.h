/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Texts for numbers in maps; "?" for an unknown number. */
#ifndef OBSERVE_REASONS_H
#define OBSERVE_REASONS_H

#include <xroce/stat.h>

#include "../../engine/types.h"

/* Return why a QP stopped working (enum xroce_reason), or the name of a drop (enum xroce_drop). */
const char *reason_text(u32 reason);
const char *drop_name(u32 drop);

#endif
