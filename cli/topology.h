/* stachio topology. */
#ifndef CLI_TOPOLOGY_H
#define CLI_TOPOLOGY_H

/* argv[0] is "topology". Returns the exit status. */
int topology_main(int argc, char **argv, const char *help);

#endif
