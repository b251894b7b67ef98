/* Puts the wall clock of one process wrong by CLOCK_WRONG_BY_SECS. Time that passes stays true. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t which, struct timespec *time) {
  int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(which, time);
  const char *wrong_by = getenv("CLOCK_WRONG_BY_SECS");
  if (!failed && wrong_by && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
    time->tv_sec += atol(wrong_by);
  return failed;
}
