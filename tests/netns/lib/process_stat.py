# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The beginning of scripts that look at processes.


def stat(pid):
    """Returns name and state of a process, or None if it has gone."""
    try:
        name, rest = open(f"/proc/{pid}/stat").read().rsplit(")", 1)
        return name.split("(", 1)[1], rest.split()[0]
    except OSError:
        return None


