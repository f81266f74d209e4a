/* A stand-in for the kernel header that BCC's helpers include: the probes use none of it. */
