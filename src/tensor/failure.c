#include "tensor/failure.h"

#include <stdio.h>

#include "tensor/format.h"
#include "tensor/semantics_date.h"
#include "tensor/semantics_decimal.h"
#include "tensor/semantics_text.h"

enum { SHOWN_BYTES = 200 };

/* Text of an argument, cut to fit. */
static const char *show(const struct sx_scalar *argument, char buffer[SHOWN_BYTES]) {
    struct sx_scalar scalar = *argument;
    if (scalar.type.id == SX_TYPE_DECIMAL) /* as stored */
        scalar.type.scale = 0, scalar.type.precision = (uint8_t)(scalar.type.precision > 18 ? 38 : 18);
    if (scalar.type.id == SX_TYPE_VARCHAR) {
        snprintf(buffer, SHOWN_BYTES, "%.*s", (int)scalar.v.text.length_bytes, scalar.v.text.bytes);
        return buffer;
    }
    buffer[sx_scalar_text(&scalar, buffer)] = 0;
    return buffer;
}

static const char *physical_name(struct sx_type type) {
    static const char *const names[SX_PHYS_COUNT] = {
        [SX_PHYS_I8] = "INT8",        [SX_PHYS_I16] = "INT16",         [SX_PHYS_I32] = "INT32",
        [SX_PHYS_I64] = "INT64",      [SX_PHYS_I128] = "INT128",       [SX_PHYS_U8] = "UINT8",
        [SX_PHYS_U16] = "UINT16",     [SX_PHYS_U32] = "UINT32",        [SX_PHYS_U64] = "UINT64",
        [SX_PHYS_U128] = "UINT128",   [SX_PHYS_F32] = "FLOAT",         [SX_PHYS_F64] = "DOUBLE",
        [SX_PHYS_STRING] = "VARCHAR", [SX_PHYS_INTERVAL] = "INTERVAL",
    };
    return type.id == SX_TYPE_BOOL ? "BOOL" : names[sx_type_phys(type)];
}

static const char *operation_name(enum sx_function function) {
    return function == SX_FN_ADD ? "addition" : function == SX_FN_SUB ? "subtraction" : "multiplication";
}

static enum sx_status describe_arithmetic(const struct sx_failed *failed, struct sx_error *error) {
    const enum sx_function function = failed->instruction->function;
    const struct sx_type type = failed->instruction->type;
    char a[SHOWN_BYTES], b[SHOWN_BYTES];
    show(&failed->arguments[0], a);
    if (function == SX_FN_NEG)
        return sx_error_set(error, SX_QUERY, "Out of Range Error: Overflow in negation of numeric value!");
    if (function == SX_FN_ABS)
        return sx_error_set(error, SX_QUERY, "Out of Range Error: Overflow on abs(%s)", a);
    show(&failed->arguments[1], b);
    if (function == SX_FN_INT_DIV || function == SX_FN_MOD)
        return sx_error_set(error, SX_QUERY, "Out of Range Error: Overflow in division of %s / %s", a, b);
    const char sign = function == SX_FN_ADD ? '+' : function == SX_FN_SUB ? '-' : '*';
    if (type.id != SX_TYPE_DECIMAL)
        return sx_error_set(error, SX_QUERY, "Out of Range Error: Overflow in %s of %s (%s %c %s)!",
                            operation_name(function), physical_name(type), a, sign, b);
    const bool is_widest = type.precision == SX_DECIMAL_MAX_DIGITS;
    const char *const advice =
        !is_widest    ? ". You might want to add an explicit cast to a bigger decimal."
        : sign == '*' ? ". You might want to add an explicit cast to a decimal with a smaller scale."
                      : ";";
    return sx_error_set(error, SX_QUERY, "Out of Range Error: Overflow in %s of DECIMAL(%d) (%s %c %s)%s",
                        sign == '-' ? "subtract" : operation_name(function), type.precision, a, sign, b,
                        advice);
}

static enum sx_status describe_date(const struct sx_failed *failed, struct sx_error *error) {
    const struct sx_type type = failed->instruction->type;
    if (type.id == SX_TYPE_DATE)
        return sx_error_set(error, SX_QUERY, "Out of Range Error: Date out of range");
    if (type.id == SX_TYPE_TIMESTAMP)
        return sx_error_set(error, SX_QUERY, "Conversion Error: Date and time not in timestamp range");
    const struct sx_scalar a = failed->arguments[0], b = failed->arguments[failed->n_arguments - 1];
    if (a.type.id != SX_TYPE_TIMESTAMP)
        return sx_error_set(error, SX_QUERY, "Out of Range Error: Overflow in the arithmetic of intervals");
    if (!sx_timestamp_is_finite(a.v.i64) || !sx_timestamp_is_finite(b.v.i64))
        return sx_error_set(error, SX_QUERY, "Invalid Input Error: Cannot subtract infinite timestamps");
    return sx_error_set(error, SX_QUERY, "Conversion Error: Timestamp difference is out of bounds");
}

static enum sx_status describe_text_to_date(const struct sx_scalar *text, const char *shown,
                                            struct sx_type to, struct sx_error *error) {
    const bool is_date = to.id == SX_TYPE_DATE;
    const char *kind = is_date ? "date" : "timestamp";
    int32_t days;
    int64_t micros;
    const enum sx_text_result result =
        is_date ? sx_text_to_date(text->v.text.bytes, text->v.text.length_bytes, &days)
                : sx_text_to_timestamp(text->v.text.bytes, text->v.text.length_bytes, &micros);
    if (result == SX_TEXT_RANGE)
        return sx_error_set(error, SX_QUERY, "Conversion Error: %s field value out of range: \"%s\"", kind,
                            shown);
    if (result == SX_TEXT_NOT_UTC)
        return sx_error_set(error, SX_QUERY,
                            "Conversion Error: timestamp field value \"%s\" has a timestamp that is not UTC.",
                            shown);
    return sx_error_set(error, SX_QUERY,
                        "Conversion Error: invalid %s field format: \"%s\", expected format is (%s)", kind,
                        shown, is_date ? "YYYY-MM-DD" : "YYYY-MM-DD HH:MM:SS[.US][±HH[:MM[:SS]]| ZONE]");
}

static enum sx_status describe_decimal(const struct sx_scalar *from, struct sx_type to,
                                       struct sx_error *error) {
    char text[SX_TEXT_BYTES], name[SX_TYPE_NAME_BYTES];
    text[sx_scalar_text(from, text)] = 0;
    if (to.id == SX_TYPE_DECIMAL)
        return sx_error_set(
            error, SX_QUERY,
            "Conversion Error: Casting value \"%s\" to type %s failed: value is out of range!", text,
            sx_type_name(to, name));
    const sx_i128 value = from->type.precision > SX_DECIMAL_MAX_I64_DIGITS ? from->v.i128 : from->v.i64;
    text[sx_i128_text(sx_divide_round_i128(value, sx_power_of_ten(from->type.scale)), text)] = 0;
    return sx_error_set(error, SX_QUERY, "Conversion Error: Failed to cast decimal value %s to type %s", text,
                        physical_name(to));
}

/* The last argument is what was to be cast. */
static enum sx_status describe_cast(const struct sx_failed *failed, struct sx_error *error) {
    const struct sx_type to = failed->instruction->type;
    const int last = failed->n_arguments - 1;
    char shown[SHOWN_BYTES], name[SX_TYPE_NAME_BYTES];
    const struct sx_scalar from = failed->arguments[last];
    show(&failed->arguments[last], shown);
    if (from.type.id == SX_TYPE_DECIMAL)
        return describe_decimal(&from, to, error);
    if (from.type.id == SX_TYPE_VARCHAR) {
        if (to.id == SX_TYPE_DATE || to.id == SX_TYPE_TIMESTAMP)
            return describe_text_to_date(&from, shown, to, error);
        if (to.id == SX_TYPE_DECIMAL)
            return sx_error_set(error, SX_QUERY, "Conversion Error: Could not convert string \"%s\" to %s",
                                shown, sx_type_name(to, name));
        return sx_error_set(error, SX_QUERY, "Conversion Error: Could not convert string '%s' to %s", shown,
                            physical_name(to));
    }
    if (from.type.id == SX_TYPE_DATE)
        return sx_error_set(
            error, SX_QUERY,
            "Conversion Error: Type INT32 with value %s can't be cast to the destination type INT64", shown);
    if (to.id == SX_TYPE_DECIMAL && (from.type.id == SX_TYPE_F32 || from.type.id == SX_TYPE_F64))
        return sx_error_set(error, SX_QUERY, "Conversion Error: Could not cast value %f to %s",
                            from.type.id == SX_TYPE_F32 ? (double)from.v.f32 : from.v.f64,
                            sx_type_name(to, name));
    if (to.id == SX_TYPE_DECIMAL)
        return sx_error_set(error, SX_QUERY, "Conversion Error: Could not cast value %s to %s", shown,
                            sx_type_name(to, name));
    return sx_error_set(
        error, SX_QUERY,
        "Conversion Error: Type %s with value %s can't be cast because the value is out of range for "
        "the destination type %s",
        physical_name(from.type), shown, physical_name(to));
}

static enum sx_status describe_substring(const struct sx_failed *failed, struct sx_error *error) {
    static const char *const words[] = {"", "offset", "length"};
    for (int k = 1; k <= 2; k++) {
        const struct sx_scalar part = failed->arguments[k];
        if (part.v.i64 > UINT32_MAX)
            return sx_error_set(error, SX_QUERY,
                                "Out of Range Error: Substring %s outside of supported range (> 4294967295)",
                                words[k]);
        if (part.v.i64 < -(INT64_C(1) << 32))
            return sx_error_set(error, SX_QUERY,
                                "Out of Range Error: Substring %s outside of supported range (< -4294967296)",
                                words[k]);
    }
    return sx_error_set(error, SX_INTERNAL, "substring failed without a reason");
}

static enum sx_status describe_string(const struct sx_failed *failed, struct sx_error *error) {
    const struct sx_scalar last = failed->arguments[failed->n_arguments - 1];
    switch (failed->instruction->function) {
    case SX_FN_SUBSTRING: return describe_substring(failed, error);
    case SX_FN_CONCAT:
    case SX_FN_CONCAT_SKIP_NULL:
        return sx_error_set(error, SX_QUERY, "Out of Range Error: a string of more than 4294967295 bytes");
    case SX_FN_ERROR:
        return sx_error_set(error, SX_QUERY, "Invalid Input Error: %.*s", (int)last.v.text.length_bytes,
                            last.v.text.bytes);
    default: break;
    }
    if (failed->n_arguments > 2 && last.v.text.length_bytes > 1)
        return sx_error_set(
            error, SX_QUERY,
            "Syntax Error: Invalid escape string. Escape string must be empty or one character.");
    return sx_error_set(error, SX_QUERY, "Syntax Error: Like pattern must not end with escape character!");
}

enum sx_status sx_failure_describe(const struct sx_failed *failed, struct sx_error *error) {
    switch (failed->kind) {
    case SX_FAILURE_ARITHMETIC: return describe_arithmetic(failed, error);
    case SX_FAILURE_DATE: return describe_date(failed, error);
    case SX_FAILURE_CAST: return describe_cast(failed, error);
    case SX_FAILURE_STRING: return describe_string(failed, error);
    }
    return sx_error_set(error, SX_INTERNAL, "an expression failed without a reason");
}
