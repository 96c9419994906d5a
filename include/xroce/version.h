/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The version, said here and nowhere else: the command, the device's fw_ver, the manual pages and
 * xroce.pc have it from here. CHANGELOG.md and debian/changelog begin with it, as
 * tests/ship/version.sh checks.
 */
#ifndef XROCE_VERSION_H
#define XROCE_VERSION_H

#define XROCE_VERSION "0.1.0"

#endif
