/* A slow disk of a process's own: preloaded, whatever waits for the disk waits longer.
 *
 * How much longer is the first eight bytes of the file that QUORATE_DISK names, in microseconds. The file is mapped, so
 * whoever writes to it makes the disk slow, or quick again, at once, for those that wait as well. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *delay;

__attribute__((constructor)) static void map_delay(void) {
  const char *path = getenv("QUORATE_DISK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *page = mmap(NULL, sizeof *delay, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (page != MAP_FAILED) delay = page;
}

static void wait_for_disk(void) {
  const struct timespec step = {0, 1000000};
  for (int64_t waited = 0; delay && waited < *delay; waited += 1000) nanosleep(&step, NULL);
}

int fsync(int file) {
  wait_for_disk();
  return syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  wait_for_disk();
  return syscall(SYS_fdatasync, file);
}
