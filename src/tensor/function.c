#include "tensor/function.h"

static const struct {
    const char *name;
    int arguments;
} functions[SX_FN_COUNT] = {
#define SX_FUNCTION_ROW(name, duckdb, arguments) [SX_FN_##name] = {#name, arguments},
    SX_FUNCTION_LIST(SX_FUNCTION_ROW)
#undef SX_FUNCTION_ROW
};

const char *sx_function_name(enum sx_function function) {
    return functions[function].name;
}

int sx_function_arguments(enum sx_function function) {
    return functions[function].arguments;
}
