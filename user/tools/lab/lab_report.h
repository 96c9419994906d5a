/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The report of a run: what each rule has hit, and what the cable has lost. */
#ifndef LAB_REPORT_H
#define LAB_REPORT_H

#include <stdio.h>

#include "lab_run.h"

/*
 * Prints the report of a run that ended with `status`, on standard error and as JSON to the file
 * that the lab names. Returns the exit status, which counts rules that never hit.
 */
int lab_report(const struct lab *lab, int status);
/* Prints what each rule has hit, and the actions that have not begun. */
void lab_report_rules(const struct lab *lab, FILE *out);
/* Returns how often the rules have hit, and how many actions have begun. */
u32 lab_report_hits(const struct lab *lab);
/* Returns whether a rule has never hit, or an action has not begun. */
bool lab_report_missed(const struct lab *lab);

#endif
