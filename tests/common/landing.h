/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The minimal handler of SIGSEGV and SIGBUS that guard.h requires, for tests of the transport
 * without user/run.
 */
#ifndef TESTS_LANDING_H
#define TESTS_LANDING_H

/*
 * From here on a guarded access that faults returns false; any other fault ends the program as
 * usual. cmocka installs its own handlers for each test: call this in the test.
 */
void landing_install(void);
/* Accesses that did, since then. */
unsigned int landing_count(void);

#endif
