/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which format the Accept header of a request asks for (RFC 9110, 12.5.1). Pure. */
#ifndef EXPORT_ACCEPT_H
#define EXPORT_ACCEPT_H

#include "text.h"

/*
 * header may be NULL or any text. Sets *format: of those that are acceptable the one of the highest
 * quality, of the same quality OpenMetrics, but where only a wildcard takes either, the older
 * format, which every reader knows. False: neither is acceptable (406).
 */
bool accept_format(const char *header, enum text_format *format);

#endif
