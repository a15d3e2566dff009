/* The one table of scalar operations: what the front end may put into a program and what every backend
 * evaluates. */
#ifndef SX_TENSOR_FUNCTION_H
#define SX_TENSOR_FUNCTION_H

/* X(name, DuckDB's function name or "" when it has another spelling in the plan, arguments)
 * Arguments have equal types unless said otherwise; the front end puts CASTs in where DuckDB's binder did.
 * A NULL argument gives NULL unless said otherwise.
 * Fallible operations (overflow, bad cast, ERROR) obey the instruction's mask. */
#define SX_FUNCTION_LIST(X)                                                                                  \
    /* arithmetic; integers and decimals fail on overflow. DECIMAL + - take equal scales; * adds the scales. \
     * DATE +- INTERVAL and TIMESTAMP +- INTERVAL give TIMESTAMP; DATE +- INTEGER gives DATE;                \
     * DATE - DATE gives BIGINT days; TIMESTAMP - TIMESTAMP gives INTERVAL */                                \
    X(ADD, "+", 2)                                                                                           \
    X(SUB, "-", 2)                                                                                           \
    X(MUL, "*", 2)                                                                                           \
    X(DIV, "/", 2)      /* FLOAT, DOUBLE; as IEEE 754 */                                                     \
    X(INT_DIV, "//", 2) /* integers, floats; x//0 is NULL */                                                 \
    X(MOD, "%", 2)      /* integers, floats, decimals; x%0 is NULL, of floats NaN */                         \
    X(NEG, "-", 1)                                                                                           \
    X(ABS, "abs", 1)                                                                                         \
    X(ROUND, "round", 2) /* second: INTEGER digits (also negative); of decimals a constant */                \
    X(FLOOR, "floor", 1)                                                                                     \
    X(CEIL, "ceil", 1)                                                                                       \
    /* comparison; NaN is equal to itself and greater than every number */                                   \
    X(EQ, "", 2)                                                                                             \
    X(NE, "", 2)                                                                                             \
    X(LT, "", 2)                                                                                             \
    X(LE, "", 2)                                                                                             \
    X(GT, "", 2)                                                                                             \
    X(GE, "", 2)                                                                                             \
    X(DISTINCT_FROM, "", 2)     /* never NULL */                                                             \
    X(NOT_DISTINCT_FROM, "", 2) /* never NULL */                                                             \
    X(IN_LIST, "", 1)           /* against the constants of the instruction's list (no NULL among them) */   \
    /* three-valued logic */                                                                                 \
    X(AND, "", 2)                                                                                            \
    X(OR, "", 2)                                                                                             \
    X(NOT, "", 1)                                                                                            \
    X(IS_NULL, "", 1)     /* never NULL */                                                                   \
    X(IS_NOT_NULL, "", 1) /* never NULL */                                                                   \
    X(IS_TRUE, "", 1)     /* never NULL: 1 only for a valid 1 */                                             \
    X(CHOOSE, "", 3)      /* first is BOOL: second where it is true, third where it is false or NULL */      \
    X(COALESCE, "", 2)                                                                                       \
    X(CONSTANT_OR_NULL, "constant_or_null", 2) /* first, NULL where second (of any type) is NULL */          \
    X(CAST, "", 1)                                                                                           \
    X(TRY_CAST, "", 1)   /* NULL where CAST fails */                                                         \
    X(ERROR, "error", 1) /* VARCHAR message; fails on a masked-in row */                                     \
    /* strings: characters are code points of UTF-8 */                                                       \
    X(LIKE, "~~", 2)                                                                                         \
    X(NOT_LIKE, "!~~", 2)                                                                                    \
    X(LIKE_ESCAPE, "like_escape", 3)                                                                         \
    X(NOT_LIKE_ESCAPE, "not_like_escape", 3)                                                                 \
    X(PREFIX, "prefix", 2)                                                                                   \
    X(SUFFIX, "suffix", 2)                                                                                   \
    X(CONTAINS, "contains", 2)                                                                               \
    X(SUBSTRING, "substring", 3) /* VARCHAR, BIGINT start from 1 (negative: from the end), BIGINT length */  \
    X(UPPER, "upper", 1)                                                                                     \
    X(LOWER, "lower", 1)                                                                                     \
    X(LENGTH, "length", 1) /* BIGINT */                                                                      \
    X(CONCAT, "||", 2)                                                                                       \
    X(CONCAT_SKIP_NULL, "concat", 2) /* NULL counts as empty; never NULL */                                  \
    /* dates: DATE or TIMESTAMP to BIGINT */                                                                 \
    X(YEAR, "year", 1)                                                                                       \
    X(MONTH, "month", 1)                                                                                     \
    X(DAY, "day", 1)                                                                                         \
    /* what AVG gives, DOUBLE, from SUM (HUGEINT, DECIMAL; BIGINT, DECIMAL up to 18 digits where AVG divides \
     * in double: tensor/semantics_average.h) and COUNT (BIGINT) */                                          \
    X(AVERAGE, "", 2)

enum sx_function {
#define SX_FUNCTION_ENUM(name, duckdb, arguments) SX_FN_##name,
    SX_FUNCTION_LIST(SX_FUNCTION_ENUM)
#undef SX_FUNCTION_ENUM
        SX_FN_COUNT
};

const char *sx_function_name(enum sx_function function);
int sx_function_arguments(enum sx_function function);

#endif
