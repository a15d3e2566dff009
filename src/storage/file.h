/* Parquet files on disk: opening, reading at an offset, and their footers through a cache. */
#ifndef SX_STORAGE_FILE_H
#define SX_STORAGE_FILE_H

#include "storage/footer.h"

/* The same file with the same contents, as far as the file system tells. */
struct sx_file_stamp {
    uint64_t device, inode;
    int64_t size_bytes;
    int64_t modified_ns;
};

struct stat;
void sx_file_stamp_set(const struct stat *found, struct sx_file_stamp *out_stamp);
bool sx_file_stamp_equal(const struct sx_file_stamp *a, const struct sx_file_stamp *b);

/* Errors name the file: missing, unreadable, a directory. */
SX_MUST_CHECK enum sx_status sx_file_open(const char *path, int *out_fd, struct sx_file_stamp *out_stamp,
                                          struct sx_error *error);
void sx_file_close(int fd); /* -1 allowed */

/* All of [offset, offset + length_bytes). The text of an error does not name the file. */
SX_MUST_CHECK enum sx_status sx_file_read(int fd, int64_t offset, size_t length_bytes, void *out_bytes,
                                          struct sx_error *error);

/* As much of it as is in the page cache, from its start; -1: the file system can't tell. */
int64_t sx_file_read_cached(int fd, int64_t offset, size_t length_bytes, void *out_bytes);

/* Reads and decodes the footer. */
SX_MUST_CHECK enum sx_status sx_footer_read(const char *path, int fd, int64_t file_bytes,
                                            struct sx_footer **out_footer, struct sx_error *error);

/* What a scan of the whole file would find wrong before it reads pages. */
SX_MUST_CHECK enum sx_status sx_file_check(const char *path, struct sx_error *error);

/* Footers by path, the least recently used dropped first. Thread-safe. */
struct sx_footer_cache;
SX_MUST_CHECK enum sx_status sx_footer_cache_create(struct sx_footer_cache **out_cache,
                                                    struct sx_error *error);
void sx_footer_cache_destroy(struct sx_footer_cache *cache); /* NULL allowed */
/* One reference, the caller's. */
SX_MUST_CHECK enum sx_status sx_footer_cache_get(struct sx_footer_cache *cache, const char *path,
                                                 struct sx_footer **out_footer,
                                                 struct sx_file_stamp *out_stamp, struct sx_error *error);

#endif
