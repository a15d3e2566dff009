#include "temporary.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"
#include "output.h"

char *temporary_name(const char *path) {
    struct text text = {0};
    text_add(&text, path);
    while (text.used_bytes > 1 && text.bytes[text.used_bytes - 1] == '/')
        text.used_bytes--;
    text_add(&text, ".XXXXXX");
    char *copy = text.failed ? NULL : strdup(text_string(&text));
    text_release(&text);
    return copy;
}

char *temporary_final(const char *path) {
    struct stat info;
    return stat(path, &info) ? strdup(path) : realpath(path, NULL);
}

mode_t temporary_mode(const char *path, bool is_folder) {
    struct stat info;
    if (!stat(path, &info) && S_ISDIR(info.st_mode) == is_folder)
        return info.st_mode & 0777;
    mode_t mask = umask(0);
    umask(mask);
    return (is_folder ? 0777 : 0666) & ~mask;
}

enum stachio_status temporary_make(const char *path, bool is_folder, char **out_name,
                                   struct stachio_error *error) {
    char *name = temporary_name(path);
    if (!name)
        return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the names of files");
    int fd = is_folder ? -1 : mkstemp(name);
    if (is_folder ? !mkdtemp(name) : fd < 0) {
        free(name);
        return output_failed(path, error);
    }
    *out_name = name;
    const mode_t owner = is_folder ? 0700 : 0600;
    if (chmod(name, temporary_mode(path, is_folder) | owner) || (fd >= 0 && close(fd)))
        return output_failed(path, error);
    return STACHIO_OK;
}

void temporary_remove_tree(const char *path) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        struct text inner = {0};
        struct stat info;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        text_format(&inner, "%s/%s", path, entry->d_name);
        if (unlink(text_string(&inner)) && !stat(text_string(&inner), &info) && S_ISDIR(info.st_mode))
            temporary_remove_tree(text_string(&inner));
        text_release(&inner);
    }
    if (directory)
        closedir(directory);
    rmdir(path);
}
