/* The front end over tiny TPC-H tables: all 22 queries become plans that the checker passes. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_tables.h"

enum { PATH_BYTES = 512, QUERY_BYTES = 1 << 16 };

static const struct {
    const char *name;
    const char *columns;
} tables[] = {
    {"region", "range r_regionkey, ['EUROPE', 'ASIA', 'AMERICA', 'AFRICA'][range % 4 + 1] r_name, "
               "'text' r_comment"},
    {"nation", "range n_nationkey, ['FRANCE', 'GERMANY', 'BRAZIL', 'CANADA', 'SAUDI ARABIA'][range % 5 + 1] "
               "n_name, range % 4 n_regionkey, 'text' n_comment"},
    {"supplier",
     "range s_suppkey, 'Supplier ' || range s_name, 'somewhere' s_address, range % 25 s_nationkey, "
     "'13-555' s_phone, (range * 10)::DECIMAL(15,2) s_acctbal, 'Customer Complaints ' || range s_comment"},
    {"customer",
     "range c_custkey, 'Customer ' || range c_name, 'somewhere' c_address, range % 25 c_nationkey, "
     "(13 + range % 20)::VARCHAR || '-555' c_phone, (range - 50)::DECIMAL(15,2) c_acctbal, "
     "['BUILDING', 'MACHINERY'][range % 2 + 1] c_mktsegment, 'text' c_comment"},
    {"part", "range p_partkey, 'forest green part ' || range p_name, 'maker' p_mfgr, 'Brand#' || (11 + range "
             "% 40) p_brand, ['ECONOMY ANODIZED STEEL', 'SMALL BRASS', 'PROMO TIN'][range % 3 + 1] p_type, "
             "(range % 50)::INTEGER p_size, ['MED BOX', 'SM CASE', 'LG PKG'][range % 3 + 1] p_container, "
             "range::DECIMAL(15,2) p_retailprice, 'text' p_comment"},
    {"partsupp", "range % 40 ps_partkey, range ps_suppkey, (range * 7)::INTEGER ps_availqty, "
                 "(range * 3)::DECIMAL(15,2) ps_supplycost, 'text' ps_comment"},
    {"orders",
     "range o_orderkey, range % 90 o_custkey, ['F', 'O'][range % 2 + 1] o_orderstatus, "
     "(range * 100)::DECIMAL(15,2) o_totalprice, DATE '1992-01-01' + (range * 25)::INTEGER "
     "o_orderdate, ['1-URGENT', '2-HIGH', '5-LOW'][range % 3 + 1] o_orderpriority, 'clerk' o_clerk, "
     "0 o_shippriority, 'special requests ' || range o_comment"},
    {"lineitem",
     "range % 97 l_orderkey, range % 40 l_partkey, range % 100 l_suppkey, (range % 7)::INTEGER l_linenumber, "
     "(range % 50)::DECIMAL(15,2) l_quantity, (range * 11)::DECIMAL(15,2) l_extendedprice, "
     "((range % 10) / 100)::DECIMAL(15,2) l_discount, 0.02::DECIMAL(15,2) l_tax, "
     "['A', 'R', 'N'][range % 3 + 1] l_returnflag, ['F', 'O'][range % 2 + 1] l_linestatus, "
     "DATE '1992-01-01' + (range * 23)::INTEGER l_shipdate, DATE '1992-01-10' + (range * 22)::INTEGER "
     "l_commitdate, DATE '1992-01-20' + (range * 23)::INTEGER l_receiptdate, "
     "['DELIVER IN PERSON', 'NONE'][range % 2 + 1] l_shipinstruct, "
     "['MAIL', 'SHIP', 'AIR', 'AIR REG'][range % 4 + 1] l_shipmode, 'text' l_comment"},
};
enum { N_TABLES = sizeof tables / sizeof *tables };

static void make_tables(struct sx_frontend *frontend) {
    for (int i = 0; i < N_TABLES; i++) {
        static char select[QUERY_BYTES];
        snprintf(select, sizeof select, "SELECT %s FROM range(100)", tables[i].columns);
        add_table(frontend, tables[i].name, select);
    }
}

static void read_query(int number, char text[QUERY_BYTES]) {
    const char *source = getenv("SOURCE_DIR");
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/cli/tpch/q%02d.sql", source ? source : ".", number);
    FILE *file = fopen(path, "r");
    assert(file);
    size_t length = fread(text, 1, QUERY_BYTES - 1, file);
    text[length] = '\0';
    fclose(file);
}

static void plan_query(struct sx_frontend *frontend, int number) {
    static char sql[QUERY_BYTES];
    struct sx_query_plan query = {0};
    struct sx_error error = {0};
    read_query(number, sql);
    if (sx_frontend_plan(frontend, sql, &query, &error) != SX_OK) {
        fprintf(stderr, "query %d: %s\n", number, error.text);
        abort();
    }
    const char *text = sx_plan_text(&query.arena, query.root);
    assert(strlen(text) > 0 && strchr(text, '\n'));
    assert(query.root->n_columns > 0 && query.root->columns[0].name[0]);
    sx_query_plan_release(&query);
}

int main(void) {
    struct sx_frontend *frontend;
    struct sx_error error = {0};
    if (sx_frontend_open(1, 0, &frontend, &error) != SX_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    make_scratch();
    make_tables(frontend);
    for (int number = 1; number <= 22; number++)
        plan_query(frontend, number);
    sx_frontend_close(frontend);
    remove_scratch();
    return 0;
}
