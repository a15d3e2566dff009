#include "shell.h"

#include <ctype.h>
#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interrupt.h"
#include "message.h"
#include "statement.h"

enum { HISTORY_LINES = 1000 };

struct shell {
    struct session *session;
    EditLine *editor;
    History *history;
    char *history_path;
    struct text statement; /* lines so far of one that has no semicolon yet */
    bool done;
};

static const char shell_help[] =
    ".tables            list the tables\n"
    ".schema [TABLE]    columns and their types\n"
    ".timer on|off      tell each statement's time\n"
    ".mode table|csv|json\n"
    ".help              this list\n"
    ".quit              end (so does Control-D)\n"
    "Anything else is SQL and ends with a semicolon; Control-C ends a running statement.\n";

static char *prompt(EditLine *editor) {
    static char first[] = "stachio> ", next[] = "    ...> ";
    struct shell *shell;
    el_get(editor, EL_CLIENTDATA, &shell);
    return shell->statement.used_bytes ? next : first;
}

/* $STACHIO_HISTORY, or a file in the home directory; NULL: none. */
static char *history_path(void) {
    const char *given = getenv("STACHIO_HISTORY"), *home = getenv("HOME");
    if (given)
        return *given ? strdup(given) : NULL;
    if (!home)
        return NULL;
    struct text path = {0};
    text_format(&path, "%s/.stachio_history", home);
    char *copy = strdup(text_string(&path));
    text_release(&path);
    return copy;
}

/* libedit drops what the locale has no character for, and SQL is UTF-8. */
static void set_locale(void) {
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        setlocale(LC_CTYPE, "C.UTF-8");
}

static bool shell_open(struct shell *shell) {
    HistEvent event;
    set_locale();
    shell->editor = el_init("stachio", stdin, stdout, stderr);
    shell->history = history_init();
    if (!shell->editor || !shell->history)
        return false;
    el_set(shell->editor, EL_CLIENTDATA, shell);
    el_set(shell->editor, EL_PROMPT, prompt);
    el_set(shell->editor, EL_EDITOR, "emacs");
    el_set(shell->editor, EL_HIST, history, shell->history);
    el_set(shell->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_set(shell->editor, EL_BIND, "^I", "ed-insert", NULL); /* pasted scripts have tabs */
    el_source(shell->editor, NULL);
    history(shell->history, &event, H_SETSIZE, HISTORY_LINES);
    history(shell->history, &event, H_SETUNIQUE, 1);
    shell->history_path = history_path();
    if (shell->history_path)
        history(shell->history, &event, H_LOAD, shell->history_path);
    return true;
}

static void shell_close(struct shell *shell) {
    HistEvent event;
    if (shell->history && shell->history_path)
        history(shell->history, &event, H_SAVE, shell->history_path);
    if (shell->history)
        history_end(shell->history);
    if (shell->editor)
        el_end(shell->editor);
    free(shell->history_path);
    text_release(&shell->statement);
}

/* On the terminal, where answers may go to a file. */
static void show(struct shell *shell) {
    struct text *text = &shell->session->output.text;
    fputs(text_string(text), stdout);
    fflush(stdout);
    text_clear(text);
}

static void show_tables(struct shell *shell) {
    const char *const *names;
    int n = stachio_tables(shell->session->db, &names);
    for (int i = 0; i < n; i++)
        text_format(&shell->session->output.text, "%s\n", names[i]);
    show(shell);
}

static void show_table(struct shell *shell, const char *table) {
    struct text *out = &shell->session->output.text;
    struct stachio_error error;
    const struct stachio_column *columns;
    int n;
    if (stachio_describe(shell->session->db, table, &columns, &n, &error)) {
        report_error(&error);
        return;
    }
    int width = 0;
    for (int i = 0; i < n; i++)
        width = (int)strlen(columns[i].name) > width ? (int)strlen(columns[i].name) : width;
    text_format(out, "%s\n", table);
    for (int i = 0; i < n; i++)
        text_format(out, "  %-*s  %s\n", width, columns[i].name, columns[i].type);
    show(shell);
}

static void show_schema(struct shell *shell, const char *table) {
    if (*table) {
        show_table(shell, table);
        return;
    }
    const char *const *borrowed;
    int n = stachio_tables(shell->session->db, &borrowed);
    char **names = statements_copy(borrowed, n);
    for (int i = 0; names && i < n; i++)
        show_table(shell, names[i]);
    statements_free(names, names ? n : 0);
}

static void set_timer(struct shell *shell, const char *argument) {
    if (!strcmp(argument, "on") || !strcmp(argument, "off"))
        shell->session->timer = !strcmp(argument, "on");
    else
        fputs("stachio: .timer on or .timer off\n", stderr);
}

static void set_mode(struct shell *shell, const char *argument) {
    static const char *const names[] = {"table", "csv", "json"};
    if (shell->session->format == FORMAT_PARQUET) {
        fputs("stachio: --format parquet stays\n", stderr);
        return;
    }
    for (int i = 0; i < 3; i++) {
        if (!strcmp(argument, names[i])) {
            shell->session->format = (enum format)i;
            return;
        }
    }
    fputs("stachio: .mode table, .mode csv or .mode json\n", stderr);
}

static void quit(struct shell *shell, const char *argument) {
    (void)argument;
    shell->done = true;
}

static void show_help(struct shell *shell, const char *argument) {
    (void)argument;
    text_add(&shell->session->output.text, shell_help);
    show(shell);
}

static void list_tables(struct shell *shell, const char *argument) {
    (void)argument;
    show_tables(shell);
}

/* `line` begins with a point; it is cut up. */
static void run_command(struct shell *shell, char *line) {
    static const struct {
        const char *name;
        void (*run)(struct shell *shell, const char *argument);
    } commands[] = {{".tables", list_tables}, {".schema", show_schema}, {".timer", set_timer},
                    {".mode", set_mode},      {".help", show_help},     {".quit", quit},
                    {".exit", quit}};
    size_t n = strcspn(line, " \t");
    char *argument = line + n + strspn(line + n, " \t");
    line[n] = 0;
    for (size_t end = strlen(argument);
         end && (isspace((unsigned char)argument[end - 1]) || argument[end - 1] == ';');)
        argument[--end] = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!strcmp(line, commands[i].name)) {
            commands[i].run(shell, argument);
            return;
        }
    }
    fprintf(stderr, "stachio: there is no command %s; .help lists them\n", line);
}

static void run_statement(struct shell *shell) {
    struct stachio_error error = {0};
    HistEvent event;
    const char *sql = text_string(&shell->statement);
    if (!statement_is_empty(sql)) {
        history(shell->history, &event, H_ENTER, sql);
        if (session_run_script(shell->session, sql, &error)) {
            text_clear(&shell->session->output.text);
            report_error(&error);
        }
    }
    text_clear(&shell->statement);
}

/* One line of input, which ends with a line feed. */
static void take_line(struct shell *shell, const char *line, size_t n) {
    HistEvent event;
    if (!shell->statement.used_bytes && line[strspn(line, " \t")] == '.') {
        char *command = strndup(line + strspn(line, " \t"), n);
        if (!command)
            return;
        command[strcspn(command, "\r\n")] = 0;
        history(shell->history, &event, H_ENTER, command);
        run_command(shell, command);
        free(command);
        return;
    }
    text_append(&shell->statement, line, n);
    if (statement_is_empty(text_string(&shell->statement)))
        text_clear(&shell->statement);
    else if (statement_is_complete(text_string(&shell->statement)))
        run_statement(shell);
}

int shell_run(struct session *session) {
    struct shell shell = {.session = session};
    if (!shell_open(&shell)) {
        shell_close(&shell);
        return report_usage("the terminal can't be used; give SQL by -c, -f or standard input");
    }
    printf("stachio %s over DuckDB's SQL. .help lists the commands.\n", stachio_version());
    fflush(stdout);
    while (!shell.done && !interrupt_is_final()) {
        int n = 0;
        interrupt_forget();
        const char *line = el_gets(shell.editor, &n);
        if (interrupt_seen()) {
            text_clear(&shell.statement);
            el_reset(shell.editor);
            fputs("^C\n", stdout);
            fflush(stdout);
        } else if (!line || n <= 0) {
            shell.done = true;
            fputs("\n", stdout);
        } else {
            take_line(&shell, line, (size_t)n);
        }
    }
    shell_close(&shell);
    return 0;
}
