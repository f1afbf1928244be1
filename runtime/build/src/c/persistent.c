
/* Blocks of a kernel that loops over programs: as few as finish in the same number of rounds as all that fit at once,
   or all of those where programs are uneven. */
static unsigned int rtc_blocks(unsigned int x, unsigned int y, unsigned int z, unsigned int at_once,
                               bool uneven) {
    uint64_t programs = (uint64_t)x * y;
    programs = z > UINT64_MAX / programs ? UINT64_MAX : programs * z;
    if (uneven)
        return programs < at_once ? (unsigned int)programs : at_once;
    uint64_t rounds = programs / at_once + (programs % at_once != 0);
    uint64_t blocks = programs / rounds + (programs % rounds != 0);
    return blocks > INT32_MAX ? UINT32_MAX : (unsigned int)blocks;
}
