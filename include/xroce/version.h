/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The version, defined only here: the command, the device's fw_ver, the manual pages and xroce.pc
 * take their version from this file. CHANGELOG.md and debian/changelog begin with the same version;
 * tests/ship/version.sh checks that.
 */
#ifndef XROCE_VERSION_H
#define XROCE_VERSION_H

#define XROCE_VERSION "0.1.0"

#endif
