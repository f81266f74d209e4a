/* BCC refuses to compile without this; whether the running kernel has it, the kernel itself says at load. */
#define CONFIG_BPF_SYSCALL 1
