/* BCC's helpers want the name. */
#define PAGE_SIZE 4096
