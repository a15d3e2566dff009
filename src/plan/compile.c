#include <string.h>

#include "plan/build.h"
#include "tensor/semantics.h"

/* While compiling, values are numbered by what they are, since the number of constants is known only at the
 * end: inputs from 0, then constants, then instructions. */
enum { FIRST_CONSTANT = 1 << 28, FIRST_INSTRUCTION = 1 << 29, FAILED = -2, SMALLEST_CAPACITY = 16 };

struct compiler {
    struct sx_arena *arena;
    struct sx_error *error;
    const struct sx_type *input_types;
    int32_t n_inputs;
    struct sx_scalar *constants;
    bool *constant_shared; /* false: part of an IN_LIST */
    int32_t n_constants;
    int32_t constant_capacity;
    struct sx_instruction *instructions;
    int32_t n_instructions;
    int32_t instruction_capacity;
    int32_t *table; /* instruction + 1 by hash, 0: free; a power of two at least twice the instructions */
    int32_t table_size;
};

static int32_t compile(struct compiler *c, const struct sx_expression *expression, int32_t mask);

static int32_t no_memory(struct compiler *c) {
    (void)sx_error_set(c->error, SX_OUT_OF_MEMORY, "no memory for an expression");
    return FAILED;
}

static int32_t malformed(struct compiler *c, const char *what) {
    (void)sx_error_set(c->error, SX_INTERNAL, "an expression has %s", what);
    return FAILED;
}

static void *grow(struct compiler *c, void *items, int32_t count, int32_t capacity, size_t item_bytes) {
    void *larger = sx_arena_array(c->arena, (size_t)capacity, item_bytes);
    if (larger && count)
        memcpy(larger, items, (size_t)count * item_bytes);
    return larger;
}

/* ---- constants ---- */

static int32_t add_constant(struct compiler *c, const struct sx_scalar *value, bool shared) {
    if (c->n_constants == c->constant_capacity) {
        int32_t capacity = c->constant_capacity ? c->constant_capacity * 2 : SMALLEST_CAPACITY;
        struct sx_scalar *constants =
            grow(c, c->constants, c->n_constants, capacity, sizeof(struct sx_scalar));
        bool *flags = grow(c, c->constant_shared, c->n_constants, capacity, sizeof(bool));
        if (!constants || !flags)
            return no_memory(c);
        c->constants = constants;
        c->constant_shared = flags;
        c->constant_capacity = capacity;
    }
    c->constants[c->n_constants] = *value;
    c->constant_shared[c->n_constants] = shared;
    return FIRST_CONSTANT + c->n_constants++;
}

static int32_t find_constant(struct compiler *c, const struct sx_scalar *value) {
    for (int32_t i = 0; i < c->n_constants; i++)
        if (c->constant_shared[i] && sx_scalar_same(&c->constants[i], value))
            return FIRST_CONSTANT + i;
    return add_constant(c, value, true);
}

/* ---- instructions ---- */

static uint64_t instruction_hash(const struct sx_instruction *instruction) {
    uint64_t hash = sx_hash_u64((uint64_t)instruction->function << 32 | (uint64_t)instruction->type.id << 16 |
                                (uint64_t)instruction->type.precision << 8 | instruction->type.scale);
    for (int i = 0; i < SX_PROGRAM_MAX_ARGUMENTS; i++)
        hash = sx_hash_combine(hash, sx_hash_u64((uint32_t)instruction->arguments[i]));
    return sx_hash_combine(hash, sx_hash_u64((uint32_t)instruction->mask));
}

static bool same_list(const struct compiler *c, const struct sx_instruction *a,
                      const struct sx_instruction *b) {
    if (a->list_count != b->list_count)
        return false;
    for (int32_t i = 0; i < a->list_count; i++)
        if (!sx_scalar_same(&c->constants[a->list_first + i], &c->constants[b->list_first + i]))
            return false;
    return true;
}

static bool same_instruction(const struct compiler *c, const struct sx_instruction *a,
                             const struct sx_instruction *b) {
    return a->function == b->function && sx_type_equal(a->type, b->type) && a->mask == b->mask &&
           memcmp(a->arguments, b->arguments, sizeof a->arguments) == 0 && same_list(c, a, b);
}

static void table_insert(struct compiler *c, int32_t number) {
    uint64_t slot = instruction_hash(&c->instructions[number]);
    while (c->table[slot & (uint64_t)(c->table_size - 1)])
        slot++;
    c->table[slot & (uint64_t)(c->table_size - 1)] = number + 1;
}

static bool grow_instructions(struct compiler *c) {
    int32_t capacity = c->instruction_capacity ? c->instruction_capacity * 2 : SMALLEST_CAPACITY;
    struct sx_instruction *instructions =
        grow(c, c->instructions, c->n_instructions, capacity, sizeof(struct sx_instruction));
    int32_t *table = SX_ARENA_ARRAY(c->arena, capacity * 2, int32_t);
    if (!instructions || !table)
        return false;
    c->instructions = instructions;
    c->instruction_capacity = capacity;
    c->table = table;
    c->table_size = capacity * 2;
    for (int32_t i = 0; i < c->n_instructions; i++)
        table_insert(c, i);
    return true;
}

static int32_t find_instruction(const struct compiler *c, const struct sx_instruction *wanted) {
    if (c->table_size == 0)
        return FAILED;
    for (uint64_t slot = instruction_hash(wanted);; slot++) {
        int32_t number = c->table[slot & (uint64_t)(c->table_size - 1)] - 1;
        if (number < 0)
            return FAILED;
        if (same_instruction(c, &c->instructions[number], wanted))
            return FIRST_INSTRUCTION + number;
    }
}

static bool is_fallible(const struct sx_instruction *instruction) {
    const struct sx_expression call = {
        .kind = SX_EXPR_CALL, .function = instruction->function, .type = instruction->type};
    return sx_expression_fallible(&call);
}

/* A result that was computed for all rows serves under every mask. */
static int32_t emit(struct compiler *c, struct sx_instruction instruction) {
    const int32_t mask = is_fallible(&instruction) ? instruction.mask : SX_NO_REGISTER;
    instruction.mask = SX_NO_REGISTER;
    int32_t found = find_instruction(c, &instruction);
    instruction.mask = mask;
    if (found == FAILED && mask != SX_NO_REGISTER)
        found = find_instruction(c, &instruction);
    if (found != FAILED)
        return found;
    if (c->n_instructions == c->instruction_capacity && !grow_instructions(c))
        return no_memory(c);
    c->instructions[c->n_instructions] = instruction;
    table_insert(c, c->n_instructions);
    return FIRST_INSTRUCTION + c->n_instructions++;
}

static int32_t emit_call(struct compiler *c, enum sx_function function, struct sx_type type, int32_t mask,
                         const int32_t *arguments, int n_arguments) {
    struct sx_instruction instruction = {.function = function, .type = type, .mask = mask};
    for (int i = 0; i < SX_PROGRAM_MAX_ARGUMENTS; i++)
        instruction.arguments[i] = i < n_arguments ? arguments[i] : SX_NO_REGISTER;
    for (int i = 0; i < n_arguments; i++)
        if (arguments[i] == FAILED)
            return FAILED;
    return emit(c, instruction);
}

static int32_t emit_bool(struct compiler *c, enum sx_function function, int32_t first, int32_t second) {
    const int n = second == SX_NO_REGISTER ? 1 : 2;
    return emit_call(c, function, sx_type_of(SX_TYPE_BOOL), SX_NO_REGISTER, (int32_t[]){first, second}, n);
}

/* ---- masks: registers that are a valid 1 where evaluation goes on ---- */

static int32_t mask_and(struct compiler *c, int32_t mask, int32_t condition) {
    if (mask == SX_NO_REGISTER || condition == FAILED)
        return condition;
    return emit_bool(c, SX_FN_AND, mask, condition);
}

static int32_t mask_and_not_true(struct compiler *c, int32_t mask, int32_t condition) {
    if (condition == FAILED)
        return FAILED;
    int32_t is_true = emit_bool(c, SX_FN_IS_TRUE, condition, SX_NO_REGISTER);
    if (is_true == FAILED)
        return FAILED;
    return mask_and(c, mask, emit_bool(c, SX_FN_NOT, is_true, SX_NO_REGISTER));
}

static int32_t mask_and_null(struct compiler *c, int32_t mask, int32_t value) {
    if (value == FAILED)
        return FAILED;
    return mask_and(c, mask, emit_bool(c, SX_FN_IS_NULL, value, SX_NO_REGISTER));
}

static bool any_fallible(const struct sx_expression *expression, int32_t first) {
    for (int32_t i = first; i < expression->n_arguments; i++)
        if (sx_expression_fallible(expression->arguments[i]))
            return true;
    return false;
}

/* ---- expressions ---- */

typedef int32_t (*narrow_fn)(struct compiler *c, int32_t mask, int32_t so_far);

/* AND, OR, COALESCE: a later argument is evaluated only where the ones before leave the result open. */
static int32_t compile_chain(struct compiler *c, const struct sx_expression *call, int32_t mask,
                             narrow_fn narrow) {
    int32_t so_far = compile(c, call->arguments[0], mask);
    for (int32_t i = 1; i < call->n_arguments && so_far != FAILED; i++) {
        int32_t inner = mask;
        if (narrow && sx_expression_fallible(call->arguments[i])) {
            inner = narrow(c, mask, so_far);
            if (inner == FAILED)
                return FAILED;
        }
        int32_t next = compile(c, call->arguments[i], inner);
        so_far = emit_call(c, call->function, call->type, mask, (int32_t[]){so_far, next}, 2);
    }
    return so_far;
}

static int32_t compile_case(struct compiler *c, const struct sx_expression *expression, int32_t mask) {
    const int32_t n_branches = expression->n_arguments / 2;
    int32_t *conditions = SX_ARENA_ARRAY(c->arena, n_branches, int32_t);
    int32_t *values = SX_ARENA_ARRAY(c->arena, n_branches, int32_t);
    if (!conditions || !values)
        return no_memory(c);
    int32_t rest = mask;
    for (int32_t i = 0; i < n_branches; i++) {
        const struct sx_expression *value = expression->arguments[2 * i + 1];
        conditions[i] = compile(c, expression->arguments[2 * i], rest);
        if (conditions[i] == FAILED)
            return FAILED;
        int32_t inner = sx_expression_fallible(value) ? mask_and(c, rest, conditions[i]) : SX_NO_REGISTER;
        values[i] = inner == FAILED ? FAILED : compile(c, value, inner);
        if (values[i] == FAILED)
            return FAILED;
        if (any_fallible(expression, 2 * i + 2))
            rest = mask_and_not_true(c, rest, conditions[i]);
        if (rest == FAILED)
            return FAILED;
    }
    int32_t result = compile(c, expression->arguments[2 * n_branches], rest);
    for (int32_t i = n_branches - 1; i >= 0; i--)
        result = emit_call(c, SX_FN_CHOOSE, expression->type, SX_NO_REGISTER,
                           (int32_t[]){conditions[i], values[i], result}, 3);
    return result;
}

static int32_t compile_in_list(struct compiler *c, const struct sx_expression *expression, int32_t mask) {
    struct sx_instruction instruction = {.function = SX_FN_IN_LIST,
                                         .type = expression->type,
                                         .mask = SX_NO_REGISTER,
                                         .list_count = expression->n_arguments - 1};
    for (int i = 0; i < SX_PROGRAM_MAX_ARGUMENTS; i++)
        instruction.arguments[i] = SX_NO_REGISTER;
    instruction.arguments[0] = compile(c, expression->arguments[0], mask);
    if (instruction.arguments[0] == FAILED)
        return FAILED;
    instruction.list_first = c->n_constants;
    for (int32_t i = 1; i < expression->n_arguments; i++)
        if (add_constant(c, &expression->arguments[i]->constant, false) == FAILED)
            return FAILED;
    int32_t found = emit(c, instruction);
    if (found != FIRST_INSTRUCTION + c->n_instructions - 1 && found != FAILED)
        c->n_constants = instruction.list_first; /* an equal list is there already */
    return found;
}

static int32_t compile_call(struct compiler *c, const struct sx_expression *call, int32_t mask) {
    const int wanted = sx_function_arguments(call->function);
    switch (call->function) {
    case SX_FN_AND: return compile_chain(c, call, mask, mask_and);
    case SX_FN_OR: return compile_chain(c, call, mask, mask_and_not_true);
    case SX_FN_COALESCE: return compile_chain(c, call, mask, mask_and_null);
    case SX_FN_CONCAT_SKIP_NULL: return compile_chain(c, call, mask, NULL);
    default: break;
    }
    if (call->n_arguments != wanted || wanted > SX_PROGRAM_MAX_ARGUMENTS)
        return malformed(c, "a call with the wrong number of arguments");
    int32_t arguments[SX_PROGRAM_MAX_ARGUMENTS];
    for (int i = 0; i < wanted; i++) {
        arguments[i] = compile(c, call->arguments[i], mask);
        if (arguments[i] == FAILED)
            return FAILED;
    }
    return emit_call(c, call->function, call->type, mask, arguments, wanted);
}

static int32_t compile(struct compiler *c, const struct sx_expression *expression, int32_t mask) {
    switch (expression->kind) {
    case SX_EXPR_COLUMN:
        if (expression->column < 0 || expression->column >= c->n_inputs)
            return malformed(c, "a column out of range");
        return expression->column;
    case SX_EXPR_CONSTANT: return find_constant(c, &expression->constant);
    case SX_EXPR_CALL: return compile_call(c, expression, mask);
    case SX_EXPR_CASE: return compile_case(c, expression, mask);
    case SX_EXPR_IN_LIST: return compile_in_list(c, expression, mask);
    }
    return malformed(c, "an unknown kind");
}

/* ---- the program ---- */

static int32_t final_register(const struct compiler *c, int32_t value) {
    if (value >= FIRST_INSTRUCTION)
        return c->n_inputs + c->n_constants + (value - FIRST_INSTRUCTION);
    if (value >= FIRST_CONSTANT)
        return c->n_inputs + (value - FIRST_CONSTANT);
    return value;
}

static void number_registers(struct compiler *c) {
    for (int32_t i = 0; i < c->n_instructions; i++) {
        struct sx_instruction *instruction = &c->instructions[i];
        instruction->mask = final_register(c, instruction->mask);
        for (int a = 0; a < SX_PROGRAM_MAX_ARGUMENTS; a++)
            instruction->arguments[a] = final_register(c, instruction->arguments[a]);
    }
}

enum sx_status sx_program_compile(struct sx_arena *arena, struct sx_expression *const *expressions,
                                  int32_t n_expressions, const struct sx_type *input_types, int32_t n_inputs,
                                  struct sx_program *out_program, struct sx_error *error) {
    struct compiler c = {.arena = arena, .error = error, .input_types = input_types, .n_inputs = n_inputs};
    int32_t *outputs = SX_ARENA_ARRAY(arena, n_expressions, int32_t);
    struct sx_type *types = SX_ARENA_ARRAY(arena, n_inputs, struct sx_type);
    if (!outputs || !types)
        return sx_error_set(error, SX_OUT_OF_MEMORY, "no memory for an expression");
    struct sx_error local = {0};
    c.error = &local;
    for (int32_t i = 0; i < n_expressions; i++) {
        outputs[i] = compile(&c, expressions[i], SX_NO_REGISTER);
        if (outputs[i] == FAILED)
            return sx_error_set(error, local.status, "%s", local.text);
    }
    number_registers(&c);
    for (int32_t i = 0; i < n_expressions; i++)
        outputs[i] = final_register(&c, outputs[i]);
    if (n_inputs)
        memcpy(types, input_types, (size_t)n_inputs * sizeof *types);
    *out_program = (struct sx_program){
        .n_inputs = n_inputs,
        .input_types = types,
        .n_constants = c.n_constants,
        .constants = c.constants,
        .n_instructions = c.n_instructions,
        .instructions = c.instructions,
        .n_outputs = n_expressions,
        .outputs = outputs,
    };
    return SX_OK;
}
