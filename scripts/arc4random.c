// Random numbers for libstdc++, which would otherwise take `arc4random` of glibc 2.36: with this one the wheel can be installed
// where glibc is 2.34.
#include <stdlib.h>
#include <sys/random.h>

__attribute__((visibility("hidden"))) unsigned arc4random(void) {
    unsigned value;
    if (getrandom(&value, sizeof value, 0) != sizeof value) abort();
    return value;
}
