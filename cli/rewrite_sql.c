#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "message.h"
#include "rewrite.h"

/* A column of a list: "NAME [asc|desc] [nulls first|last]", the name perhaps in double quotes. */
struct item {
    char *name;
    bool descending;
    bool nulls_first;
};

struct list {
    struct item *items;
    int n;
};

static void list_release(struct list *list) {
    for (int i = 0; i < list->n; i++)
        free(list->items[i].name);
    free(list->items);
}

/* The end of the item at `at`: a comma outside of quotes, or the text's end. */
static const char *item_end(const char *at) {
    for (bool quoted = false; *at && (quoted || *at != ','); at++)
        quoted ^= *at == '"';
    return at;
}

/* Takes `word` and the space in front of it off the text's end. */
static bool take_word(char *text, const char *word) {
    size_t length = strlen(text), n = strlen(word);
    if (length <= n || strcasecmp(text + length - n, word) != 0 ||
        !isspace((unsigned char)text[length - n - 1]))
        return false;
    length -= n;
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    text[length] = 0;
    return true;
}

static void unquote(char *name) {
    size_t length = strlen(name);
    if (length < 2 || name[0] != '"' || name[length - 1] != '"')
        return;
    char *to = name;
    for (size_t i = 1; i + 1 < length; i++) {
        if (name[i] == '"' && name[i + 1] == '"')
            i++;
        *to++ = name[i];
    }
    *to = 0;
}

static bool read_item(const char *at, const char *end, struct item *item) {
    while (at < end && isspace((unsigned char)*at))
        at++;
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    item->name = strndup(at, (size_t)(end - at));
    if (!item->name)
        return false;
    item->nulls_first = take_word(item->name, "first") && take_word(item->name, "nulls");
    if (!item->nulls_first && take_word(item->name, "last"))
        take_word(item->name, "nulls");
    item->descending = take_word(item->name, "desc");
    if (!item->descending)
        take_word(item->name, "asc");
    unquote(item->name);
    return true;
}

static bool read_list(const char *text, struct list *list) {
    list->items = calloc(text ? strlen(text) + 1 : 1, sizeof *list->items);
    if (!list->items)
        return false;
    for (const char *at = text; at && list->items;) {
        const char *end = item_end(at);
        if (!read_item(at, end, &list->items[list->n]))
            return false;
        list->n++;
        at = *end ? end + 1 : NULL;
    }
    return true;
}

static void add_name(struct text *out, const char *name) {
    text_add_char(out, '"');
    for (; *name; name++) {
        if (*name == '"')
            text_add_char(out, '"');
        text_add_char(out, *name);
    }
    text_add_char(out, '"');
}

/* The column's number; -1: there is none of that name. */
static int find(const struct stachio_column *columns, int n, const char *name) {
    int c = n - 1;
    while (c >= 0 && strcasecmp(columns[c].name, name) != 0)
        c--;
    return c;
}

static enum stachio_status check(const struct list *list, const char *option,
                                 const struct stachio_column *columns, int n_columns,
                                 struct stachio_error *error) {
    for (int i = 0; i < list->n; i++) {
        if (find(columns, n_columns, list->items[i].name) < 0)
            return set_error(error, STACHIO_USAGE, "%s: there is no column '%s'", option,
                             list->items[i].name);
        for (int j = 0; j < i; j++)
            if (!strcasecmp(list->items[i].name, list->items[j].name))
                return set_error(error, STACHIO_USAGE, "%s: '%s' is named twice", option,
                                 list->items[i].name);
    }
    return STACHIO_OK;
}

static bool has(const struct list *list, const char *name) {
    for (int i = 0; i < list->n; i++)
        if (!strcasecmp(list->items[i].name, name))
            return true;
    return false;
}

/* "SELECT CAST("p" AS VARCHAR) AS "p", * EXCLUDE ("p") FROM t" */
static void add_select(struct text *out, const char *table, const struct list *parts) {
    text_add(out, "SELECT ");
    for (int i = 0; i < parts->n; i++) {
        text_add(out, "CAST(");
        add_name(out, parts->items[i].name);
        text_add(out, " AS VARCHAR) AS ");
        add_name(out, parts->items[i].name);
        text_add(out, ", ");
    }
    text_add_char(out, '*');
    for (int i = 0; i < parts->n; i++) {
        text_add(out, i ? ", " : " EXCLUDE (");
        add_name(out, parts->items[i].name);
    }
    text_add(out, parts->n ? ") FROM " : " FROM ");
    add_name(out, table);
}

static void add_orders(struct text *out, const char *table, const struct list *parts,
                       const struct list *sorts) {
    const struct list *const lists[] = {parts, sorts};
    bool any = false;
    for (int l = 0; l < 2; l++) {
        for (int i = 0; i < lists[l]->n; i++) {
            const struct item *item = &lists[l]->items[i];
            text_add(out, any ? ", " : " ORDER BY ");
            add_name(out, table);
            text_add_char(out, '.');
            add_name(out, item->name);
            text_format(out, " %s NULLS %s", item->descending ? "DESC" : "ASC",
                        item->nulls_first ? "FIRST" : "LAST");
            any = true;
        }
    }
}

/* The orders that the files will have: columns of a partition are not in them, and have one value each. The
 * answer has those in front. */
static bool set_orders(struct rewrite_sql *sql, const struct list *parts, const struct list *sorts,
                       const struct stachio_column *columns, int n_columns) {
    sql->orders = calloc((size_t)sorts->n + 1, sizeof *sql->orders);
    for (int i = 0; sql->orders && i < sorts->n; i++) {
        const struct item *item = &sorts->items[i];
        if (has(parts, item->name))
            continue;
        int at = find(columns, n_columns, item->name), column = parts->n;
        for (int c = 0; c < at; c++)
            column += !has(parts, columns[c].name);
        sql->orders[sql->n_orders++] = (struct stachio_order){column, item->descending, item->nulls_first};
    }
    return sql->orders != NULL;
}

static enum stachio_status make(struct rewrite_sql *sql, struct stachio_db *db, const char *table,
                                const struct list *sorts, const struct list *parts,
                                struct stachio_error *error) {
    const struct stachio_column *columns;
    int n_columns;
    enum stachio_status status = stachio_describe(db, table, &columns, &n_columns, error);
    if (!status)
        status = check(sorts, "--sort-by", columns, n_columns, error);
    if (!status)
        status = check(parts, "--partition-by", columns, n_columns, error);
    if (!status && parts->n && parts->n == n_columns)
        status = set_error(error, STACHIO_USAGE, "--partition-by: all columns leave none to write");
    if (status)
        return status;
    add_select(&sql->sql, table, parts);
    add_orders(&sql->sql, table, parts, sorts);
    sql->n_partition = parts->n;
    if (!set_orders(sql, parts, sorts, columns, n_columns) || sql->sql.failed)
        return set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a query");
    return STACHIO_OK;
}

enum stachio_status rewrite_sql_make(struct rewrite_sql *sql, struct stachio_db *db, const char *table,
                                     const char *sort_by, const char *partition_by,
                                     struct stachio_error *error) {
    struct list sorts = {0}, parts = {0};
    *sql = (struct rewrite_sql){0};
    enum stachio_status status;
    if (!read_list(sort_by, &sorts) || !read_list(partition_by, &parts))
        status = set_error(error, STACHIO_OUT_OF_MEMORY, "no memory for a query");
    else
        status = make(sql, db, table, &sorts, &parts, error);
    list_release(&sorts);
    list_release(&parts);
    return status;
}

void rewrite_sql_release(struct rewrite_sql *sql) {
    text_release(&sql->sql);
    free(sql->orders);
    *sql = (struct rewrite_sql){0};
}
