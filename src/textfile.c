/*-------------------------------------------------------------------------
 *
 * textfile.c
 *		Text files that the kernel writes: their paths, how to read them, and
 *		numbers that they have by name.
 *
 * Nothing here needs a backend; see procfs.c.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/textfile.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "grammar.h"
#include "textfile.h"

typedef struct KeyScan
{
	const char *const *keys;
	const char *unit;			/* may be NULL */
	int			nkeys;
	int64	   *values;
	int			found;
} KeyScan;

/* ---- paths ------------------------------------------------------------ */

bool
pgadm_textfile_append(char path[MAXPGPATH], const char *text, size_t len)
{
	size_t		have = strlen(path);

	if (len >= MAXPGPATH - have || memchr(text, '\0', len) != NULL)
	{
		path[0] = '\0';
		return false;
	}
	memcpy(path + have, text, len);
	path[have + len] = '\0';
	return true;
}

bool
pgadm_textfile_append_string(char path[MAXPGPATH], const char *text)
{
	return pgadm_textfile_append(path, text, strlen(text));
}

bool
pgadm_textfile_join(char out[MAXPGPATH], const char *a, const char *b)
{
	out[0] = '\0';
	return pgadm_textfile_append_string(out, a) &&
		pgadm_textfile_append_string(out, b);
}

/* ---- reading files ---------------------------------------------------- */

static int
open_file(const char *folder, const char *name)
{
	char		path[MAXPGPATH];

	if (!pgadm_textfile_join(path, folder, name))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Read until the buffer is full or the file ends; -1: it cannot be read */
static ssize_t
read_fully(int fd, char *buffer, size_t size)
{
	size_t		have = 0;

	while (have < size)
	{
		ssize_t		got = pread(fd, buffer + have, size - have, have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += got;
	}
	return have;
}

size_t
pgadm_textfile_read(const char *folder, const char *name,
					char *buffer, size_t size)
{
	int			fd = open_file(folder, name);
	ssize_t		len;

	if (fd < 0)
		return 0;
	len = read_fully(fd, buffer, size);
	close(fd);
	return len < 0 ? 0 : len;
}

/* ---- texts ------------------------------------------------------------ */

static bool
key_line(Cursor line, bool whole, void *state)
{
	KeyScan    *scan = state;

	if (!whole)
		return false;
	for (int i = 0; i < scan->nkeys; i++)
	{
		Cursor		c = line;
		int64		value;

		if (scan->values[i] == PGADM_UNKNOWN &&
			take_string(&c, scan->keys[i]) &&
			take_blanks(&c) && take_int(&c, &value) &&
			(scan->unit == NULL ||
			 (take_blanks(&c) && take_string(&c, scan->unit))) &&
			at_end(&c))
		{
			scan->values[i] = value;
			scan->found++;
		}
	}
	return scan->found < scan->nkeys;
}

int
pgadm_textfile_keys(const char *text, size_t len, const char *const *keys,
					const char *unit, int nkeys, int64 *values)
{
	KeyScan		scan = {keys, unit, nkeys, values, 0};

	for (int i = 0; i < nkeys; i++)
		values[i] = PGADM_UNKNOWN;
	scan_lines(text, len, key_line, &scan);
	return scan.found;
}
