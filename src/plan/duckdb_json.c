#include "plan/duckdb_convert.h"

struct json_object *sx_json_member(struct json_object *object, const char *name) {
    struct json_object *member = NULL;
    if (!json_object_is_type(object, json_type_object))
        return NULL;
    return json_object_object_get_ex(object, name, &member) ? member : NULL;
}

const char *sx_json_text(struct json_object *object, const char *name) {
    struct json_object *member = sx_json_member(object, name);
    return json_object_is_type(member, json_type_string) ? json_object_get_string(member) : "";
}

int64_t sx_json_integer(struct json_object *object, const char *name, int64_t otherwise) {
    struct json_object *member = sx_json_member(object, name);
    return json_object_is_type(member, json_type_int) ? json_object_get_int64(member) : otherwise;
}

bool sx_json_bool(struct json_object *object, const char *name) {
    struct json_object *member = sx_json_member(object, name);
    return json_object_is_type(member, json_type_boolean) && json_object_get_boolean(member);
}

int32_t sx_json_length(struct json_object *array) {
    if (!json_object_is_type(array, json_type_array))
        return 0;
    size_t length = json_object_array_length(array);
    return length < SX_PLAN_MAX_COLUMNS * 16 ? (int32_t)length : SX_PLAN_MAX_COLUMNS * 16;
}

struct json_object *sx_json_item(struct json_object *array, int32_t index) {
    if (index < 0 || index >= sx_json_length(array))
        return NULL;
    return json_object_array_get_idx(array, (size_t)index);
}
