/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef OS_COMPLAIN_H
#define OS_COMPLAIN_H

/*
 * Prints "xroce: TEXT" as a line on standard error, cut to 1 KiB. Not a cancellation point, as
 * callers hold locks.
 */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
