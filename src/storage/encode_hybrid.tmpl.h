/* The hybrid of runs and bit-packed groups of eight. VALUE: the element's type; NAME: of the function. */

static void NAME(const VALUE *values, int64_t count, unsigned bits, struct sx_bytes *out) {
    int64_t literal = 0, at = 0; /* from the first to the second: whole groups, not written yet */
    const int64_t least_run = least_run_of(bits);
    while (at < count) {
        int64_t run = 1;
        while (at + run < count && values[at + run] == values[at])
            run++;
        if (run < least_run) {
            const int64_t step = run < GROUP ? GROUP : run / GROUP * GROUP;
            at += count - at < step ? count - at : step;
            continue;
        }
        int64_t groups = (at - literal) / GROUP;
        if (groups)
            sx_bytes_append_varint(out, (uint64_t)groups << 1 | 1);
        for (; literal < at; literal += GROUP) {
            uint64_t group[GROUP];
            for (int i = 0; i < GROUP; i++)
                group[i] = (uint64_t)values[literal + i];
            put_group(group, bits, out);
        }
        put_run((uint64_t)values[at], run, bits, out);
        literal = at += run;
    }
    int64_t groups = (count - literal + GROUP - 1) / GROUP;
    if (groups)
        sx_bytes_append_varint(out, (uint64_t)groups << 1 | 1);
    for (; literal < count; literal += GROUP) {
        uint64_t group[GROUP] = {0};
        for (int i = 0; i < GROUP && literal + i < count; i++)
            group[i] = (uint64_t)values[literal + i];
        put_group(group, bits, out);
    }
}

#undef VALUE
#undef NAME
