#include "tpch.h"

#include <stdio.h>
#include <string.h>

#include "message.h"

int tpch_main(int argc, char **argv, const char *help) {
    const char *name = argc > 1 ? argv[1] : "";
    bool is_run = !strcmp(name, "run");
    if (!is_run && strcmp(name, "generate") != 0)
        return report_usage("tpch: '%s' is neither generate nor run", name);
    struct options options;
    int exit_status =
        options_read(&options, is_run ? COMMAND_TPCH_RUN : COMMAND_TPCH_GENERATE, argc - 1, argv + 1);
    if (exit_status == 0 && options.help)
        exit_status = fputs(help, stdout) < 0;
    else if (exit_status == 0)
        exit_status = is_run ? tpch_run(&options) : tpch_generate(&options);
    options_release(&options);
    return exit_status;
}
