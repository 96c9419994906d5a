/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Chooses the format by a request's Accept header (RFC 9110, 12.5.1). Pure. */
#ifndef EXPORT_ACCEPT_H
#define EXPORT_ACCEPT_H

#include "text.h"

/*
 * header may be NULL or any text. Sets *format to the acceptable format of the highest quality. At
 * equal quality that is OpenMetrics, or the older format if only a wildcard matches, since every
 * reader supports it. Returns false if neither is acceptable (406).
 */
bool accept_format(const char *header, enum text_format *format);

#endif
