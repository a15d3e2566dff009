/* Stands in for libFuzzer where it is not used: feeds the files of the kept corpus to a fuzz target. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns 0, or -1 where the file cannot be read. A copy of exactly its size lets ASan see overreads. */
static int replay(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) {
        return -1;
    }
    int result = -1;
    uint8_t *data = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        data = size >= 0 ? malloc(size > 0 ? (size_t)size : 1) : NULL;
        rewind(file);
        if (data && fread(data, 1, (size_t)size, file) == (size_t)size) {
            (void)LLVMFuzzerTestOneInput(data, (size_t)size);
            result = 0;
        }
    }
    free(data);
    fclose(file);
    return result;
}

int main(int argc, char **argv) {
    static const uint8_t nothing[1];
    (void)LLVMFuzzerTestOneInput(nothing, 0);
    int failed = 0;
    size_t n_files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *dir = opendir(argv[i]);
        if (!dir) {
            continue; /* a target without a kept corpus yet */
        }
        for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
            if (entry->d_name[0] == '.') {
                continue;
            }
            char path[4096];
            int length = snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (length < 0 || (size_t)length >= sizeof path || replay(path) != 0) {
                fprintf(stderr, "cannot read %s\n", path);
                failed = 1;
            }
            n_files++;
        }
        closedir(dir);
    }
    printf("%zu files replayed\n", n_files);
    return failed;
}
