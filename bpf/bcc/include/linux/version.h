/* The oldest kernel whose helpers the probes use: BPF ring buffers came with 5.8. */
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(5, 8, 0)
