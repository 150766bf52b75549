/*-------------------------------------------------------------------------
 *
 * textfile.h
 *		Text files that the kernel writes: their paths, how to read them, and
 *		numbers that they have by name.
 *
 * Copyright (c) 2026, pg_admission contributors
 *
 * IDENTIFICATION
 *	  src/textfile.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef PGADM_TEXTFILE_H
#define PGADM_TEXTFILE_H

/* A value that could not be read; no other value is negative */
#define PGADM_UNKNOWN			(-1)

/* How much of a file is read: files about one thing, and lists of all */
#define PGADM_TEXTFILE_SMALL	8192
#define PGADM_TEXTFILE_LARGE	(128 * 1024)

/* Append to a path; false, and no path at all, if it gets too long */
extern bool pgadm_textfile_append(char path[MAXPGPATH], const char *text,
								  size_t len);
extern bool pgadm_textfile_append_string(char path[MAXPGPATH],
										 const char *text);
/* out = a/b; b with its slash */
extern bool pgadm_textfile_join(char out[MAXPGPATH], const char *a,
								const char *b);

/*
 * The length of what has been read.  A file that cannot be read is empty, one
 * that is too long is cut: the parsers take neither for anything else.
 */
extern size_t pgadm_textfile_read(const char *folder, const char *name,
								  char *buffer, size_t size);

/* values[i] of the line "<keys[i]> <number>[ <unit>]"; how many were found */
extern int	pgadm_textfile_keys(const char *text, size_t len,
								const char *const *keys, const char *unit,
								int nkeys, int64 *values);

#endif							/* PGADM_TEXTFILE_H */
