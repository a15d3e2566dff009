/* stachio rewrite IN… -o OUT: Parquet in, Parquet out, laid out as the options say. */
#include "rewrite.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"
#include "progress.h"
#include "temporary.h"

#define TABLE "input"

/* One table in, one file or directory out. */
struct job {
    const char *const *inputs;
    int n_inputs;
    char *input;     /* owned; the only input, or NULL */
    char *temporary; /* where it is written; NULL: nothing there */
    char *final;
};

struct rewrite {
    const struct options *options;
    struct stachio_db *db;
    struct text out;
    struct job *jobs;
    int n_jobs;
    bool is_table; /* all inputs together become a directory of files */
    char *old;     /* directory that made room */
    double seconds;
    int64_t bytes, rows; /* read */
};

static enum stachio_status no_memory(struct stachio_error *error) {
    return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for the names of files");
}

static bool has_suffix(const char *path) {
    size_t n = strlen(path);
    return n > 8 && !strcmp(path + n - 8, ".parquet");
}

static bool is_directory(const char *path) {
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

static bool exists(const char *path) {
    struct stat info;
    return !lstat(path, &info);
}

static bool is_device(const char *path) {
    struct stat info;
    return !stat(path, &info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/* ---- what is written, and where ---- */

static enum stachio_status add_job(struct rewrite *rewrite, const char *input, const char *final,
                                   struct stachio_error *error) {
    struct job *jobs = realloc(rewrite->jobs, ((size_t)rewrite->n_jobs + 1) * sizeof *jobs);
    if (!jobs)
        return no_memory(error);
    rewrite->jobs = jobs;
    struct job *job = &jobs[rewrite->n_jobs++];
    *job = (struct job){.final = temporary_final(final), .input = input ? strdup(input) : NULL};
    if (!job->final)
        return output_failed(final, error);
    if (input && !job->input)
        return no_memory(error);
    for (int i = 0; i + 1 < rewrite->n_jobs; i++)
        if (!strcmp(jobs[i].final, job->final))
            return set_error(error, STACHIO_USAGE, "%s and %s would both become %s", jobs[i].input, input,
                             final);
    return STACHIO_OK;
}

static enum stachio_status check_free(const struct rewrite *rewrite, struct stachio_error *error) {
    for (int j = 0; j < rewrite->n_jobs; j++)
        if (is_device(rewrite->jobs[j].final))
            return set_error(error, STACHIO_OUTPUT, "%s: neither a file nor a directory",
                             rewrite->jobs[j].final);
    for (int j = 0; !rewrite->is_table && !rewrite->options->force && j < rewrite->n_jobs; j++)
        if (exists(rewrite->jobs[j].final))
            return set_error(error, STACHIO_OUTPUT, "%s: is there already; --force replaces it",
                             rewrite->jobs[j].final);
    return STACHIO_OK;
}

/* Every input file becomes one of the same name. */
static enum stachio_status plan_files(struct rewrite *rewrite, struct stachio_error *error) {
    const struct options *options = rewrite->options;
    const struct stachio_parquet *parquet;
    enum stachio_status status = stachio_inspect(rewrite->db, (const char *const *)options->inputs,
                                                 options->n_inputs, &parquet, error);
    for (int f = 0; !status && f < parquet->n_files; f++) {
        const char *path = parquet->files[f].path, *slash = strrchr(path, '/');
        struct text final = {0};
        text_format(&final, "%s/%s", options->output, slash ? slash + 1 : path);
        status = add_job(rewrite, path, text_string(&final), error);
        text_release(&final);
    }
    return status;
}

/* Nothing but what a table of ours would have is ever replaced. */
static enum stachio_status check_folder(const char *path, int depth, bool *out_empty,
                                        struct stachio_error *error) {
    enum stachio_status status = STACHIO_OK;
    DIR *directory = opendir(path);
    struct dirent *entry;
    if (!directory)
        return output_failed(path, error);
    while (!status && (entry = readdir(directory))) {
        struct text inner = {0};
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        *out_empty = false;
        text_format(&inner, "%s/%s", path, entry->d_name);
        bool is_inner = is_directory(text_string(&inner));
        if (is_inner && depth < 16 && strchr(entry->d_name, '='))
            status = check_folder(text_string(&inner), depth + 1, out_empty, error);
        else if (is_inner || !has_suffix(entry->d_name))
            status = set_error(error, STACHIO_OUTPUT, "%s: is no Parquet file, so %s is not replaced",
                               text_string(&inner), path);
        text_release(&inner);
    }
    closedir(directory);
    return status;
}

static enum stachio_status plan_table(struct rewrite *rewrite, struct stachio_error *error) {
    const struct options *options = rewrite->options;
    bool is_empty = true;
    enum stachio_status status = STACHIO_OK;
    if (exists(options->output) && !is_directory(options->output))
        status = set_error(error, STACHIO_OUTPUT, "%s: is not a directory", options->output);
    else if (exists(options->output))
        status = check_folder(options->output, 0, &is_empty, error);
    if (!status && !is_empty && !options->force)
        status =
            set_error(error, STACHIO_OUTPUT, "%s: is not empty; --force replaces its files", options->output);
    if (status)
        return status;
    rewrite->is_table = true;
    return add_job(rewrite, NULL, options->output, error);
}

/* Whether OUT is a directory for files: it is one, or its name does not say that it is a file. */
static bool goes_to_directory(const struct options *options) {
    const char *output = options->output;
    return is_directory(output) || (!exists(output) && !has_suffix(output));
}

static enum stachio_status plan(struct rewrite *rewrite, struct stachio_error *error) {
    const struct options *options = rewrite->options;
    enum stachio_status status;
    if (options->files || options->write.file_bytes || options->partition_by)
        status = plan_table(rewrite, error);
    else if (goes_to_directory(options))
        status = plan_files(rewrite, error);
    else
        status = add_job(rewrite, NULL, options->output, error);
    if (!status)
        status = check_free(rewrite, error);
    for (int j = 0; !status && j < rewrite->n_jobs; j++) {
        struct job *job = &rewrite->jobs[j];
        job->inputs = job->input ? (const char *const *)&job->input : (const char *const *)options->inputs;
        job->n_inputs = job->input ? 1 : options->n_inputs;
    }
    return status;
}

/* ---- writing ---- */

/* Where a table has not many row groups of the largest size it has at least eight, if they are large enough
 * to be read quickly, so that ranks and batches have even parts. Then as many rows
 * less as makes a file's even. */
static int64_t choose_row_group_rows(int64_t table_rows, int64_t file_rows) {
    enum { ROW_GROUPS = 8, LEAST = 1 << 20, MOST = 4 << 20 };
    int64_t size = table_rows / ROW_GROUPS;
    size = size < LEAST ? LEAST : size > MOST ? MOST : size;
    const int64_t groups = (file_rows + size - 1) / size;
    return groups > 0 ? (file_rows + groups - 1) / groups : size;
}

static enum stachio_status write_query(struct rewrite *rewrite, const struct job *job,
                                       const struct rewrite_sql *sql, const struct rewrite_layout *before,
                                       struct stachio_error *error) {
    const struct options *options = rewrite->options;
    struct stachio_write_options write = options->write;
    struct stachio_query *query;
    struct progress progress;
    if (options->files)
        write.file_rows = before->rows > 0 ? (before->rows + options->files - 1) / options->files : 1;
    if (!write.row_group_rows)
        write.row_group_rows =
            choose_row_group_rows(before->rows, options->files ? write.file_rows : before->rows);
    write.n_partition = sql->n_partition;
    write.orders = sql->orders;
    write.n_orders = sql->n_orders;
    struct text text = sql->sql;
    enum stachio_status status = stachio_query_create(rewrite->db, text_string(&text), &query, error);
    if (status)
        return status;
    interrupt_set_query(query);
    progress_start(&progress, query, options->progress);
    status = interrupt_seen() ? set_error(error, STACHIO_CANCELLED, "cancelled")
                              : stachio_query_write(query, job->temporary, &write, error);
    progress_stop(&progress);
    interrupt_set_query(NULL);
    stachio_query_destroy(query);
    return status;
}

static enum stachio_status run_job(struct rewrite *rewrite, struct job *job, struct rewrite_layout *before,
                                   struct stachio_error *error) {
    const struct options *options = rewrite->options;
    struct rewrite_sql sql = {0};
    double started = seconds_now();
    enum stachio_status status = stachio_add_files(rewrite->db, TABLE, job->inputs, job->n_inputs, error);
    if (!status)
        status = rewrite_sql_make(&sql, rewrite->db, TABLE, options->sort_by, options->partition_by, error);
    if (!status)
        status = temporary_make(job->final, rewrite->is_table, &job->temporary, error);
    if (!status)
        status = write_query(rewrite, job, &sql, before, error);
    rewrite_sql_release(&sql);
    rewrite->seconds += seconds_now() - started;
    rewrite->bytes += before->bytes;
    rewrite->rows += before->rows;
    return status;
}

/* The directory that is there makes room, and is removed once the other is in its place. */
static enum stachio_status replace_folder(struct rewrite *rewrite, struct job *job,
                                          struct stachio_error *error) {
    if (!rename(job->temporary, job->final))
        return STACHIO_OK; /* there was none, or an empty one */
    if (errno != ENOTEMPTY && errno != EEXIST)
        return output_failed(job->final, error);
    rewrite->old = temporary_name(job->final);
    if (!rewrite->old)
        return no_memory(error);
    if (!mkdtemp(rewrite->old) || rename(job->final, rewrite->old))
        return output_failed(job->final, error);
    if (rename(job->temporary, job->final)) {
        enum stachio_status status = output_failed(job->final, error);
        if (rename(rewrite->old, job->final))
            report_note("%s: what was there is in %s", job->final, rewrite->old);
        return status;
    }
    temporary_remove_tree(rewrite->old);
    return STACHIO_OK;
}

static enum stachio_status place(struct rewrite *rewrite, struct job *job, struct stachio_error *error) {
    enum stachio_status status = STACHIO_OK;
    if (chmod(job->temporary, temporary_mode(job->final, rewrite->is_table)))
        status = output_failed(job->final, error);
    else if (rewrite->is_table)
        status = replace_folder(rewrite, job, error);
    else if (rename(job->temporary, job->final))
        status = output_failed(job->final, error);
    if (!status) {
        free(job->temporary);
        job->temporary = NULL;
    }
    return status;
}

/* The file, or the files of a table's folders: patterns for those that there may be. */
/* A path as a glob that matches it alone. */
static void add_literal(struct text *pattern, const char *path) {
    for (; *path; path++)
        text_format(pattern, "%s%c", strchr("*?[]{},\\", *path) ? "\\" : "", *path);
}

static enum stachio_status read_after(struct rewrite *rewrite, const struct job *job,
                                      struct rewrite_layout *after, struct stachio_error *error) {
    struct text pattern = {0};
    if (rewrite->options->partition_by)
        add_literal(&pattern, job->final);
    else
        text_add(&pattern, job->final);
    for (const char *at = rewrite->options->partition_by; at; at = strchr(at, ','), at = at ? at + 1 : at)
        text_add(&pattern, "/*");
    if (rewrite->options->partition_by)
        text_add(&pattern, "/*.parquet");
    const char *text = text_string(&pattern);
    enum stachio_status status = rewrite_layout_read(after, rewrite->db, &text, 1, error);
    text_release(&pattern);
    return status;
}

static enum stachio_status print_job(struct rewrite *rewrite, const struct job *job,
                                     const struct rewrite_layout *before, struct stachio_error *error) {
    struct rewrite_layout after = {0};
    enum stachio_status status = read_after(rewrite, job, &after, error);
    if (!status && rewrite->n_jobs > 1)
        rewrite_print_line(&rewrite->out, job->final, before, &after);
    else if (!status)
        rewrite_print(&rewrite->out, before, &after);
    rewrite_layout_release(&after);
    return status;
}

static void print_speed(struct rewrite *rewrite) {
    char rows[SIZE_TEXT_BYTES], rate[SIZE_TEXT_BYTES];
    double seconds = rewrite->seconds > 0 ? rewrite->seconds : 1e-9;
    text_format(&rewrite->out, "\n%.2f s: %s/s read, %s rows/s\n", rewrite->seconds,
                size_text((double)rewrite->bytes / seconds, rate),
                count_text((int64_t)((double)rewrite->rows / seconds), rows));
}

/* Everything is written before anything is put in its place. */
static enum stachio_status run_jobs(struct rewrite *rewrite, struct rewrite_layout *before,
                                    struct stachio_error *error) {
    enum stachio_status status = STACHIO_OK;
    for (int j = 0; !status && j < rewrite->n_jobs; j++) {
        struct job *job = &rewrite->jobs[j];
        status = rewrite_layout_read(&before[j], rewrite->db, job->inputs, job->n_inputs, error);
        if (!status)
            status = run_job(rewrite, job, &before[j], error);
    }
    for (int j = 0; !status && j < rewrite->n_jobs; j++)
        status = place(rewrite, &rewrite->jobs[j], error);
    for (int j = 0; !status && j < rewrite->n_jobs; j++)
        status = print_job(rewrite, &rewrite->jobs[j], &before[j], error);
    if (!status)
        print_speed(rewrite);
    return status;
}

static enum stachio_status run(struct rewrite *rewrite, struct stachio_error *error) {
    const char *output = rewrite->options->output;
    bool made_folder = false;
    enum stachio_status status = plan(rewrite, error);
    struct rewrite_layout *before = calloc((size_t)rewrite->n_jobs + 1, sizeof *before);
    if (!before)
        return no_memory(error);
    if (!status && !rewrite->is_table && goes_to_directory(rewrite->options) && !is_directory(output)) {
        made_folder = !mkdir(output, 0777);
        status = made_folder ? status : output_failed(output, error);
    }
    if (!status)
        status = run_jobs(rewrite, before, error);
    for (int j = 0; j < rewrite->n_jobs; j++) {
        rewrite_layout_release(&before[j]);
        if (rewrite->jobs[j].temporary && unlink(rewrite->jobs[j].temporary) && rewrite->is_table)
            temporary_remove_tree(rewrite->jobs[j].temporary);
    }
    if (status && made_folder)
        rmdir(output);
    free(before);
    return status;
}

static void release(struct rewrite *rewrite) {
    for (int j = 0; j < rewrite->n_jobs; j++) {
        free(rewrite->jobs[j].input);
        free(rewrite->jobs[j].temporary);
        free(rewrite->jobs[j].final);
    }
    free(rewrite->jobs);
    free(rewrite->old);
    text_release(&rewrite->out);
    stachio_close(rewrite->db);
}

static int rewrite_files(struct options *options) {
    struct rewrite rewrite = {.options = options};
    struct output output = {0};
    struct stachio_error error = {0};
    if (!options->n_inputs || !options->output)
        return report_usage("rewrite needs files and -o OUT");
    if (options->files && (options->write.file_bytes || options->partition_by))
        return report_usage("--files goes with neither --max-file-size nor --partition-by");
    options->db.engine = STACHIO_ENGINE_STACHIO;
    options->db.device = STACHIO_DEVICE_CPU; /* where pages are encoded */
    enum stachio_status status = options_open(options, &rewrite.db, &error);
    interrupt_install();
    if (!status)
        status = run(&rewrite, &error);
    if (!status)
        status = output_open(&output, NULL, &error);
    if (!status) {
        text_append(&output.text, rewrite.out.bytes, rewrite.out.used_bytes);
        status = output_commit(&output, &error);
    }
    output_close(&output);
    release(&rewrite);
    return status ? report_error(&error) : 0;
}

int rewrite_main(int argc, char **argv, const char *help) {
    struct options options;
    int exit_status = options_read(&options, COMMAND_REWRITE, argc, argv);
    if (exit_status == 0 && options.help)
        exit_status = fputs(help, stdout) < 0;
    else if (exit_status == 0)
        exit_status = rewrite_files(&options);
    options_release(&options);
    return exit_status;
}
